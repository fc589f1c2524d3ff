"""The targets: mixers that a circuit can be compiled for, one folder each.

A target is found by its name and imported when it is first asked for. To add one, write its folder and
one line below (or call `register` from outside the package).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.targets.target import Target

_TARGETS: dict[str, str | Callable[[], Target]] = {
    "mamba": "compiler.targets.mamba",
    "mamba2": "compiler.targets.mamba2",
    "s4d": "compiler.targets.s4d",
    "mamba-delta-t": "compiler.targets.mamba_delta_t",
}


def target_names() -> tuple[str, ...]:
    """The names of all targets."""
    return tuple(_TARGETS)


def target_of(name: str) -> Target:
    """The target of this name; ValueError for a name that is none."""
    if not isinstance(name, str) or name not in _TARGETS:
        raise ValueError(f"{name!r} is no target; there are {', '.join(_TARGETS)}")
    found = _TARGETS[name]
    return import_module(found).TARGET if isinstance(found, str) else found()


def register(name: str, where: str | Callable[[], Target]) -> None:
    """Add a target: the module whose TARGET it is, or a function that returns it.

    ValueError for a name that is taken.
    """
    if name in _TARGETS:
        raise ValueError(f"there is a target {name!r} already; choose another name")
    _TARGETS[name] = where
