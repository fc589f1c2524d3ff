"""Conjunctions and disjunctions of flags: truth tables, and one rectifier for a chain however it is nested."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate
from compiler.passes.logic import LONGEST_CHAIN, Logic

BITS = list(product((0, 1), repeat=3))  # the letters of the alphabet: every choice of three flags
ALPHABET = Alphabet.of(*("".join(map(str, bits)) for bits in BITS))
A, B, C = (
    Tokens(ALPHABET).is_in([name for name in ALPHABET.tokens if name[i] == "1"], name="abc"[i]) for i in range(3)
)


def _circuit(stream: Stream) -> Circuit:
    return Circuit("logic", stream, InputLanguage.everything(ALPHABET, 8))


def _table(stream: Stream) -> list[list[int]]:
    """What a stream of flags says of each choice of the three."""
    return interpret(_circuit(stream), np.arange(8)[None])[stream][0].tolist()


def _rectifiers(stream: Stream) -> int:
    return sum(isinstance(s.operation, ops.Relu) for s in _circuit(stream).streams)


FORMULAS = {
    "and": (lambda of: of.conjunction(A, B, C), lambda a, b, c: a and b and c),
    "or": (lambda of: of.disjunction(A, B, C), lambda a, b, c: a or b or c),
    "chained and": (lambda of: of.conjunction(of.conjunction(A, B), C), lambda a, b, c: a and b and c),
    "chained or": (lambda of: of.disjunction(A, of.disjunction(B, C)), lambda a, b, c: a or b or c),
    "nor and": (lambda of: of.conjunction(of.negation(of.disjunction(A, B)), C), lambda a, b, c: not (a or b) and c),
    "nand or": (lambda of: of.disjunction(of.negation(of.conjunction(A, B)), C), lambda a, b, c: not (a and b) or c),
    "negated twice": (
        lambda of: of.conjunction(of.negation(of.negation(of.conjunction(A, B))), C),
        lambda a, b, c: a and b and c,
    ),
}


@pytest.mark.parametrize(("build", "oracle"), FORMULAS.values(), ids=FORMULAS)
def test_a_chain_is_one_rectifier_and_has_the_truth_table(build, oracle) -> None:
    made = build(Logic())
    assert _table(made) == [[int(oracle(*bits))] for bits in BITS]
    assert _rectifiers(made) == 1


def test_an_or_inside_an_and_is_no_chain() -> None:
    logic = Logic()
    mixed = logic.conjunction(logic.disjunction(A, B), C)
    assert _table(mixed) == [[int((a or b) and c)] for a, b, c in BITS] and _rectifiers(mixed) == 2


def test_one_flag_is_shared_by_all_lanes_of_the_others() -> None:
    both = Logic().conjunction(concatenate(A, B), C)
    assert _table(both) == [[a and c, b and c] for a, b, c in BITS]


def test_a_flag_counts_once_and_a_single_one_is_itself() -> None:
    logic = Logic()
    twice = logic.conjunction(logic.conjunction(A, B), A)
    assert [id(part) for part in logic.conjuncts(twice)] == [id(A), id(B)]
    assert _table(twice) == [[a and b] for a, b, _ in BITS]
    assert logic.conjunction(A, A) is A and logic.disjunction(A) is A and logic.conjuncts(C) == (C,)


@pytest.mark.parametrize("negated", [0, LONGEST_CHAIN + 5], ids=["all hold", "the last does not"])
def test_a_chain_that_is_too_long_is_nested(negated: int) -> None:
    """Always true flags, of which at most one is replaced: the conjunction of far more than a chain holds."""
    logic, always = Logic(), Tokens(ALPHABET)
    flags = [always.is_in(list(ALPHABET.tokens), name=f"on{i}") for i in range(LONGEST_CHAIN + 5)]
    flags += [A if negated else flags[0]]
    chain = flags[0]
    for flag in flags[1:]:
        chain = logic.conjunction(chain, flag)
        assert len(logic.conjuncts(chain)) <= LONGEST_CHAIN
    assert _table(chain) == [[a if negated else 1] for a, _, _ in BITS]
