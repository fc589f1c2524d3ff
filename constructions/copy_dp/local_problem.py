"""An m-local dynamic program of one's own, as Theorem 4 states it: each entry is a function of the m entries before it.

    from constructions.copy_dp.local_problem import LocalProblem

    STAIRS = LocalProblem(
        name="stairs",  # in how many ways steps of 1, 2 or 5 climb i stairs, mod 7
        reach=5,
        terms=40,
        largest=6,
        transition=lambda index, values: (values[0] + values[1] + values[4] + (index == 0)) % 7,
        plain=lambda index, values: (values[0] + values[1] + values[4] + (index == 0)) % 7,
    )

`construct dp FILE.py:STAIRS` builds, verifies and saves it; `8 ;` is answered by entries 0 … 8 and `.`.

Circuit. The entry d back is the present token, d − 1 positions earlier. One that does not exist reads as `missing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.language.arguments import instance, integer
from verify.arguments import at_least, at_most
from verify.tasks.solvers.recurrences import LocalSolver

if TYPE_CHECKING:
    from compiler.language.stream import Stream

_REACH, _TERMS, _NUMBERS = 64, 1 << 16, 1 << 12


@dataclass(frozen=True)
class LocalProblem:
    """Entries 0 … n for every n up to `terms`.

    reach:      m; terms: the largest n; largest: values are 0 … largest, and one outside of them is written as `!`,
        which ends the promise.
    transition: (index, values) → entry `index` as a stream; values[d − 1] is the entry d before it, `missing` where
        there is none.
    plain:      the same on integers: what the chain is verified against.
    """

    name: str
    reach: int
    terms: int
    largest: int
    transition: Callable[[Stream, list[Stream]], Stream]
    plain: Callable[[int, list[int]], int] | None = None
    missing: int = 0

    def __post_init__(self) -> None:
        if not instance(self.name, str, "name", "a text").isprintable() or not self.name.strip():
            raise ValueError(f"name is {self.name!r}, and one line of text is needed")
        for what, because, most in (
            ("reach", "an entry has one before it", _REACH),
            ("terms", "a chain has an entry behind the first", _TERMS),
            ("largest", "a value can be 0 or 1", _NUMBERS),
        ):
            value = integer(getattr(self, what), what)
            at_least(what, value, 1, because)
            at_most(what, value, most, "no more are tried")
        integer(self.missing, "missing")

    def solver(self) -> LocalSolver:
        if self.plain is None:
            raise ValueError(f"{self.name}: plain is None, and a transition on integers is needed to verify the chains")
        return LocalSolver(self)
