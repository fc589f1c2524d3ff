"""A Python file of the user's as a module: the oracle of a task, a circuit in a file, a kernel."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from compiler.artifact.plain_files import LARGEST_FILE, opened


def module_of(path: Path) -> ModuleType:
    """Run a file and return it as a module, whatever its name. FileNotFoundError where there is none, OSError for what
    is no plain file of a text's size; what the file raises is raised as it is.

    The module is kept under a name that no package has: a dataclass looks for its module there, and a file called
    verify.py must not stand in for ours. What the file imports while it runs may lie beside it (`_Beside`).
    """
    check_own(path)
    name = f"own_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _beside(path.resolve().parent):
        spec.loader.exec_module(module)
    return module


class _Beside(MetaPathFinder):
    """Finds modules in a folder, asked last: none there stands in for one that is installed, or for one of ours."""

    def __init__(self, folder: Path):
        self.folder, self.found = str(folder), set[str]()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, [self.folder]) if path is None else None
        if spec is None or spec.origin is None:  # a folder without __init__.py may be anything
            return None
        self.found.add(name)
        return spec


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """What lies in this folder can be imported. It is forgotten afterwards: the next file may have others of the same
    names beside it.
    """
    finder = _Beside(folder)
    importlib.invalidate_caches()
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in finder.found]:
            del sys.modules[name]


def check_own(path: Path) -> None:
    """FileNotFoundError where there is no such file, OSError where it is no plain file, or larger than a text."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    opened(path, LARGEST_FILE).close()
