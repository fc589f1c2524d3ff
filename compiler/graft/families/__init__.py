"""The host families: the classes of language models that a direct sum takes, one file each.

Everything that depends on the class stands here: what of it is refused, the sizes that hold host and circuit, the
host's mixer in a wider one, the circuit's mixers at these sizes, and what the configuration says of them. To add one,
write its file and one line below.
"""

from __future__ import annotations

from compiler.graft.families.falcon_mamba import FalconMambaHost
from compiler.graft.families.family import HostFamily
from compiler.graft.families.mamba import MambaHost
from compiler.graft.families.mamba2 import Mamba2Host
from compiler.graft.families.olmo_hybrid import OlmoHybridHost
from compiler.graft.families.qwen import QwenHost

_FAMILIES: tuple[HostFamily, ...] = (MambaHost(), Mamba2Host(), FalconMambaHost(), OlmoHybridHost(), QwenHost())


def class_names() -> tuple[str, ...]:
    """The classes of transformers that are hosts."""
    return tuple(family.class_name for family in _FAMILIES)


def family_of(model_type: object) -> HostFamily | None:
    """The family that a config.json calls so; None for another model."""
    return next((family for family in _FAMILIES if family.model_type == model_type), None)


def family_of_class(name: str) -> HostFamily | None:
    """The family of a class of transformers; None for another class."""
    return next((family for family in _FAMILIES if family.class_name == name), None)
