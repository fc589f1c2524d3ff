"""Finite automata."""

from __future__ import annotations

import re

from compiler.automata.word import automaton
from compiler.language.circuit import Circuit
from compiler.language.words import concatenate
from tests.circuits.case import abc, case, each, over_abc


@case(each(lambda w, t: int(re.fullmatch("(ab)*", "".join(w[: t + 1]).replace("c", "")) is not None)), exhaustive=5)
def accepted() -> Circuit:
    """Whether the a's and b's so far alternate, from an a to a b; c is no letter of the expression."""
    return over_abc("accepted", automaton("(ab)*", abc))


STEPS = {
    "low": {"a": "middle", "b": "low", "c": "low"},
    "middle": {"a": "high", "b": "low", "c": "low"},
    "high": {"a": "high", "b": "middle", "c": "low"},
}


def _place(word: list[str], t: int) -> str:
    state = "low"
    for letter in word[: t + 1]:
        state = STEPS[state][letter]
    return state


@case(each(lambda w, t: tuple(int(_place(w, t) == state) for state in STEPS)), exhaustive=5)
def climbed() -> Circuit:
    """On which of three steps a climber stands."""
    return over_abc("climbed", automaton(STEPS, abc))


@case(
    each(lambda w, t: (int(t > 0 and _place(w, t - 1) == "high"), int("a" in w[: t + 1] and _place(w, t) == "low"))),
    exhaustive=5,
)
def climbed_before() -> Circuit:
    """A state stream is like any other: it is delayed, and read beside a second automaton."""
    state, seen = automaton(STEPS, abc), automaton("(b|c)*a(a|b|c)*", abc)
    return over_abc("climbed_before", concatenate(state.shift(1)[2], seen & state[0]))
