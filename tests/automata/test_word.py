"""The word `automaton`: what it takes, what it refuses, what it compiles to."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from automata.fa.dfa import DFA

from compiler.automata.table import Table, minimal
from compiler.automata.word import automaton
from compiler.compiled import run_blocks
from compiler.interpreter import interpret
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import decide
from constructions.automata.languages import NAMED
from tests.automata.tables import random_table

LETTERS = Alphabet.of("a", "b", "c")
EVEN = {"even": {"a": "odd", "b": "even"}, "odd": {"a": "even", "b": "odd"}}
ENDS = {"no": {"a": "seen", "b": "no"}, "seen": {"a": "seen", "b": "yes"}, "yes": {"a": "seen", "b": "no"}}


def values(stream, word: str) -> list[list[int]]:
    circuit = Circuit("one", stream, InputLanguage.everything(LETTERS, 100))
    ids = np.array([[LETTERS.index(letter) for letter in word]])
    return interpret(circuit, ids)[circuit.output][0].astype(int).tolist()


def test_a_table_gives_the_state_and_other_tokens_leave_it() -> None:
    state = automaton(ENDS, Tokens(LETTERS), start="no")
    assert values(state, "bacb") == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    accepted = automaton(ENDS, Tokens(LETTERS), accept=["yes", "no"])
    assert values(accepted, "bacb") == [[1], [0], [0], [1]]


def test_an_automaton_of_the_library_is_taken() -> None:
    given = DFA(states=set(ENDS), input_symbols={"a", "b"}, transitions=ENDS, initial_state="no", final_states={"yes"})
    flag = automaton(given, Tokens(LETTERS))
    for word in map("".join, product("ab", repeat=4)):
        assert values(flag, word)[-1] == [int(given.accepts_input(word))]


@pytest.mark.parametrize(
    "transitions, options, said",
    [
        (EVEN, {}, "holds the group C_2, and only star-free ones"),
        ({"p": {"x": "p"}}, {}, "letter 'x', which is no token"),
        ({"p": {"a": "p", "b": "p"}, "q": {"a": "p"}}, {}, "not total"),
        (ENDS, {"accept": ["maybe"]}, "accept names 'maybe'"),
        ("(ab)*", {"start": "p"}, "leave start and accept out"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(transitions, options, said) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        automaton(transitions, Tokens(LETTERS), **options)
    with pytest.raises(TypeError, match="a DFA of automata-lib is needed"):
        automaton(7, Tokens(LETTERS))


STAR_FREE = [
    table
    for seed in range(60)
    if decide(table := random_table(seed, 2 + seed % 5, "ab" if seed % 2 else "abc")).levels is not None
]


@pytest.mark.parametrize("arch, per_level", [("mamba", 1), ("mamba2", 2)])
@pytest.mark.parametrize("table", STAR_FREE[:12], ids=range(12))
def test_a_level_takes_a_block_on_mamba_and_two_on_mamba_2(table, arch, per_level) -> None:
    construction = Automaton(table=table_json(table), arch=arch)
    compiled = construction.compiled()
    levels = len(construction.cascade.levels)
    assert len(compiled.blocks) <= max(1, per_level * levels + 1)
    alphabet = construction.alphabet()
    rows = np.array(list(product(range(len(table.letters)), repeat=6)))
    scores = run_blocks(compiled, rows)[-1] @ compiled.head.toarray().T
    said = scores.argmax(axis=-1)
    for row, answers in zip(rows.tolist(), said.tolist(), strict=True):
        word = [table.letters[i] for i in row]
        assert [alphabet.tokens[a] for a in answers] == [table.run(word[: t + 1]) for t in range(6)]


def test_numbers_of_a_level_keep_their_bounds() -> None:
    """A level's number is a sum of latched ramps; no number of a deep cascade grows with its depth."""
    compiled = Automaton(table=table_json(NAMED["d-8"].make())).compiled()
    assert compiled.lane_bounds().max() < 64


def test_a_class_that_no_word_leads_to_is_a_token_all_the_same() -> None:
    rows = ((0, 0), (0, 1))
    construction = Automaton(table=table_json(Table(("a", "b"), rows, 0, ("no", "yes"), ("p", "q"))))
    assert construction.classes == ("no", "yes") and construction.tasks() and construction.asks()
    assert len(construction.compiled().blocks) <= 1


def test_the_promise_of_every_length_is_said() -> None:
    construction = Automaton(table=table_json(minimal(NAMED["tomita-2"].make())))
    assert construction.max_length is None and construction.circuit().token_language.every_length
    short = Automaton(table=construction.table, max_length=100).circuit().token_language
    assert not short.every_length and short.max_length == 100
