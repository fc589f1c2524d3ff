"""`//` and `%` by a positive integer: Python's own, with bounds that hold, or refused with the limit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import compiler
from compiler.context import Context
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, numbers
from compiler.language.types import Int, Real
from compiler.language.words import concatenate
from compiler.passes.represent import represent
from compiler.targets import target_of
from tests.circuits import counters, over_abc


@pytest.mark.parametrize("lo, hi", [(-7, 7), (0, 11), (-9, -2), (3, 5), (0, 0)])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 20])
def test_every_integer_of_a_range_divides_as_in_python_and_stays_within_its_proven_bounds(lo: int, hi: int, n: int):
    x = numbers(Int(lo, hi), "x")
    circuit = Circuit("division", concatenate(x // n, x % n), length=3)
    values = np.arange(lo, hi + 1).reshape(-1, 1, 1)
    got = interpret(circuit, inputs={x: values})[circuit.output][:, 0]
    assert got.tolist() == [[v // n, v % n] for v in range(lo, hi + 1)]
    known = Context.of(circuit, target_of("mamba")).domains.of(circuit.output)
    assert (got >= known.low).all() and (got <= known.high).all()
    assert known.high[1] <= n - 1 and known.low[1] == 0
    compiler.compile(circuit)  # which compares the blocks with the interpreter


def test_several_lanes_are_divided_one_by_one():
    x = numbers(Int(-9, 9, 3), "x")
    compiler.compile(Circuit("lanes", concatenate(x // 4, x % 4), length=5))


def test_a_clipped_count_divides_in_bfloat16_at_a_length_that_it_cannot_count_to():
    a, _ = counters
    compiled = compiler.compile(over_abc("blocks of a", a.clip(0, 40) // 16, 400), dtype="bfloat16")
    tokens = np.zeros((1, 400), dtype=np.int64)
    assert compiled.interpret(tokens)[0, :, 0].tolist() == [float(min(t + 1, 40) // 16) for t in range(400)]


@pytest.mark.parametrize("bad, error", [(0, ValueError), (-2, ValueError), (1.5, TypeError), (counters[1], TypeError)])
def test_what_cannot_divide_is_refused_where_it_is_written(bad: object, error: type):
    for divide in (lambda: counters[0] // bad, lambda: counters[0] % bad):
        with pytest.raises(error, match="divi"):
            divide()


def test_real_numbers_are_refused():
    with pytest.raises(CompileError, match="an integer is needed"):
        compiler.compile(Circuit("real", numbers(Real(0, 4), "x") % 2, length=3))


def flips(length: int | None) -> Circuit:
    """Whether there were an even number of a since the last b."""
    alphabet = Alphabet.of("a", "b")
    x = Tokens(alphabet)
    odd = compiler.count(x.is_in("a"), reset=x.is_in("b")) % 2
    return Circuit("flips", odd == 0, InputLanguage.everything(alphabet, length))


@pytest.mark.parametrize("length, told", [(100_000, "50000 in all between 0 and 100000"), (None, "every length was")])
def test_a_remainder_of_a_long_count_is_refused_with_a_length_that_would_do(length: int | None, told: str):
    with pytest.raises(CompileError, match=rf"{told}.* 4096 are the most; a max_length of [0-9]+ would") as refusal:
        compiler.compile(flips(length))
    said = str(refusal.value)
    assert said.endswith("would fit, or clip() its operand") and "9007199254740992" not in said
    (fits,) = map(int, re.findall("a max_length of ([0-9]+) would fit", said))
    assert fits > 4000
    compiler.compile(flips(fits))


def test_a_quotient_of_a_long_count_names_a_divisor_only_where_the_length_is_known():
    alphabet = Alphabet.of("a", "b")
    blocks = Tokens(alphabet).is_in("a").cumsum() // 2
    for length, other in ((100_000, "or divide by 25 or more, or clip"), (None, "would fit, or clip")):
        with pytest.raises(CompileError, match=other):
            compiler.compile(Circuit("blocks", blocks, InputLanguage.everything(alphabet, length)))


def test_a_range_is_told_in_whole_numbers():
    """Also one whose bounds are rounded as floats."""
    letters = Alphabet.of("a", "b")
    squared = Tokens(letters).is_in("a").cumsum() * Tokens(letters).is_in("a").cumsum()
    with pytest.raises(CompileError, match=r"in all between -?[0-9]+ and [0-9]+, and 4096 are the most"):
        compiler.compile(Circuit("power", (squared * squared) % 3, InputLanguage.everything(letters, 500_000)))


def test_no_length_and_no_divisor_is_named_that_would_not_do():
    """Of a number that no length bounds, and of a remainder, which another divisor does not have."""
    with pytest.raises(CompileError) as refusal:
        compiler.compile(Circuit("far", numbers(Int(0, 100_000), "x") % 2, length=3))
    assert str(refusal.value).endswith("and 4096 are the most; clip() its operand")


def test_too_many_thresholds_are_refused_with_a_divisor_that_would_do():
    x = numbers(Int(0, 100_000), "x")
    with pytest.raises(CompileError, match=r"50000 in all between 0 and 100000, and 4096 are the most; divide by 25"):
        compiler.compile(Circuit("far", x // 2, length=3))
    would_do = Circuit("far", x // 25, length=3)
    represent(would_do, Context.of(would_do, target_of("mamba")))
