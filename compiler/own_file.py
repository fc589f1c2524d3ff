"""A Python file of the user's as a module: the oracle of a task, a circuit in a file, a kernel."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from compiler.artifact.plain_files import LARGEST_FILE, opened


def module_of(path: Path) -> ModuleType:
    """Run a file and return it as a module, whatever its name. FileNotFoundError where there is none, OSError for what
    is no plain file of a text's size; what the file raises is raised as it is.

    The module is kept under a name that no package has: a dataclass looks for its module there, and a file called
    verify.py must not stand in for ours.
    """
    check_own(path)
    name = f"own_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check_own(path: Path) -> None:
    """FileNotFoundError where there is no such file, OSError where it is no plain file, or larger than a text."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    opened(path, LARGEST_FILE).close()
