"""The kernel that a command names: a function of a module, or of a file."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from compiler.own_file import module_of
from conformance.kernel.arguments import OPERATIONS
from conformance.kernel.kernel import Kernel
from conformance.kernel.settings import Left, of_the_kernel
from conformance.kernel.signature import kernel, signature


def kernel_named(path: str, op: str | None = None, device: str = "cpu") -> Kernel:
    """The kernel at "module:function" or "FILE.py:function", of an operation if it is told.

    Modules are looked for in the current folder, and a file's own imports beside it, after all that is installed.
    Raises ValueError where there is no such function.
    """
    if op is not None:
        check_operation(op)
    place, colon, name = path.rpartition(":")
    if not colon or not place or not name:
        raise ValueError(
            f"--kernel {path!r} must be module:function or FILE.py:function, such as mypackage.scan:selective_scan."
        )
    left = Left()
    try:
        with of_the_kernel(left):
            module = _file(Path(place)) if place.endswith(".py") else _module(place)
            function = getattr(module, name)
    except (Exception, SystemExit) as error:  # a module of others may raise anything
        why = str(getattr(error, "strerror", None) or error).splitlines()
        raise ValueError(f"--kernel {path!r} cannot be imported: {why[0] if why else type(error).__name__}.") from error
    try:
        signature(function)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"--kernel {path!r} is of type {type(function).__name__}, and a function whose arguments have names is "
            "needed."
        ) from error
    return replace(kernel(function, path, op, device), left=left)


def check_operation(op: str) -> None:
    """ValueError for a name of no operation."""
    if op not in OPERATIONS:
        raise ValueError(f"--operation {op!r} is not known: expected one of {', '.join(OPERATIONS)}.")


def _module(name: str) -> ModuleType:
    """Raises ImportError where another module of this name stands before that of the current folder."""
    _look_in(Path.cwd())
    module = importlib.import_module(name)
    first, found = Path.cwd() / name.partition(".")[0], getattr(module, "__file__", None)
    here = first.with_suffix(".py").is_file() or (first / "__init__.py").is_file()
    if here and found and not Path(found).resolve().is_relative_to(Path.cwd().resolve()):
        raise ImportError(f"its name is taken by {found}; name the file, as in FILE.py:function")
    return module


def _file(path: Path) -> ModuleType:
    """A module from a file, whatever its name."""
    _look_in(path.resolve().parent)
    return module_of(path)


def _look_in(folder: Path) -> None:
    """Last: a file there may have the name of a package of ours, or of one that we import later."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
