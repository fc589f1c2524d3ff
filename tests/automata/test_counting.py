"""Automata whose letters permute and commute, against their tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compiler.automata.counting import counting_of
from compiler.automata.table import minimal
from compiler.compiled import run_blocks
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED

COUNTED = ["parity", "tomita-5", "tomita-6", "aaaa-star", "modulo-3", "modulo-5", "cycle-5"]


@pytest.mark.parametrize("name", COUNTED)
def test_the_counts_are_the_state(name: str) -> None:
    table = minimal(NAMED[name].make())
    counting = counting_of(table, table.outputs)
    assert counting is not None
    for length in range(1, 6):
        for word in product(range(len(table.letters)), repeat=length):
            sums = (sum(counting.weights[a][j] for a in word) % m for j, m in enumerate(counting.moduli))
            assert counting.outputs[tuple(sums)] == table.run([table.letters[a] for a in word])


@pytest.mark.parametrize("name", ["tomita-3", "tomita-1", "s3", "abab-star", "ends-with-abb"])
def test_others_are_not_counted(name: str) -> None:
    table = minimal(NAMED[name].make())
    assert counting_of(table, table.outputs) is None


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
    with pytest.raises(ValueError, match="modulo 2 follow to a bounded length only: .*--length 2048 works"):
        construction.check_sizes()
