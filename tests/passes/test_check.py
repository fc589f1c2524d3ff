"""What is refused, and the sentences in which it is refused: all reasons at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import emit
from compiler.language.source import Tokens, numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, Int, OneHot, Real
from compiler.language.words import concatenate, count, latch, lti, minimum, running_max, select
from compiler.passes.check import check
from tests.circuits import ABC, NO_LATCH, abc, counters, is_a, is_b, over_abc, token

number = abc.number({"a": 3, "b": -2})
pair = token[:2]

ILL_TYPED = {
    "shift ahead": (is_a.shift(-1), "only the past can be read"),
    "compare of widths": (pair > token[[0, 1, 2]], "2 and 3 lanes; they must agree"),
    "and of numbers": (number & is_a, "a Bool or a OneHot is needed"),
    "or of widths": (pair | token, "2 and 3 lanes"),
    "not of a number": (~number, "a Bool or a OneHot is needed"),
    "select by a number": (select(number, 1, 0), "a Bool condition is needed"),
    "select of widths": (select(is_a, pair, token), "2 and 3 lanes"),
    "clip upside down": (number.clip(3, 1), "the wrong way round"),
    "one-hot of lanes": (pair.one_hot(3), "it has 2 lanes, and one is needed"),
    "lookup of lanes": (pair.lookup([1, 2]), "one lane at a time"),
    "lookup of too few": (token.lookup([1, 2]), "2 entries for OneHot"),
    "lookup of halves": (number.lookup([0, Fraction(1, 2)]), "must hold integers"),
    "minimum of widths": (minimum(pair, token), "2 and 3 lanes"),
    "product of widths": (pair * token, "2 and 3 lanes"),
    "latch on a number": (latch(token, number), "a Bool or OneHot condition is needed"),
    "count of a number": (count(number, is_a), "a Bool is needed"),
    "count of lanes": (count(pair, pair), "it counts single flags"),
    "running maximum on a number": (running_max(number, number), "a Bool condition is needed"),
    "memory of widths": (memory.write(token, number).read(pair), "3 and 2 lanes"),
    "memory of an unknown policy": (
        memory.write(token, number, policy="newest").read(token),
        "'newest', and it must be",
    ),
    "last under numbers": (memory.write(2 * token, number, policy="last").read(token), "a OneHot key"),
    "memory on a number": (memory.write(token, number, when=number).read(token), "a Bool condition is needed"),
    "matrix of the wrong width": (np.ones((1, 2)) @ token, "the matrix has 2 columns, and 3 are needed"),
    "a third": (constant(Fraction(1, 3)), "1/3 is no dyadic rational"),
    "a tap of a third": (lti(number, [1, Fraction(1, 3)]), "1/3 is no dyadic rational"),
    "emit of a number": (emit(ABC, (number, "a"), otherwise="b"), "a Bool is needed"),
    "two alphabets": (
        concatenate(is_a, Tokens(Alphabet.of("a", "z")).is_in(["z"])),
        "another alphabet than the circuit's first",
    ),
}


@pytest.mark.parametrize("name", ILL_TYPED)
def test_ill_typed_circuits_are_refused_with_the_reason_and_the_line(name: str):
    stream, reason = ILL_TYPED[name]
    with pytest.raises(CompileError, match=reason) as caught:
        compile(over_abc(name, stream))
    assert all(source is None or source.origin.startswith("test_check.py") for source, _ in caught.value.reasons)


def test_all_reasons_come_at_once():
    everything = concatenate(*(stream for stream, _ in ILL_TYPED.values()))
    with pytest.raises(CompileError) as caught:
        check(over_abc("everything", everything))
    text = str(caught.value)
    assert all(reason in text.replace("\n", " ") for _, reason in ILL_TYPED.values())


def test_another_alphabet_in_the_language():
    with pytest.raises(CompileError, match="the input language is over another alphabet"):
        check(Circuit("other", is_a, InputLanguage.everything(Alphabet.of("x"), 4)))


def test_a_circuit_without_a_length_is_refused():
    with pytest.raises(CompileError, match="promises no length"):
        compile(Circuit("endless", is_a.cumsum()))


def test_an_unknown_target():
    with pytest.raises(ValueError, match="'mamba3' is no target; there are mamba, mamba2"):
        compile(over_abc("x", is_a), "mamba3")


# Declared types ------------------------------------------------------------------------------------


def test_a_declared_type_must_be_shown():
    compile(over_abc("shown", counters[0].clip(0, 1).retyped(Bool())))
    for stream, claim in (
        (counters[0], Bool()),
        (counters[0], Int(0, 3)),
        (concatenate(is_a, is_b.shift()), OneHot(2)),
        (number / 2, Int()),
    ):
        with pytest.raises(CompileError, match="it is declared"):
            compile(over_abc("claimed", stream.retyped(claim)))


# Operations without a lowering -----------------------------------------------------------------------

REAL = numbers(Real(-1.0, 1.0), "signal")
NO_LOWERING = {
    "latch on s4d": (latch(number, is_a), "s4d", NO_LATCH["s4d"]),
    "last write on s4d": (memory.write(token, number, policy="last").read(token), "s4d", NO_LATCH["s4d"]),
    "too large": (((number**16) ** 16) ** 4, "mamba", "could exceed 2\\^256"),
    "beyond float32": (number.cumsum() ** 7, "mamba", "float32 adds exactly up to 16777216"),
}


@pytest.mark.parametrize("name", NO_LOWERING)
def test_what_has_no_lowering_is_refused_in_one_sentence(name: str):
    stream, target, reason = NO_LOWERING[name]
    with pytest.raises(CompileError, match=reason) as caught:
        compile(over_abc(name, stream, 8), target)
    assert all("\n" not in text for _, text in caught.value.reasons)


@pytest.mark.parametrize(
    "stream", [running_max(REAL, constant(1)), REAL.one_hot(2), REAL > 0], ids=["running_max", "one_hot", "compare"]
)
def test_real_numbers_have_no_decisions(stream: Stream):
    with pytest.raises(CompileError):
        compile(Circuit("real", stream, length=8))


def test_streams_have_no_truth_value():
    with pytest.raises(TypeError, match="no truth value"):
        if is_a:
            pass


def test_a_circuit_of_too_many_operations_is_refused_with_the_number_before_anything_is_found(monkeypatch):
    monkeypatch.setattr("compiler.passes.check.MOST_OPERATIONS", 20)
    monkeypatch.setattr("compiler.analysis.domains.known.Domains._sharpened", None)  # not even a domain
    stream = is_a.cumsum()
    for _ in range(30):
        stream = (stream - 1).relu()
    with pytest.raises(CompileError, match=r"circuit 'long' has \d\d operations, and 20 are compiled at most"):
        compile(over_abc("long", stream, 8))


def test_a_numeric_input_under_two_streams_is_refused() -> None:
    """Given 1 and 0 the model said (0, 0), and the circuit (1, 0): both have the lane of one."""
    first = numbers(Real(0, 1), "x")
    second = Stream(first.operation, (), "y")
    with pytest.raises(CompileError, match="it is the same numeric input as x; make another by numbers"):
        compile(Circuit("two", concatenate(first, second), length=1))
    compile(Circuit("one", concatenate(first, first, numbers(Real(0, 1), "y")), length=1))


@pytest.mark.parametrize("kind", [Real(-1, 1, gap=3), Real(3, 2), Int(2**53 + 1, 2**53 + 1)], ids=str)
def test_an_input_that_was_not_declared_by_numbers_is_checked(kind: Int | Real) -> None:
    with pytest.raises(CompileError, match="the type of this input is "):
        check(Circuit("own", 2 * Stream(ops.Numbers(kind), (), "x"), length=1))
