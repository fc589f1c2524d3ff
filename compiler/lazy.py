"""Names of a package that are imported when they are first used: `import compiler` must not cost the import of
torch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType


class _Late:
    """An attribute of a package that is imported when it is asked for."""

    def __init__(self, name: str, home: str):
        self.name, self.home = name, home

    def __get__(self, package: object, owner: type) -> object:
        return getattr(import_module(self.home), self.name)


def lazy_names(package: str, homes: Mapping[str, str]) -> None:
    """Give a package names that are imported late: `homes` says which module each comes from.

    They are attributes of the package's class and not a `__getattr__` (PEP 562), which is asked only for what no object
    has: nnsight gives every object a method `save`.
    """
    sys.modules[package].__class__ = type(
        "LatePackage", (ModuleType,), {name: _Late(name, home) for name, home in homes.items()}
    )
