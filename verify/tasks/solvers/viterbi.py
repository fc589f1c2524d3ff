"""The cheapest path of a hidden Markov model, by carrying a whole path for every state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from compiler.language.arguments import counted
from verify.tasks.chain import Solver

Costs = tuple[tuple[int, ...], ...]


class ViterbiSolver(Solver):
    """start: a cost for each state; transitions: row r, column s: the cost of going from r to s; emissions: row s,
    column o: the cost of seeing o in s.

    The chain has a row of costs for each observation, then the cheapest path, last state first. Among paths that cost
    the same the one that ends in the lowest state is taken, then the one whose last but one state is lowest, and so on.
    """

    name = "viterbi"

    def __init__(self, length: int, start: Sequence[int], transitions: Costs, emissions: Costs):
        self.length, self.start, self.transitions, self.emissions = length, start, transitions, emissions
        self.names = tuple(f"o{o}" for o in range(len(emissions[0])))

    def chain(self, prompt: Sequence[str]) -> list[str]:
        states = range(len(self.start))
        rows: list[list[tuple[int, tuple[int, ...]]]] = []
        for name in prompt[:-1]:
            seen = [emission[int(name[1:])] for emission in self.emissions]
            rows.append([min(self._ways(rows, s)) for s in states])
            rows[-1] = [(cost + seen[s], path) for s, (cost, path) in enumerate(rows[-1])]
        costs = " ; ".join(" ".join(str(cost) for cost, _ in row) for row in rows).split()
        _, best = min(rows[-1])
        return [*costs, "|", *(f"s{s}" for s in best), "."]

    def _ways(self, rows: list, state: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(cost, path, last state first) of every way to come to a state, before anything is seen there."""
        if not rows:
            yield self.start[state], (state,)
            return
        for before, (cost, path) in enumerate(rows[-1]):
            yield cost + self.transitions[before][state], (state, *path)

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for length in range(1, self.length + 1):
            for seen in product(self.names, repeat=length):
                yield (*seen, ";")

    def count(self) -> int:
        return sum(len(self.names) ** length for length in range(1, self.length + 1))

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        length = int(rng.integers(1, self.length + 1))
        return (*(self.names[i] for i in rng.integers(len(self.names), size=length)), ";")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "one observation", (self.names[0], ";")
        yield "the first one throughout", (*[self.names[0]] * self.length, ";")
        yield "the last one throughout", (*[self.names[-1]] * self.length, ";")
        yield "all in turn", (*[self.names[i % len(self.names)] for i in range(self.length)], ";")

    def describe(self) -> str:
        shown = f"{counted(len(self.start), 'state')}, {counted(len(self.names), 'kind')} of observations"
        return f"{self.name}, {shown}, at most {self.length} of them"
