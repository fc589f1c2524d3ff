"""Facts: what the kernel has proved. Only `verify/kernel/rules.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self


class Cell(NamedTuple):
    """The whole numbers y with lo <= y <= hi and y = rest modulo step (step 0: y = rest). lo > hi: no number, as of
    a case that never occurs."""

    lo: int
    hi: int
    rest: int
    step: int


def ends(cells: tuple[Cell, ...]) -> tuple[int, int]:
    return min(c.lo for c in cells), max(c.hi for c in cells)


def closer(cells: tuple[Cell, ...], others: tuple[Cell, ...]) -> bool:
    """Whether these cells say more: within the ends of others, and shorter, or with larger steps."""
    (lo, hi), (least, most) = ends(cells), ends(others)
    lengths, steps = ([max(c.hi - c.lo, 0) for c in found] for found in (cells, others)), max(c.step for c in others)
    new, old = map(sum, lengths)
    return least <= lo and hi <= most and ((lo, hi) != (least, most) or new < old or max(c.step for c in cells) > steps)


@dataclass(eq=False)
class Fact:
    """claim: the number of the claim that it was made of. used: whether anything was concluded from it."""

    claim: int
    used: bool = field(default=False, init=False)

    def read(self) -> Self:
        self.used = True
        return self


@dataclass(eq=False)
class Ranged(Fact):
    """At every position of every sequence, a primitive polynomial is a number of one of the cells. Of a total
    (`rules.total`) so is every partial sum of its terms."""

    cells: tuple[Cell, ...]


@dataclass(eq=False)
class Same(Fact):
    """At every position of every sequence, an atom is sign (1 or −1) times another one (None: it is 0)."""

    other: int | None
    sign: int = 1


@dataclass(eq=False)
class Known(Fact):
    """What the rule that only one place has gives there (`rules.py`)."""

    value: Any
