"""An m-local dynamic program of one's own, after Theorem 4: each entry is a function of the m entries before it.

    from constructions.copy_dp.local_problem import LocalProblem

    STAIRS = LocalProblem(
        name="stairs",  # in how many ways steps of 1, 2 or 5 climb i stairs, mod 7
        reach=5,
        terms=40,
        largest=6,
        transition=lambda index, values: (values[0] + values[1] + values[4] + (index == 0)) % 7,
        plain=lambda index, values: (values[0] + values[1] + values[4] + (index == 0)) % 7,
    )

`construct dp FILE.py:STAIRS` builds, verifies and saves it; `8 ;` is answered by entries 0 … 8 and `.`. With `letters`
a prompt is a word, as in `a c d ;`, and there is an entry for each of its letters (`local_inputs`).

Circuit. The entry d back is the present token, d − 1 positions earlier. One that does not exist reads as `missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.language.arguments import instance, integer, shown
from constructions.copy_dp.problem_letters import check_letters
from verify.arguments import at_least, at_most
from verify.tasks.solvers.recurrences import LocalSolver, LocalSolverOnLetters

if TYPE_CHECKING:
    from compiler.language.stream import Stream

_REACH, _TERMS, _NUMBERS, _LETTERS, _READS = 64, 1 << 16, 1 << 12, 1 << 11, 16
_MARKS = (";", ".", "!")  # of every chain


@dataclass(frozen=True)
class LocalProblem:
    """Entries 0 … n for every n up to `terms`; with letters an entry for each letter of a word.

    reach:      m; terms: the largest n, or how many letters a word has, a number or a range of them.
    largest:    values are 0 … largest, and one outside of them is written as `!`, which ends the promise.
    transition: (index, values) → entry `index` as a stream; values[d − 1] is the entry d before it, `missing` where
        there is none. With letters (index, values, letters): letters[k] is the rank, from 0 on, of the letter that
        stands reads[k] places after place `index` (before it where that is below 0), `blank` where there is none.
    plain:      the same on integers: what the chain is verified against.
    """

    name: str
    reach: int
    terms: int | range
    largest: int
    transition: Callable[..., Stream]
    plain: Callable[..., int] | None = None
    missing: int = 0
    letters: Sequence[str] = ()
    reads: Sequence[int] = (0,)
    blank: int = -1

    def __post_init__(self) -> None:
        if not instance(self.name, str, "name", "a text").isprintable() or not self.name.strip():
            raise ValueError(f"name is {self.name!r}, and one line of text is needed")
        for what, value, because, most in (
            ("reach", integer(self.reach, "reach"), "an entry has one before it", _REACH),
            ("largest", integer(self.largest, "largest"), "a value can be 0 or 1", _NUMBERS),
        ):
            at_least(what, value, 1, because)
            at_most(what, value, most, "no more are tried")
        integer(self.missing, "missing")
        if self.letters:
            self._check_words()
            return
        if isinstance(self.terms, range):
            raise ValueError(f"terms is {shown(self.terms)}, and without letters the largest n is needed, one number")
        at_least("terms", integer(self.terms, "terms"), 1, "a chain has an entry")
        at_most("terms", self.terms, _TERMS, "no more are tried")

    def _check_words(self) -> None:
        """ValueError or TypeError where the letters, what is read of them, or the lengths of words, are none."""
        check_letters(self.letters, _MARKS, self.largest)
        reads = instance(self.reads, Sequence, "reads", "a tuple")[: _READS + 1]
        if not 1 <= len(reads) <= _READS:
            raise ValueError(f"reads is {shown(self.reads)}, and 1 to {_READS} entries work")
        for offset in reads:
            integer(offset, "an entry of reads")
        integer(self.blank, "blank")
        terms = self.terms if isinstance(self.terms, range) else (integer(self.terms, "terms"),)
        if not terms or min(terms[0], terms[-1]) < 1:
            raise ValueError(f"terms is {shown(self.terms)}, and words of 1 letter or more are needed")
        if max(terms[0], terms[-1]) > _LETTERS:
            raise ValueError(f"terms is {shown(self.terms)}, and words of at most {_LETTERS} letters are tried")

    @property
    def lengths(self) -> tuple[int, ...]:
        """With letters: how many a word may have, in order."""
        if isinstance(self.terms, range):
            return tuple(sorted(self.terms))
        return (integer(self.terms, "terms"),)

    def solver(self) -> LocalSolver | LocalSolverOnLetters:
        if self.plain is None:
            raise ValueError(f"{self.name}: plain is None, and a transition on integers is needed to verify the chains")
        return LocalSolverOnLetters(self) if self.letters else LocalSolver(self)
