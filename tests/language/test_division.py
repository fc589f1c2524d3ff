"""`//` and `%` by a positive integer: Python's own, with bounds that hold, or refused with the limit."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler.context import Context
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
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


def test_too_many_thresholds_are_refused_with_a_divisor_that_would_do():
    x = numbers(Int(0, 100_000), "x")
    with pytest.raises(CompileError, match=r"50000 in all between 0 and 100000, and 4096 are the most; divide by 25"):
        compiler.compile(Circuit("far", x // 2, length=3))
    would_do = Circuit("far", x // 25, length=3)
    represent(would_do, Context.of(would_do, target_of("mamba")))
