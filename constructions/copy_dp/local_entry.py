"""The entry of an m-local problem of one's own that comes next, as a stream."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.language.stream import Stream
from compiler.language.words import constant, select
from constructions.copy_dp.local_problem import LocalProblem
from verify.arguments import Given, run_own


def entry_of(given: LocalProblem, index: Stream, value: Stream, letters: Sequence[Stream] = ()) -> Stream:
    """The problem's transition of the last m entries and of the letters that it reads; value: the entry before.

    One before the first entry is `missing`. ValueError where the transition gives no stream.
    """
    values = [select(index < d, given.missing, value.shift(d - 1)) for d in range(1, given.reach + 1)]
    operands: tuple = (index, Given(values, "values", f"reach = {given.reach}"))
    if given.letters:
        operands += (Given(letters, "letters", f"reads = {tuple(given.reads)}"),)
    found = run_own(f"{given.name}: its transition", given.transition, *operands)
    found = constant(found) if isinstance(found, int) else found
    if not isinstance(found, Stream):
        raise ValueError(f"{given.name}: its transition gives {found!r}, and a stream is needed")
    return found


def outside(given: LocalProblem, entry: Stream) -> Stream:
    """Whether an entry is none of the declared values."""
    return (entry < 0) | (entry > given.largest)
