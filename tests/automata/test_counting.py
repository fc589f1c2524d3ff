"""Automata whose letters permute and commute, against their tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compiler.automata import counting
from compiler.automata.counting import counting_of
from compiler.automata.table import Table, minimal
from compiler.compiled import run_blocks
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED

COUNTED = ["parity", "tomita-5", "tomita-6", "aaaa-star", "modulo-3", "modulo-5", "cycle-5"]


@pytest.mark.parametrize("name", COUNTED)
def test_the_counts_are_the_state(name: str) -> None:
    table = minimal(NAMED[name].make())
    found = counting_of(table, table.outputs)
    assert found is not None
    for length in range(1, 6):
        for word in product(range(len(table.letters)), repeat=length):
            sums = (sum(found.weights[a][j] for a in word) % m for j, m in enumerate(found.moduli))
            assert found.outputs[tuple(sums)] == table.run([table.letters[a] for a in word])


@pytest.mark.parametrize("name", ["tomita-3", "tomita-1", "s3", "abab-star", "ends-with-abb"])
def test_others_are_not_counted(name: str) -> None:
    table = minimal(NAMED[name].make())
    assert counting_of(table, table.outputs) is None


@pytest.mark.parametrize("shifts", [[0] * 300 + [1] * 300, range(250)], ids=["two", "all different"])
def test_many_letters_cost_as_much_as_the_generators_that_they_are_of(shifts, monkeypatch) -> None:
    """Of 250 states on a ring, moved on by so many places: one generator, with which nothing else is composed."""
    composed = []
    monkeypatch.setattr(counting, "_behind", lambda a, b: composed.append(0) or tuple(b[s] for s in a))
    following = tuple(tuple((state + shift) % 250 for shift in shifts) for state in range(250))
    names = tuple(map(str, range(250)))
    found = counting_of(Table(tuple(f"a{i}" for i in range(len(shifts))), following, 0, names, names), names)
    assert found is not None and found.moduli == (250,) and len(composed) <= 2 + 250
    step = next(w for w in range(250) if found.outputs[(w,)] == "1")
    assert [found.outputs[w] for w in found.weights] == [str(shift % 250) for shift in shifts] and step


def test_two_generators_that_do_not_commute_are_no_counts() -> None:
    names = ("a", "b")
    for turn, swap, counted in (((1, 2, 3, 0), (2, 3, 0, 1), True), ((1, 2, 3, 0), (0, 3, 2, 1), False)):
        states = tuple("0123")
        found = counting_of(Table(names, tuple(zip(turn, swap, strict=True)), 0, states, states), states)
        assert (found is not None) == counted


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", COUNTED[:3])
def test_counts_are_built_to_a_bounded_length(name: str, arch: str) -> None:
    table = NAMED[name].make()
    construction = Automaton(table=table_json(table), arch=arch, max_length=12)
    construction.check_sizes()
    compiled, alphabet = construction.compiled(), construction.alphabet()
    rows = np.random.default_rng(0).integers(len(table.letters), size=(40, 12))
    said = (run_blocks(compiled, rows)[-1] @ compiled.head.toarray().T).argmax(axis=-1)
    for row, answers in zip(rows.tolist(), said.tolist(), strict=True):
        word = [table.letters[i] for i in row]
        assert [alphabet.tokens[a] for a in answers] == [table.run(word[: t + 1]) for t in range(12)]


def test_a_longer_promise_is_refused_with_the_length_that_works() -> None:
    construction = Automaton(table=table_json(NAMED["parity"].make()))
    with pytest.raises(ValueError, match="modulo 2 follow to a bounded length only: .*--length 2048 makes a model of"):
        construction.check_sizes()
