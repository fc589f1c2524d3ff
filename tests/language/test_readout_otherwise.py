"""`readout_one_hot(…, otherwise=…)`, and languages of some letters of an alphabet."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, interpret, readout_one_hot

LETTERS = Alphabet.of("a", "b", "c", "-")


def test_the_other_token_leads_where_no_lane_is_1() -> None:
    before = Tokens(LETTERS).one_hot("a", "b").shift(1)
    scores = readout_one_hot(before, LETTERS, ["a", "b"], otherwise="-")
    circuit = Circuit("before", scores, InputLanguage.everything(LETTERS, 4, ("a", "b", "c")))
    (found,) = interpret(circuit, np.array([[0, 1, 2, 0]]))[circuit.output]
    assert found.tolist() == [[0, 0, 0, 1], [2, 0, 0, 1], [0, 2, 0, 1], [0, 0, 0, 1]]


def test_the_other_token_is_no_member() -> None:
    with pytest.raises(ValueError, match="readout_one_hot"):
        readout_one_hot(Tokens(LETTERS).one_hot("a", "-"), LETTERS, ["a", "-"], otherwise="-")


def test_a_language_of_some_letters() -> None:
    language = InputLanguage.everything(LETTERS, 3, ["a", "c"])
    assert language.description == "every sequence of a c"
    assert language.accepts([0, 2, 0]) and not language.accepts([0, 1]) and not language.accepts([0] * 4)
    assert InputLanguage.everything(LETTERS, 3).description == "every sequence of the 4 tokens"
