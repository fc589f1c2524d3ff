"""A plan of a direct sum: everything that is decided before a tensor is made."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.graft.families.family import HostFamily
from compiler.graft.placement import Placement


@dataclass(frozen=True, eq=False)
class Plan(Placement):
    """Where a circuit stands in a host of this family."""

    family: HostFamily
