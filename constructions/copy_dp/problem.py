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
        transition=lambda cell, letters, values: minimum(*values) + letters[0],
        plain=lambda cell, letters, values: min(values) + letters[0],
    )

`construct dp FILE.py:GRID` builds, verifies and saves it. The chain holds the value of each cell in the order of
`cells`, then the largest (or the least) one where `answer` asks for it, then `.`.

Circuit. The cell that comes next is a one-hot of the number of entries so far; the entries stand in one memory under
the cells' numbers, the letters in another one; each dependency is one read with a query that is a matrix times the
one-hot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import integer
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import OneHot
from compiler.language.words import constant, running_max, select
from constructions.copy_dp.chains import END, leaving, numbers, repeated, written
from constructions.copy_dp.problem_checks import check
from verify.arguments import run_own
from verify.tasks.solvers.tables import TableSolver

BAR, ASK, OUTSIDE = "|", ";", "!"


@dataclass(frozen=True)
class Cell:
    """The cell that comes next, as streams."""

    problem: DPProblem
    one_hot: Stream

    def table(self, entry: Callable[..., int]) -> Stream:
        """entry(*cell), an integer for each cell."""
        told = [integer(entry(*cell), f"the table's entry of cell {cell}") for cell in self.problem.cells]
        return np.array([told], dtype=float) @ self.one_hot


@dataclass(frozen=True)
class DPProblem:
    """A table over a fixed set of cells.

    name:       of the circuit; letters: the input alphabet; inputs: how many letters each input sequence has.
    cells:      tuples, in the order in which their values are written; a cell needs earlier ones only.
    reads:      cell → the (input, index) pairs whose letters it needs; needs: cell → the cells whose values it needs.
                Both give lists of one length for every cell; what does not exist reads as letter `blank`, value
                `missing`.
    transition: (Cell, letters, values) → the value as a stream; letters are streams of ranks among `letters`, from 0
        on.
    plain:      the same on integers, with the cell as a tuple: what the chain is verified against where no other solver
        is.
    largest:    values are 0 … largest; one outside of them is written as `!`, which ends the promise.
    answer:     what is written behind the last cell: nothing ("last": it is the answer itself), the "max" or the "min".
    said:       what its promise tells of prompts and values beside, such as how "none" is written; one line.
    """

    name: str
    letters: Sequence[str]
    inputs: tuple[int, ...]
    cells: Sequence[tuple[Hashable, ...]]
    reads: Callable[..., list]
    needs: Callable[..., list]
    transition: Callable[[Cell, list[Stream], list[Stream]], Stream]
    largest: int
    plain: Callable[[tuple, list[int], list[int]], int] | None = None
    missing: int = 0
    blank: int = -1
    answer: Literal["last", "max", "min"] = "last"
    said: str = ""

    def __post_init__(self) -> None:
        check(self)

    def alphabet(self) -> Alphabet:
        return Alphabet.of(BAR, ASK, END, OUTSIDE, letter=list(self.letters), number=numbers(self.largest))

    def entries(self) -> int:
        """How many numbers the chain has."""
        return len(self.cells) + (self.answer != "last")

    def places(self) -> int:
        """From how many places Theorem 3 copies: those of the input and those of the entries."""
        return sum(self.inputs) + self.entries()

    def language(self) -> InputLanguage:
        """Inputs of their lengths with `|` between, `;`, and the entries."""
        edges, state = [], "start"
        for i, length in enumerate(self.inputs):
            states, letters = repeated(state, "letter", length)
            state = f"input{i + 1}" if i + 1 < len(self.inputs) else "chain"
            edges += letters + leaving(states[-1:], state, [BAR if state != "chain" else ASK])
        states, values = repeated("chain", "number", self.entries())
        edges += values + leaving(states[-1:], "end", [END]) + [("end", "end", [END])]
        length = sum(self.inputs) + len(self.inputs) + self.entries() + 1
        shown = " and ".join(map(str, self.inputs))
        text = f"inputs of {shown} letters, and what the model itself writes after them"
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
        cell = Cell(self, index.one_hot(len(self.cells)).named("cell"))
        operands = cell, self._letters(x, cell), self._values(entry, value, index, cell)
        following = run_own(f"{self.name}: its transition", self.transition, *operands)
        if isinstance(following, int):
            following = constant(following)
        if not isinstance(following, Stream):
            raise ValueError(f"{self.name}: its transition gives {following!r}, and a stream is needed")
        if self.answer != "last":
            following = select(index >= len(self.cells), self._aggregated(entry, value), following)
        outside = (following < 0) | (following > self.largest)
        values = {name: int(name) for name in numbers(self.largest)}
        return written(x.alphabet, following, values, [(index >= self.entries(), END), (outside, OUTSIDE)], dtype)

    def _letters(self, x: Tokens, cell: Cell) -> list[Stream]:
        rank = x.number({name: i for i, name in enumerate(self.letters)}, "letter")
        place, size = x.is_in("letter").cumsum().named("place"), sum(self.inputs)
        text = memory.write((place - 1).one_hot(size), rank, when=x.is_in("letter"), policy="once", name="letters")
        starts = np.concatenate([[0], np.cumsum(self.inputs)])

        def where(part: int, index: int) -> int | None:
            return int(starts[part]) + index if 0 <= index < self.inputs[part] else None

        return self._reads(
            text, cell, [[where(*found) for found in self.reads(*own)] for own in self.cells], size, self.blank
        )

    def _values(self, entry: Stream, value: Stream, index: Stream, cell: Cell) -> list[Stream]:
        size, order = len(self.cells), {own: i for i, own in enumerate(self.cells)}
        table = memory.write((index - 1).one_hot(size), value, when=entry, policy="once", name="table")
        return self._reads(
            table, cell, [[order.get(c) for c in self.needs(*own)] for own in self.cells], size, self.missing
        )

    def _reads(
        self, source: memory.Memory, cell: Cell, places: list[list[int | None]], size: int, absent: int
    ) -> list[Stream]:
        """One read for each dependency: a 0/1 matrix on the cell's one-hot, and the number for what is not there."""
        found = []
        for column in zip(*places, strict=True):
            query = np.zeros((size, len(self.cells)))
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
