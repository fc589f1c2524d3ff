"""Where a circuit was written: the line of its author, never one of a library."""

from __future__ import annotations

import os
import sys
from types import FrameType

_PACKAGE = __name__.split(".")[0]
_LIBRARIES = os.path.dirname(os.__file__)
_SITES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
# Packages that call back into what a user wrote; any other package may well have written a circuit itself.
_CALLERS = frozenset({"numpy", "scipy", "networkx", "sympy", "torch", "hypothesis", "pytest", "_pytest", "pluggy"})


def source_line() -> str:
    """`file.py:line` of the nearest caller outside this package and the libraries."""
    frame = sys._getframe(1)
    while frame.f_back and _is_library(frame):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.replace(os.sep, '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"


def _is_library(frame: FrameType) -> bool:
    file, root = frame.f_code.co_filename, frame.f_globals.get("__name__", "").split(".")[0]
    if root == _PACKAGE or file.startswith("<frozen "):
        return True
    if any(site in file for site in _SITES):
        return root in _CALLERS
    return file.startswith(_LIBRARIES + os.sep)
