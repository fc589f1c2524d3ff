"""Blocks of an automaton beside a walk through its table."""

from __future__ import annotations

import numpy as np

from compiler.automata.table import Table
from compiler.compiled import run_blocks
from constructions.automata.automaton import Automaton, table_json
from tests.automata.tables import answers


def assert_blocks_answer(table: Table, arch: str, length: int, count: int = 12, seed: int = 0) -> None:
    """So many random words of a length, behind each letter; the blocks keep within the construction's bound."""
    construction = Automaton(table=table_json(table), arch=arch, max_length=length)  # type: ignore[arg-type]
    construction.check_sizes()
    compiled, alphabet = construction.compiled(), construction.alphabet()
    assert len(compiled.blocks) <= construction.bound()["layers"]
    letters = np.array([alphabet.index(letter) for letter in table.letters])
    words = np.random.default_rng(seed).integers(len(letters), size=(count, length))
    said = (run_blocks(compiled, letters[words])[-1] @ compiled.head.toarray().T).argmax(axis=-1)
    for word, row in zip(words.tolist(), said.tolist(), strict=True):
        assert [alphabet.tokens[i] for i in row] == answers(table, word)
