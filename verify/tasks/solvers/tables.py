"""A table over a fixed set of cells, filled in order by a plain transition: the textbook for a DPProblem of
one's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from verify.arguments import run_own
from verify.tasks.chain import Solver


class TableSolver(Solver):
    """problem: has name, letters, inputs, cells, reads, needs, missing, blank, answer and plain(cell, letters,
    values).
    """

    def __init__(self, problem: Any):
        self.problem, self.name = problem, problem.name
        self.rank = {name: i for i, name in enumerate(problem.letters)}

    def chain(self, prompt: Sequence[str]) -> list[str]:
        problem = self.problem
        words = [[self.rank[name] for name in part.split()] for part in " ".join(prompt).removesuffix(";").split("|")]
        table: dict = {}
        for cell in problem.cells:
            letters = [words[w][i] if 0 <= i < len(words[w]) else problem.blank for w, i in problem.reads(*cell)]
            values = [table.get(other, problem.missing) for other in problem.needs(*cell)]
            found = run_own(f"{self.name}: plain of cell {cell}", problem.plain, cell, letters, values)
            table[cell] = self._in_range(cell, found)
        answer = {"last": [], "max": [max(table.values())], "min": [min(table.values())]}[problem.answer]
        return [*map(str, [*table.values(), *answer]), "."]

    def _in_range(self, cell: tuple, value: int) -> int:
        if not isinstance(value, int | np.integer):
            raise ValueError(f"{self.name}: plain gives {value!r} for cell {cell}, and an integer is needed")
        if not 0 <= value <= self.problem.largest:
            reach = f"values are declared to be 0 to {self.problem.largest}"
            advice = f"declare largest = {value} or more" if value > 0 else f"add {-value} to every value"
            raise ValueError(f"{self.name}: the value of cell {cell} can be {value}, and {reach}; {advice}")
        return int(value)

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for letters in product(self.problem.letters, repeat=sum(self.problem.inputs)):
            yield self._prompt(letters)

    def count(self) -> int:
        return len(self.rank) ** sum(self.problem.inputs)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        return self._prompt(
            [self.problem.letters[i] for i in rng.integers(len(self.rank), size=sum(self.problem.inputs))]
        )

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        size = sum(self.problem.inputs)
        yield "the first letter everywhere", self._prompt([self.problem.letters[0]] * size)
        yield "the last letter everywhere", self._prompt([self.problem.letters[-1]] * size)

    def describe(self) -> str:
        return f"{self.name}, a table of {len(self.problem.cells)} cells"

    def _prompt(self, letters: Sequence[str]) -> tuple[str, ...]:
        parts, rest = [], list(letters)
        for length in self.problem.inputs:
            parts += [*rest[:length], "|"]
            del rest[:length]
        return (*parts[:-1], ";")
