"""The entries of a DPProblem's chain, in order, for each size of the problem: what each of them reads.

A size is the tuple n of the input lengths. Of a problem whose lengths are read from the separators every size has
states of its own, one after the other: the chain of size n starts at state `first[n]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from constructions.copy_dp.problem_data import Aggregation, ProblemData, Size


@dataclass(frozen=True)
class State:
    """An entry of a chain of size n: its cell, None for the answer of an Aggregation, and what it reads."""

    size: Size
    cell: tuple | None
    reads: Sequence[Any]
    needs: Sequence[Any]


@dataclass(frozen=True)
class Plan:
    """states: of all sizes; first: where those of each size begin; entries: how many numbers each chain has.

    stored: the most cells of a size; dependencies, gathered: how many values a cell and the answer need.
    """

    states: list[State]
    first: dict[Size, int]
    entries: dict[Size, int]
    stored: int

    @property
    def longest(self) -> int:
        return max(self.entries.values())

    @property
    def dependencies(self) -> int:
        return max(len(state.needs) for state in self.states if state.cell is not None)

    @property
    def gathered(self) -> int:
        return max((len(state.needs) for state in self.states if state.cell is None), default=0)


def sizes_of(problem: ProblemData) -> list[Size]:
    """Every n, in order; one where all lengths are fixed."""
    return list(product(*(given if isinstance(given, range) else (given,) for given in problem.inputs)))


def before(problem: ProblemData, size: Size) -> tuple:
    """What stands before the cell where the problem's functions are called: n where lengths vary, else nothing."""
    return (size,) if problem.varies else ()


def cells_of(problem: ProblemData, size: Size) -> Sequence[tuple]:
    return problem.cells(size) if callable(problem.cells) else problem.cells


def gathered(problem: ProblemData, size: Size) -> Sequence[tuple | None]:
    """The cells that an Aggregation reads; none where the answer is no Aggregation."""
    if not isinstance(problem.answer, Aggregation):
        return ()
    cells = problem.answer.cells
    return cells(size) if callable(cells) else cells


def plan_of(problem: ProblemData) -> Plan:
    """All states, from the problem's own functions."""
    states: list[State] = []
    first, entries, stored = {}, {}, 0
    for size in sizes_of(problem):
        first[size] = len(states)
        front = before(problem, size)
        states += [
            State(size, cell, problem.reads(*front, *cell), problem.needs(*front, *cell))
            for cell in cells_of(problem, size)
        ]
        stored = max(stored, len(states) - first[size])
        if isinstance(problem.answer, Aggregation):
            states.append(State(size, None, (), gathered(problem, size)))
        entries[size] = len(states) - first[size] + (problem.answer in ("max", "min"))
    return Plan(states, first, entries, stored)
