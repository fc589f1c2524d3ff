"""A table over the cells of a problem, filled in order by a plain transition: the textbook for a DPProblem of
one's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from compiler.language.arguments import counted, shown
from verify.arguments import Given, run_own, whole
from verify.tasks.chain import Solver

MOST_TRIED = 1 << 16  # values, before advice on all of them


class TableSolver(Solver):
    """problem: has name, letters, inputs, cells, reads, needs, missing, blank, answer and plain(cell, letters,
    values).

    Where an input has a range of lengths, cells is a function of the tuple n of lengths, and n stands before each cell.
    """

    def __init__(self, problem: Any):
        self.problem, self.name = problem, problem.name
        self.rank = {name: i for i, name in enumerate(problem.letters)}

    def chain(self, prompt: Sequence[str]) -> list[str]:
        values = self._values(prompt)
        outside = next(((what, value) for what, value in values if not 0 <= value <= self.problem.largest), None)
        if outside is not None:
            what, value = outside
            reach = f"values are declared to be 0 to {self.problem.largest}"
            raise ValueError(
                f"{self.name}: the value of {what} can be {shown(value)}, and {reach}; {self._advice(values)}"
            )
        return [*(str(value) for _, value in values), "."]

    def _values(self, prompt: Sequence[str]) -> list[tuple[str, int]]:
        """What the chain writes: the name of each value, and the value, whether it is declared or not."""
        problem = self.problem
        words = [[self.rank[name] for name in part.split()] for part in " ".join(prompt).removesuffix(";").split("|")]
        n = tuple(map(len, words))
        front = (n,) if callable(problem.cells) else ()
        table: dict = {}
        for cell in problem.cells(n) if front else problem.cells:
            reads, needs = problem.reads(*front, *cell), problem.needs(*front, *cell)
            letters = [words[w][i] if 0 <= i < len(words[w]) else problem.blank for w, i in reads]
            values = [table.get(other, problem.missing) for other in needs]
            given = (
                Given(letters, "letters", f"reads of {counted(len(letters), 'letter')}"),
                Given(values, "values", f"needs of {counted(len(values), 'cell')}"),
            )
            found = run_own(f"{self.name}: plain of cell {cell}", problem.plain, (*front, *cell), *given)
            table[cell] = self._integer(f"cell {cell}", found)
        return [*((f"cell {cell}", value) for cell, value in table.items()), *self._answer(n, table)]

    def _answer(self, n: tuple[int, ...], table: dict) -> list[tuple[str, int]]:
        answer, what = self.problem.answer, "the answer"
        if isinstance(answer, str):
            return {"last": [], "max": [(what, max(table.values()))], "min": [(what, min(table.values()))]}[answer]
        if answer.plain is None:
            raise ValueError(f"{self.name}: the answer's plain is None, and one on integers is needed to verify it")
        cells = answer.cells(n) if callable(answer.cells) else answer.cells
        values = [table.get(cell, self.problem.missing) for cell in cells]
        found = run_own(f"{self.name}: plain of the answer", answer.plain, values)
        return [(what, self._integer(what, found))]

    def _integer(self, what: str, value: int) -> int:
        if not whole(value):
            raise ValueError(f"{self.name}: plain gives {shown(value)} for {what}, and an integer is needed")
        return int(value)

    def _advice(self, values: list[tuple[str, int]]) -> str:
        """What holds the values of all prompts, where they are few; what those of this one need, where not."""
        few = self.count() * len(values) <= MOST_TRIED
        tried = (value for each in map(self._values, self.prompts()) for _, value in each) if few else ()
        found = [*(value for _, value in values), *tried]
        least = "" if few else "at least "
        if min(found) < 0:
            return f"add {least}{shown(-min(found))} to every value"
        return f"declare largest = {shown(max(found))}" if few else f"largest must be {least}{shown(max(found))}"

    def _sizes(self) -> list[tuple[int, ...]]:
        return list(product(*(given if isinstance(given, range) else (given,) for given in self.problem.inputs)))

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for size in self._sizes():
            for letters in product(self.problem.letters, repeat=sum(size)):
                yield self._prompt(letters, size)

    def count(self) -> int:
        return sum(len(self.rank) ** sum(size) for size in self._sizes())

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        sizes = self._sizes()
        size = sizes[rng.integers(len(sizes))] if len(sizes) > 1 else sizes[0]
        return self._prompt([self.problem.letters[i] for i in rng.integers(len(self.rank), size=sum(size))], size)

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        sizes = self._sizes()
        for size in dict.fromkeys((sizes[-1], sizes[0])):
            yield "the first letter everywhere", self._prompt([self.problem.letters[0]] * sum(size), size)
            yield "the last letter everywhere", self._prompt([self.problem.letters[-1]] * sum(size), size)

    def describe(self) -> str:
        cells = self.problem.cells
        if callable(cells):
            return f"{self.name}, tables of at most {counted(max(len(cells(size)) for size in self._sizes()), 'cell')}"
        return f"{self.name}, a table of {counted(len(cells), 'cell')}"

    def _prompt(self, letters: Sequence[str], size: Sequence[int]) -> tuple[str, ...]:
        parts, rest = [], list(letters)
        for length in size:
            parts += [*rest[:length], "|"]
            del rest[:length]
        return (*parts[:-1], ";")
