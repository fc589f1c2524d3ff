"""The Viterbi path: the cheapest sequence of hidden states behind a sequence of observations.

Statement. After Theorem 3: a cost for each observation and state, T·S entries, each from the S of the row before; then
the path, each state from the one behind it and a row of the table. The states of the path count as entries too, for the
theorem's answer is a function of at most N_A entries. Its entries tell their cells, which are counted here.

Conditions of ours. Costs are integers in a declared range (a probability's −log, rounded), for
numbers are tokens. Paths of one cost must be told apart: the lowest state wins, last state first. The program is not
local in the sense of Theorem 4. Its costs look back over 2S − 1 entries and the mark between rows, but they read the
observations too. The path runs back over the whole table, so a row for each observation must be kept.

Circuit. A row is complete at its last entry; there the last S tokens are written once under the row's number. One read
serves both directions: the row before the next entry, or the row that the path has reached. What is added to it is a
column of the transition table, chosen by the state of the next entry, or by the last state of the path. The next entry
is the minimum and what the observation costs there; the next state of the path is the first one that attains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate, count, minimum, present
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, numbers, repeated, written
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import Solver
from verify.tasks.solvers.viterbi import ViterbiSolver

ROW, BAR = ";", "|"
_MOST_STATES, _MOST_COST = 8, 64


@dataclass(frozen=True)
class Viterbi(ChainConstruction, WithMemory):
    """The cheapest path of hidden states: `o0 o2 ;` is answered by a row of costs for each observation, then the path.

    A state costs its start or the transition to it, and what is seen there; the path comes last state first.
    """

    name: ClassVar[str] = "viterbi"
    asked: ClassVar[str] = "row"
    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 3"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    length: int = parameter("observations of a prompt, at most", most=1 << 10, default=6)
    start: str = parameter("a cost for each state, by commas", default="1,2")
    transitions: str = parameter("a row for each state that is left, by semicolons", default="0,2;3,0")
    emissions: str = parameter("a row for each state, a cost for each observation", default="0,1,3;3,2,0")

    def __post_init__(self) -> None:
        at_least("length", self.length, 1, "something is seen")
        states = len(self._start())
        if ";" in self.start:
            raise ValueError(
                f"start = {self.start!r} has several rows, and it is one: a cost for each state, by commas"
            )
        if states > _MOST_STATES:
            raise ValueError(f"start = {self.start!r} has {states} states, and at most {_MOST_STATES} work")
        for what, table, width in (
            ("transitions", self._transitions(), states),
            ("emissions", self._emissions(), len(self._emissions()[0])),
        ):
            if len(table) != states or any(len(row) != width for row in table):
                given = getattr(self, what)
                raise ValueError(
                    f"{what} = {given!r} must have {states} rows (start has {states} costs) of {width} each"
                )

    def otherwise(self) -> str:
        """In the proof the token of an entry tells its cell, and the answer is a function of at most N_A entries."""
        return "by rows whose marks tell the cell, and with the states of the path as entries"

    def _start(self) -> tuple[int, ...]:
        return _rows("start", self.start)[0]

    def _transitions(self) -> tuple[tuple[int, ...], ...]:
        return _rows("transitions", self.transitions)

    def _emissions(self) -> tuple[tuple[int, ...], ...]:
        return _rows("emissions", self.emissions)

    def largest(self) -> int:
        """The largest entry: some path costs no more."""
        seen = max(map(max, self._emissions()))
        return max(self._start()) + seen + (self.length - 1) * (max(map(max, self._transitions())) + seen)

    def alphabet(self) -> Alphabet:
        states, seen = len(self._start()), len(self._emissions()[0])
        return Alphabet.of(ROW, BAR, END, o=seen, s=states, number=numbers(self.largest()))

    def edges(self) -> Edges:
        prompt, in_prompt = repeated("start", "o", self.length)
        row, in_row = repeated("row", "number", len(self._start()))
        path, in_path = repeated("path", "s", self.length)
        marks = [(row[-1], "row", [ROW]), (row[-1], "path", [BAR])]
        return (
            in_prompt + leaving(prompt[1:], "row", [ROW]) + in_row + marks + in_path + leaving(path[1:], "end", [END])
        )

    def table(self) -> int:
        return self.length * (len(self._start()) + 1)

    def longest(self) -> int:
        return self.length + 1 + self.length * (len(self._start()) + 1) + self.length + 1

    def prompts(self) -> str:
        return f"at most {self.length} observations o0 … o{len(self._emissions()[0]) - 1}"

    def scores(self) -> Stream:
        x, states = Tokens(self.alphabet()), len(self._start())
        mark, bar, entry, seen = x.is_in([ROW]), x.is_in([BAR]), x.is_in("number"), x.is_in("o")
        back, length = present(bar), seen.cumsum().named("length")
        row, column = mark.cumsum().named("row"), count(entry, reset=mark).named("column")
        stepped = x.is_in("s").cumsum().named("steps of the path")

        value = x.number({name: int(name) for name in numbers(self.largest())}, "value")
        last = concatenate(*(value.shift(states - 1 - s) for s in range(states)))
        full = (column >= states) & entry
        table = memory.write(self._place(row - 1), last, when=full, policy="once", name="table")
        before = table.read(self._place(row - 2 + back - stepped))

        state = (column.one_hot(states) & ~back).named("state of the next entry")
        reached = x.one_hot("s", name="last state of the path")
        arrived, began = np.array(self._transitions()), np.array([self._start()] * states)
        first = state & (row <= 1)
        ways = before + arrived @ (state + reached) + (began - arrived) @ first
        least = reduce(minimum, (ways[s] for s in range(states))).named("cheapest way")

        shown = memory.write(self._place(length - 1), x.rows("o", self._seen(), "costs"), seen, "once", "observations")
        following = least + (state * shown.read(self._place(row - 1))).sum()
        ends = [(back & (stepped >= length), END)]
        path = [(back & (ways[s] <= least), f"s{s}") for s in range(states)]
        rows = [((column >= states) & (row >= length), BAR), (column >= states, ROW)]
        return written(
            self.alphabet(), following, {n: int(n) for n in numbers(self.largest())}, ends + path + rows, self.dtype
        )

    def _seen(self) -> np.ndarray:
        """What each observation costs in each state, a row for each observation."""
        return np.array(self._emissions(), dtype=float).T

    def _place(self, place: Stream) -> Stream:
        return place.one_hot(self.length)

    def solver(self) -> Solver:
        return ViterbiSolver(self.length, self._start(), self._transitions(), self._emissions())


def _rows(what: str, given: str) -> tuple[tuple[int, ...], ...]:
    """Rows by semicolons, costs by commas; ValueError for what is no cost."""
    rows = tuple(tuple(cost.strip() for cost in row.split(",")) for row in given.split(";"))
    for cost in (cost for row in rows for cost in row):
        if not cost.isascii() or not cost.isdecimal() or len(cost) > 4 or int(cost) > _MOST_COST:
            raise ValueError(f"{what} = {given!r} has {cost!r}, and a cost is a whole number from 0 to {_MOST_COST}")
    return tuple(tuple(map(int, row)) for row in rows)
