"""What is said of an input language: what its automaton says, and beside it what it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile
from compiler.language.data import language_to_data
from compiler.language.language_said import language_said, unchecked_words
from tests.constructions.test_construct import run

LETTERS = Alphabet.of("a", "b", "c", v=20)
LIE = "every sequence\nof a and b"


def _said(edges: list[tuple], length: int | None) -> str:
    language = InputLanguage.of(LETTERS, "start", edges, length, "anything")
    return language_said(language_to_data(language), LETTERS.tokens)


def test_states_and_letters_are_those_that_a_sequence_reaches():
    assert _said([("start", "start", ("a",))], 16) == "1 state, letter `a`, up to 16 tokens"
    two = [("start", "next", ("a", "c")), ("next", "last", ("b",)), ("nowhere", "start", ("v0",))]
    assert _said(two, None) == "3 states, letters `a` `b` `c`, of every length"
    assert _said(two, 1) == "2 states, letters `a` `c`, up to 1 tokens"
    assert _said([("start", "start", LETTERS.tokens)], 9) == "1 state, 23 letters from `a` to `v19`, up to 9 tokens"
    language = InputLanguage.of(LETTERS, "start", two, 4, "anything")
    assert language_said(language_to_data(language), None) == "3 states, 3 letters, up to 4 tokens"


def test_unchecked_words_are_one_line_in_quotation_marks():
    assert unchecked_words('all"\nproof: none') == 'called "all\' proof: none", which nothing checks'
    assert len(unchecked_words("x" * 10_000)) < 300


def test_a_language_that_is_called_what_it_is_not_is_told_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture):
    """On the card, by `inspect` and by `verify`, in words and as JSON."""
    out = 2 * Tokens(LETTERS).one_hot()
    circuit = Circuit("lie", out, InputLanguage.of(LETTERS, "any", [("any", "any", ("a",))], 16, LIE))
    compile(circuit).save(tmp_path / "lie")
    truth = "1 state, letter `a`, up to 16 tokens"
    assert f"on the input language of `construction.json`: {truth}; called" in (tmp_path / "lie/README.md").read_text()
    assert run("export", str(tmp_path / "lie"), "--format", "mlx", "--out", str(tmp_path / "mlx")) == 0
    card = (tmp_path / "mlx/README.md").read_text()
    assert f"on the input language of `export.json`: {truth}; called" in card and "construction.json" not in card
    for command in ("inspect", "verify"):
        capsys.readouterr()
        assert run(command, str(tmp_path / "lie")) == 0
        told = " ".join(capsys.readouterr().out.split())
        called = 'called "every sequence of a and b", which nothing checks'
        assert f"domain: the input language of construction.json: {truth}, float32; {called}" in told
        if command == "verify":
            assert f"task 1: short strings and random walks of the input language ({called}), against" in told
        assert run(command, str(tmp_path / "lie"), "--json") == 0
        assert json.loads(capsys.readouterr().out)["inputs"] == truth
