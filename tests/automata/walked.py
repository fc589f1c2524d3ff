"""Blocks of an automaton beside a walk through its table."""

from __future__ import annotations

import numpy as np

from compiler.automata.table import Table
from compiler.automata.turning import turnings
from compiler.compiled import run_blocks
from constructions.automata.automaton import Automaton, table_json
from tests.automata.tables import answers


def most_layers(construction: Automaton) -> int:
    """A block for each level, two on Mamba-2, and one for the answer; where the delta rule counts or swaps, four for
    each level, counted level or swap in a row, and two. Four for a count alone.
    """
    if construction.turns is not None:
        return 4
    levels, arch = len(construction.cascade.levels), construction.arch
    if construction.moduli:
        return 4 * (levels + len(construction.moduli)) + 2
    if construction.reflects:
        return 4 * (levels + sum(turning.columns for turning in turnings(construction.cascade))) + 2
    return max(1, (levels if arch == "mamba" else 2 * levels) + 1)


def assert_blocks_answer(table: Table, arch: str, length: int, count: int = 12, seed: int = 0) -> None:
    """So many random words of a length, behind each letter; no more blocks than `most_layers`."""
    construction = Automaton(table=table_json(table), arch=arch, max_length=length)  # type: ignore[arg-type]
    construction.check_sizes()
    compiled, alphabet = construction.compiled(), construction.alphabet()
    assert len(compiled.blocks) <= most_layers(construction)
    letters = np.array([alphabet.index(letter) for letter in table.letters])
    words = np.random.default_rng(seed).integers(len(letters), size=(count, length))
    said = (run_blocks(compiled, letters[words])[-1] @ compiled.head.toarray().T).argmax(axis=-1)
    for word, row in zip(words.tolist(), said.tolist(), strict=True):
        assert [alphabet.tokens[i] for i in row] == answers(table, word)
