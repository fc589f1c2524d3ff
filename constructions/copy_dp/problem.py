"""A dynamic program of one's own, as Theorem 3 states it: what a cell needs is a 0/1 matrix on its one-hot.

    from compiler import minimum
    from constructions.copy_dp.problem import DPProblem

    GRID = DPProblem(
        name="cheapest-path",
        letters="abc",  # tolls 0, 1, 2
        inputs=(9,),
        cells=[(r, c) for r in range(3) for c in range(3)],
        reads=lambda r, c: [(0, 3 * r + c)],
        needs=lambda r, c: [(r - 1, c), (r, c - 1)],
        missing=100,
        largest=20,
        transition=lambda cell, letters, values: (  # the first cell reads `missing` twice, and begins at 0
            minimum(*values) + letters[0] - cell.table(lambda r, c: 100 * (r == c == 0))
        ),
        plain=lambda cell, letters, values: (0 if cell == (0, 0) else min(values)) + letters[0],
    )

`construct dp FILE.py:GRID` builds, verifies and saves it. The chain holds the value of each cell in the order of
`cells`, then the answer where `answer` asks for one, then `.`.

Lengths may be read from the separators, as in the proof of Theorem 3: an input whose length is a `range` has any of
these. Then n, the tuple of lengths, is what `cells` is a function of, and stands before the cell wherever a function
of the problem is given one: `reads(n, r, c)`, `needs(n, r, c)`, `plain((n, r, c), …)`, `cell.table(lambda n, r, c: …)`.
The answer may be any circuit of chosen cells, such as of the last row: an `Aggregation`.

Circuit. The cell that comes next is a one-hot of the number of entries so far; the entries stand in one memory under
the cells' numbers, the letters in another one; each dependency is one read with a query that is a matrix times the
one-hot. Where lengths vary, each is latched at its separator, and the one-hot is over the cells of all sizes: it is
shifted to where those of this size begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import counted, integer, spanned
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import Bool, OneHot
from compiler.language.words import constant, count, latch, running_max, select
from constructions.copy_dp.chains import END, leaving, numbers, repeated, written
from constructions.copy_dp.problem_checks import check
from constructions.copy_dp.problem_data import Aggregation, ProblemData
from constructions.copy_dp.problem_plan import Plan, State, before, plan_of
from verify.arguments import Given, run_own
from verify.tasks.solvers.tables import TableSolver

BAR, ASK, OUTSIDE = "|", ";", "!"


@dataclass(frozen=True)
class Cell:
    """The cell that comes next, as streams."""

    problem: DPProblem
    one_hot: Stream

    def table(self, entry: Callable[..., int]) -> Stream:
        """entry(*cell), or entry(n, *cell) where lengths vary: an integer for each cell."""

        def told(state: State) -> int:
            if state.cell is None:
                return 0
            found = entry(*before(self.problem, state.size), *state.cell)
            return integer(found, f"the table's entry of cell {state.cell}")

        return np.array([list(map(told, self.problem.plan.states))], dtype=float) @ self.one_hot


@dataclass(frozen=True)
class DPProblem(ProblemData):
    """A table over cells that the lengths of the inputs decide.

    name:       of the circuit; letters: the input alphabet; inputs: how many letters each input sequence has, or a
        range of such numbers: then its separator tells.
    cells:      tuples, in the order in which their values are written; a cell needs earlier ones only. Where a length
        is a range: a function of n that gives them.
    reads:      cell → the (input, index) pairs whose letters it needs; needs: cell → the cells whose values it needs.
                Both give lists of one length for every cell; what does not exist reads as letter `blank`, value
                `missing`.
    transition: (Cell, letters, values) → the value as a stream; letters are streams of ranks among `letters`, from 0
        on.
    plain:      the same on integers, with the cell as a tuple: what the chain is verified against where no other solver
        is.
    largest:    values are 0 … largest; one outside of them is written as `!`, which ends the promise.
    answer:     what is written behind the last cell: nothing ("last": it is the answer itself), the "max" or the "min"
        of all cells, or an Aggregation of some.
    said:       what its promise tells of prompts and values beside, such as how "none" is written; one line.
    """

    def __post_init__(self) -> None:
        check(self)

    def alphabet(self) -> Alphabet:
        return Alphabet.of(BAR, ASK, END, OUTSIDE, letter=list(self.letters), number=numbers(self.largest))

    @property
    def most(self) -> tuple[int, ...]:
        """The largest length of each input."""
        return tuple(max(given) if isinstance(given, range) else given for given in self.inputs)

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self)

    def places(self) -> int:
        """From how many places Theorem 3 copies: those of the input and those of the entries."""
        return sum(self.most) + self.plan.longest

    def language(self) -> InputLanguage:
        """Inputs of their lengths with `|` between, `;`, and the entries."""
        edges, state = [], "start"
        for i, (given, most) in enumerate(zip(self.inputs, self.most, strict=True)):
            states, letters = repeated(state, "letter", most)
            ends = [states[length] for length in (given if isinstance(given, range) else (given,))]
            state = f"input{i + 1}" if i + 1 < len(self.inputs) else "chain"
            edges += letters + leaving(ends, state, [BAR if state != "chain" else ASK])
        states, values = repeated("chain", "number", self.plan.longest)
        ends = [states[length] for length in sorted(set(self.plan.entries.values()))]
        edges += values + leaving(ends, "end", [END]) + [("end", "end", [END])]
        length = sum(self.most) + len(self.inputs) + self.plan.longest + 1
        lengths = (sorted(given) if isinstance(given, range) else [given] for given in self.inputs)
        shown = " and ".join(map(spanned, lengths))
        text = f"inputs of {shown} letter{'s' * (shown != '1')}, and what the model itself writes after them"
        text += f" ({self.said})" if self.said else ""
        return InputLanguage.of(self.alphabet(), "start", edges, length, text, "chain")

    def circuit(self, dtype: str = "float32") -> Circuit:
        """The circuit; dtype: the format it is for, which decides how numbers are written."""
        return Circuit(self.name, self._scores(dtype), self.language(), end=END)

    def solver(self) -> TableSolver:
        if self.plain is None:
            raise ValueError(f"{self.name}: plain is None, and a transition on integers is needed to verify the chains")
        return TableSolver(self)

    def _scores(self, dtype: str) -> Stream:
        x = Tokens(self.alphabet())
        entry = x.is_in("number")
        value = x.number({name: int(name) for name in numbers(self.largest)}, "value")
        index = entry.cumsum().named("index")
        state, entries = self._state(x, index)
        cell = Cell(self, state.one_hot(len(self.plan.states)).named("cell"))
        letters, values = self._letters(x, cell), self._values(entry, value, index, cell)
        read = Given(letters, "letters", f"reads of {counted(len(letters), 'letter')}")
        needed = values[: self.plan.dependencies]
        needed = Given(needed, "values", f"needs of {counted(len(needed), 'cell')}")
        following = self._called("transition", self.transition, cell, read, needed)
        over = index >= entries
        if isinstance(self.answer, Aggregation):
            answers = np.array([[float(state.cell is None) for state in self.plan.states]])
            answer = self._called("aggregation", self.answer.circuit, values[: self.plan.gathered])
            following = select((answers @ cell.one_hot).retyped(Bool()), answer, following)
        elif self.answer != "last":
            following = select(index >= entries - 1, self._aggregated(entry, value), following)
        outside = (following < 0) | (following > self.largest)
        named = {name: int(name) for name in numbers(self.largest)}
        return written(x.alphabet, following, named, [(over, END), (outside, OUTSIDE)], dtype)

    def _called(self, what: str, function: Callable[..., Stream], *operands: object) -> Stream:
        """What a function of the problem gives, as a stream."""
        found = run_own(f"{self.name}: its {what}", function, *operands)
        if isinstance(found, int):
            found = constant(found)
        if not isinstance(found, Stream):
            raise ValueError(f"{self.name}: its {what} gives {found!r}, and a stream is needed")
        return found

    def _state(self, x: Tokens, index: Stream) -> tuple[Stream, Stream | int]:
        """(the present state, how many entries there are): where lengths vary, of the size that the separators tell."""
        if not self.varies:
            return index, self.plan.longest
        mark = x.is_in([BAR, ASK])
        number, so_far = mark.cumsum().named("separators"), count(x.is_in("letter"), reset=mark).shift(1)
        radix = [prod(most + 1 for most in self.most[:part]) for part in range(len(self.most))]
        lengths = [
            latch(so_far, when=mark & (number <= part + 1) & (number >= part + 1)).named(f"length {part + 1}")
            for part in range(len(self.most))
        ]
        code = sum(factor * length for factor, length in zip(radix, lengths, strict=True))
        tables = np.zeros((2, prod(most + 1 for most in self.most)))
        for size, start in self.plan.first.items():
            tables[:, sum(factor * n for factor, n in zip(radix, size, strict=True))] = start, self.plan.entries[size]
        told = (tables @ code.one_hot(tables.shape[1])).named("first state and entries")
        return index + told[0], told[1]

    def _letters(self, x: Tokens, cell: Cell) -> list[Stream]:
        rank = x.number({name: i for i, name in enumerate(self.letters)}, "letter")
        place, size = x.is_in("letter").cumsum().named("place"), sum(self.most)
        text = memory.write((place - 1).one_hot(size), rank, when=x.is_in("letter"), policy="once", name="letters")

        def where(state: State) -> list[int | None]:
            starts = np.concatenate([[0], np.cumsum(state.size)]).tolist()
            return [starts[part] + at if 0 <= at < state.size[part] else None for part, at in state.reads]

        width = len(self.plan.states[0].reads)  # of every cell; an answer reads no letter
        places = [where(state) if state.cell is not None else [None] * width for state in self.plan.states]
        return self._reads(text, cell, places, size, self.blank)

    def _values(self, entry: Stream, value: Stream, index: Stream, cell: Cell) -> list[Stream]:
        """What each state needs: the transition's values and the aggregation's come by the same reads."""
        plan = self.plan
        order = {(state.size, state.cell): i - plan.first[state.size] for i, state in enumerate(plan.states)}
        table = memory.write((index - 1).one_hot(plan.stored), value, when=entry, policy="once", name="table")
        width = max(plan.dependencies, plan.gathered)
        places = [
            [None if c is None else order.get((state.size, c)) for c in state.needs]
            + [None] * (width - len(state.needs))
            for state in plan.states
        ]
        return self._reads(table, cell, places, plan.stored, self.missing)

    def _reads(
        self, source: memory.Memory, cell: Cell, places: list[list[int | None]], size: int, absent: int
    ) -> list[Stream]:
        """One read for each dependency: a 0/1 matrix on the cell's one-hot, and the number for what is not there."""
        found = []
        for column in zip(*places, strict=True):
            query = np.zeros((size, len(places)))
            for number, place in enumerate(column):
                if place is not None:
                    query[place, number] = 1
            lacking = absent * (1 - query.sum(axis=0, keepdims=True))
            found.append(source.read((query @ cell.one_hot).retyped(OneHot(size))) + lacking @ cell.one_hot)
        return found

    def _aggregated(self, entry: Stream, value: Stream) -> Stream:
        """The largest or the least entry so far."""
        if self.answer == "max":
            return running_max(value, when=entry)
        return self.largest - running_max(self.largest - value, when=entry)
