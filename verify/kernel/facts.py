"""Facts: what the kernel has proved. Only `verify/kernel/rules.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple


class Cell(NamedTuple):
    """The whole numbers y with lo <= y <= hi and y = rest modulo step (step 0: y = rest)."""

    lo: int
    hi: int
    rest: int
    step: int


@dataclass(eq=False)
class Fact:
    """claim: the number of the claim that it was made of. used: whether anything was concluded from it."""

    claim: int
    used: bool = field(default=False, init=False)


@dataclass(eq=False)
class Ranged(Fact):
    """At every position of every sequence, a primitive polynomial is a number of one of the cells."""

    cells: tuple[Cell, ...]

    def read(self) -> Ranged:
        self.used = True
        return self

    @property
    def ends(self) -> tuple[int, int]:
        return min(c.lo for c in self.cells), max(c.hi for c in self.cells)


@dataclass(eq=False)
class Absorbed(Fact):
    """A norm divides by `divisor`, a power of two, exactly."""

    divisor: Fraction


@dataclass(eq=False)
class Occurrences(Fact):
    """most: how often each of some letters can stand in a sequence."""

    most: list[Fraction]


@dataclass(eq=False)
class Weighed(Fact):
    """What the last rule over scores adds to the score of its token."""

    weight: Fraction
