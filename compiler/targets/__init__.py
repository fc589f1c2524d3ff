"""The targets: mixers that a circuit can be compiled for, one folder each.

A target is found by its name and imported when it is first asked for. To add one, write its folder and
one line below (or call `register` from outside the package).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

    from compiler.targets.family import Family
    from compiler.targets.target import Target

_TARGETS: dict[str, str | Callable[[], Target]] = {
    "mamba": "compiler.targets.mamba",
    "mamba2": "compiler.targets.mamba2",
    "s4d": "compiler.targets.s4d",
    "mamba-delta-t": "compiler.targets.mamba_delta_t",
    "gated-deltanet": "compiler.targets.gated_deltanet",
    "gated-deltanet-qwen": "compiler.targets.gated_deltanet.positive",
}


def target_names() -> tuple[str, ...]:
    """The names of all targets."""
    return tuple(_TARGETS)


def target_of(name: str) -> Target:
    """The target of this name; ValueError for a name that is none, TypeError where its module has no TARGET."""
    if not isinstance(name, str) or name not in _TARGETS:
        raise ValueError(f"{name!r:.60} is no target; there are {', '.join(_TARGETS)}")
    found = _TARGETS[name]
    if not isinstance(found, str):
        return found()
    target = getattr(import_module(found), "TARGET", None)
    if target is None:
        raise TypeError(f"{found}, the module of target {name!r}, has no TARGET; end it with an instance of its class")
    return target


def families() -> dict[str, Family]:
    """The families of language models that some target can be packaged as, by the model_type of their configs."""
    found = [target_of(name).family for name in _TARGETS]
    return {family.model_type: family for family in found if family is not None}


def family_of(model_type: object) -> Family:
    """The family that configs call so; ValueError for a name that is none."""
    known = families()
    if not isinstance(model_type, str) or model_type not in known:
        raise ValueError(
            f"model_type {model_type!r:.60} is no family of ours, expected {' or '.join(map(repr, known))}"
        )
    return known[model_type]


def shipped() -> tuple[str, ...]:
    """The names of the targets whose own class a library has."""
    return tuple(dict.fromkeys(family.printer for family in families().values()))


def target_running(module: nn.Module) -> Target:
    """The target of which a module is a mixer; ValueError for another module."""
    for name in _TARGETS:
        if target_of(name).runs(module):
            return target_of(name)
    raise ValueError(f"a {type(module).__name__} is the mixer of no target; there are {', '.join(_TARGETS)}")


def register(name: str, where: str | Callable[[], Target]) -> None:
    """Add a target: the module whose TARGET it is, or a function that returns it.

    ValueError for a name that is taken.
    """
    if name in _TARGETS:
        raise ValueError(f"there is a target {name!r} already; choose another name")
    _TARGETS[name] = where
