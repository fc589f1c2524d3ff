"""Circuits of readouts."""

from __future__ import annotations

from compiler.language import output
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.words import (
    present,
)
from tests.circuits.case import ABC, ALL, case, each, is_a, is_c, over_abc


@case(each(lambda w, t: "c" if "c" in w[: t + 1] else "b" if t and w[t - 1] == "a" else "a"), ALL)
def first_rule_that_holds() -> Circuit:
    return over_abc("emit", output.emit(ABC, (present(is_c), "c"), (is_a.shift(1), "b"), otherwise="a"))


DIGITS = Alphabet.of("+", d=5)


@case(each(lambda w, t: f"d{min(w[: t + 1].count('+'), 4)}"), ALL)
def tally_as_a_digit() -> Circuit:
    """Integer readout: the digit nearest to the number of pluses."""
    total = Tokens(DIGITS).is_in(["+"]).cumsum()
    scores = output.readout_integer(total, DIGITS, {f"d{i}": i for i in range(5)})
    return Circuit("tally_as_a_digit", scores, InputLanguage.everything(DIGITS, 6))
