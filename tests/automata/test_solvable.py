"""Levels that a solvable group moves, taken apart into levels that powers of one permutation move."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import numpy as np
import pytest

import compiler.automata.solvable as solvable
from compiler.automata.cascade import Cascade, Level
from compiler.automata.counted import orders_of
from compiler.automata.permutations import Permutation
from compiler.automata.solvable import counting_cascade
from compiler.automata.table import NO, YES, Table, minimal
from constructions.automata.explain import decide
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from tests.automata.tables import answers
from tests.automata.walked import assert_blocks_answer

LENGTH = 24


def then(g: Permutation, h: Permutation) -> Permutation:
    """First g, then h."""
    return tuple(h[s] for s in g)


def word_problem(generators: dict[str, Permutation]) -> Table:
    """The states are the places that the letters permute; the answer is the place of 0."""
    places = len(next(iter(generators.values())))
    following = tuple(tuple(move[s] for move in generators.values()) for s in range(places))
    names = tuple(f"p{s}" for s in range(places))
    return Table(tuple(generators), following, 0, names, names)


GROUPS = {
    "C_2×C_2": {"a": (1, 0, 3, 2), "b": (2, 3, 0, 1)},
    "D_4": {"a": (1, 2, 3, 0), "b": (0, 3, 2, 1)},
    "A_4": {"a": (1, 2, 0, 3), "b": (1, 0, 3, 2)},
    "S_4": {"a": (1, 2, 3, 0), "b": (1, 0, 2, 3)},
    "Q_8": {"a": (1, 2, 3, 0, 5, 6, 7, 4), "b": (4, 7, 6, 5, 2, 1, 0, 3)},
    "C_7 with C_3": {"a": (1, 2, 3, 4, 5, 6, 0), "b": (0, 2, 4, 6, 1, 3, 5)},
    "S_3 and C_2 beside it": {"a": (1, 2, 0, 3, 4), "b": (1, 0, 2, 4, 3)},
}
CASES = {f"random {n}": drawn(n) for n in (2, 4, 21, 116)} | {"s3": NAMED["s3"].make(), "s4": NAMED["s4"].make()}


def closed(generators: list[Permutation]) -> set[Permutation]:
    found = {tuple(range(len(generators[0])))}
    while more := {then(g, h) for g in found for h in generators} - found:
        found |= more
    return found


def level(generators: list[Permutation]) -> Level:
    return Level(len(generators[0]), (), {(i,): move for i, move in enumerate(generators)})


@pytest.mark.parametrize("name", GROUPS)
def test_the_factors_are_cyclic_groups_on_one_another(name: str) -> None:
    moves = list(GROUPS[name].values())
    group, factors = closed(moves), solvable._series(level(moves))
    assert factors is not None and prod(len(factor.powers) for factor in factors) == len(group)
    counts = {g: solvable._counts_of(factors, g) for g in group}
    assert len(set(counts.values())) == len(group)
    for g, h in product(group, moves):
        action, after = h, []
        for factor, a in zip(factors, counts[g], strict=True):
            to, action = factor.left(a, action)
            after.append(to)
        assert tuple(after) == counts[then(g, h)]


@pytest.mark.parametrize("moves", [[(1, 2, 3, 4, 0), (1, 0, 2, 3, 4)], [(1, 2, 0, 3, 4), (0, 1, 3, 4, 2)]])
def test_groups_that_are_not_solvable_have_no_factors(moves: list[Permutation]) -> None:
    assert solvable._series(level(moves)) == []


def test_large_groups_are_not_gone_through() -> None:
    moves = [(1, 2, 3, 0, 4, 5, 6, 7), (1, 0, 2, 3, 4, 5, 6, 7), (4, 5, 6, 7, 0, 1, 2, 3)]  # S_4 twice, and a swap
    assert len(closed(moves)) == 1152 and solvable._series(level(moves)) is None


def walked(cascade: Cascade, word: list[int]) -> list:
    held, said = cascade.start, []
    for letter in word:
        said.append(cascade.output(held, letter))
        held = cascade.step(held, letter)
    return said


def of_groups() -> dict[str, Table]:
    return {name: word_problem(generators) for name, generators in GROUPS.items()}


@pytest.mark.parametrize("name", [*GROUPS, *CASES])
def test_the_cascade_is_the_automaton(name: str) -> None:
    table = (of_groups() | CASES)[name]
    cascade = counting_cascade(minimal(table))
    assert cascade is not None and orders_of(cascade)
    for word in np.random.default_rng(1).integers(len(table.letters), size=(20, 60)).tolist():
        assert walked(cascade, word) == answers(table, word)


def test_a_reset_sets_every_count() -> None:
    """S_3 on three places of four states, reset to each of these, and to the fourth."""
    moves = {"a": (1, 2, 0, 3), "b": (1, 0, 2, 3)} | {"cdef"[s]: (s,) * 4 for s in range(4)}
    table = word_problem(moves)
    cascade = counting_cascade(minimal(table))
    assert cascade is not None and set(orders_of(cascade) or ()) == {2, 3}
    for word in product(range(6), repeat=5):
        assert walked(cascade, list(word)) == answers(table, list(word))


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", ["s3", "random 4", "A_4"])
def test_blocks_answer_what_the_table_answers(name: str, arch: str) -> None:
    assert_blocks_answer((of_groups() | CASES)[name], arch, LENGTH)


def test_the_decision_says_what_is_counted() -> None:
    said = decide(NAMED["s3"].make())
    assert (
        said.bounded == 1536
        and "Mamba and Mamba-2: counts modulo 2, 3 follow it to a bounded length: at most 1,536 letters." in said.says
    )
    assert decide(NAMED["s4"].make()).bounded == 1536
    assert decide(NAMED["a5"].make()).bounded is None


def test_every_permutation_of_three_places_is_told() -> None:
    """All of S_3 as letters, as the word problem has it."""
    table = word_problem({"abcdef"[i]: move for i, move in enumerate(permutations(range(3)))})
    cascade = counting_cascade(minimal(table))
    assert cascade is not None and orders_of(cascade) == (2, 3)
    accepted = Table(table.letters, table.following, 0, (YES, NO, NO), table.names)
    for word in product(range(6), repeat=4):
        assert walked(cascade, list(word)) == answers(table, list(word))
        assert (answers(accepted, list(word))[-1] == YES) == (answers(table, list(word))[-1] == "p0")
