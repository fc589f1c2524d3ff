"""The circuit of a cascade with groups, beside its automaton, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.automata.images import images
from compiler.automata.table import Table, minimal
from compiler.automata.turned import matches, turned_levels, turned_output, turned_scores
from compiler.automata.turning import turning_cascade
from compiler.interpreter import interpret
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.operations import Permute
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from tests.automata.groups import alternating, cyclic, group_table, symmetric
from tests.spread import some

GROUPS = ["parity", "tomita-3", "tomita-5", "aaaa-star", "abab-star", "modulo-5", "cycle-5", "s3", "s4", "a5"]
EVERY = {"C_5": cyclic(5), "S_3": symmetric(3), "A_5": alternating(5)}


def wrong(table: Table, length: int = 40, rows: int = 3) -> int:
    """Answers of the circuit that are not the automaton's, on random words."""
    table = minimal(table)
    cascade = turning_cascade(images(table), table.outputs)
    tokens = Tokens(Alphabet.of(*dict.fromkeys((*table.letters, *table.outputs))))
    letter = tokens.number({name: i for i, name in enumerate(table.letters)})
    levels = turned_levels(cascade, letter, len(table.letters))
    outputs = list(dict.fromkeys(table.outputs))
    scored = matches(cascade, levels)
    if scored:
        answer: Stream = turned_scores(cascade, levels, outputs)
    else:
        answer = turned_output(cascade, levels, {output: i for i, output in enumerate(outputs)})
    circuit = Circuit("followed", answer)
    assert any(isinstance(s.operation, Permute) for s in circuit.streams)
    words = np.random.default_rng(0).integers(len(table.letters), size=(rows, length))
    said = interpret(circuit, words)[answer]
    if scored:
        first = np.sort(said, axis=-1)[..., -2:]
        assert (first[..., 1] - first[..., 0] >= 1).all()
    said = said.argmax(axis=-1) if scored else said[..., 0]
    found = 0
    for word, row in zip(words.tolist(), said.tolist(), strict=True):
        state = table.start
        for letter_at, number in zip(word, row, strict=True):
            state = table.following[state][letter_at]
            found += table.outputs[state] != outputs[int(number)]
    return found


@pytest.mark.parametrize("name", GROUPS)
def test_named_languages(name: str) -> None:
    assert wrong(NAMED[name].make()) == 0


@pytest.mark.parametrize("name", EVERY)
def test_groups_with_every_element_as_a_letter(name: str) -> None:
    assert wrong(group_table(EVERY[name])) == 0


def test_random_automata_with_resets_below_groups() -> None:
    chosen = some([number for number in range(40) if number not in (22, 3, 8)], 0.04)  # these have thousands of lanes
    followed = [drawn(number) for number in chosen if images(minimal(drawn(number))).permutations]
    assert len(followed) > 0.4 * len(chosen) and sum(wrong(table) for table in followed) == 0
