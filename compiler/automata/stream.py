"""A cascade as a circuit: a latch for each level, and a table of one number at the end.

Level i keeps c_i *before* the present letter: so its table is looked up at the letter one position back, all of it at
one lag, which a convolution can do, and no block only shifts. The number that is looked up is
letter + letters · Σ_j weight_j · c_j. Letter 0 leaves every state as it is: it stands for tokens that are no letters,
and before the first token the number is 0. The tables, *what is set* and *whether it is set*, are ramps of that number,
so they stand in the block of the latch itself; what never occurs, or is held, takes the entry before it, so that no
ramp has its breakpoint there.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from compiler.automata.cascade import HOLD, Cascade
from compiler.automata.codes import Code, code_of
from compiler.language.stream import Stream
from compiler.language.types import Bool, OneHot
from compiler.language.words import latch


def levels_of(cascade: Cascade, letter: Stream, letters: int) -> list[Stream]:
    """c_i of each level before the present letter. letter: which it is, 0 … letters − 1, as the cascade's table has
    them, but that 0 may never come.
    """
    held: list[Stream] = []
    for i, level in enumerate(cascade.levels):
        sets = {(0,) * (len(level.reads) + 1): HOLD, **level.sets}
        code = code_of(sets, [cascade.levels[j].size for j in level.reads], letters)
        what = _filled([None if value == HOLD else value for value in _listed(code)])
        whether = _filled([None if value is None else int(value != HOLD) for value in _listed(code)])
        value, when = _looked_up(
            _number(code, [held[j] for j in level.reads], letter, letters), (what, whether), not level.reads
        )
        held.append(latch(value.named(f"set[{i}]"), when.retyped(Bool()).named(f"sets[{i}]")).named(f"level[{i}]"))
    return held


def output_of(
    cascade: Cascade, held: Sequence[Stream], letter: Stream, letters: int, entries: Mapping[Hashable, int]
) -> Stream:
    """The number that `entries` gives the cascade's output behind the present letter."""
    code, number = _output(cascade, held, letter, letters)
    return number.lookup(_filled([None if value is None else entries[value] for value in _listed(code)]))


def one_hot_output_of(
    cascade: Cascade, held: Sequence[Stream], letter: Stream, letters: int, outputs: Sequence[Hashable]
) -> Stream:
    """Which of these outputs the cascade has behind the present letter: OneHot."""
    code, number = _output(cascade, held, letter, letters)
    which = np.zeros((len(outputs), code.size))
    for i, output in code.entries.items():
        which[outputs.index(output), i] = 1
    return (which @ number.one_hot(code.size)).retyped(OneHot(len(outputs)))


def _output(cascade: Cascade, held: Sequence[Stream], letter: Stream, letters: int) -> tuple[Code, Stream]:
    code = code_of(cascade.outputs, [cascade.levels[j].size for j in cascade.reads], letters)
    return code, _number(code, [held[j] for j in cascade.reads], letter, letters)


def _looked_up(number: Stream, tables: Sequence[list[int]], of_one_token: bool) -> list[Stream]:
    """Each table at the number one position back; all hold 0 at 0, which stands before the first position."""
    if of_one_token:  # behind the table, so that it folds into the embedding
        return [number.lookup(table).shift(1) for table in tables]
    return [number.shift(1).lookup(table) for table in tables]


def _number(code: Code, reads: Sequence[Stream], letter: Stream, radix: int) -> Stream:
    return sum((radix * weight * c for weight, c in zip(code.weights, reads, strict=True)), start=letter)


def _listed(code: Code) -> list:
    return [code.entries.get(number) for number in range(code.size)]


def _filled(entries: Sequence[int | None]) -> list[int]:
    """The entries; what may be anything is as the one before it, and 0 before any is told."""
    last = 0
    return [last := last if value is None else value for value in entries]
