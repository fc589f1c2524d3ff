"""Lanes that are 0 by their bounds and computed of real numbers: the constant 0, and nothing that reads them is off."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.artifact.numeric import numeric_stack
from compiler.context import Context
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.reals import exceeds
from compiler.language.source import numbers
from compiler.language.stream import Stream
from compiler.language.types import Int, Real
from compiler.language.words import latch, present, select
from compiler.passes.zeros import zeros
from compiler.targets import target_of

X, NEAR, FAR = numbers(Real(-8, 8), "x"), numbers(Real(0, 1e-40), "near"), numbers(Real(4, 2e7), "far")
N = numbers(Int(0, 3), "n")
NOTHING = (numbers(Real(-1, 0), "below").relu() * 2**45).named("nothing")
NEVER = FAR.clip(-1, 3) > 3  # 3 wherever it is computed without a rounding


def _circuit(stream: Stream) -> Circuit:
    return Circuit("zeros", stream, length=6)


@pytest.mark.parametrize("zero", [NEAR * NEAR.clip(-1, 0), X.clip(9, 12) - 9, NOTHING.cumsum(), X.clip(-2, -2) + 2])
def test_what_is_0_and_computed_of_real_numbers_is_the_constant(zero: Stream):
    made = compile(_circuit(zero))
    assert made.error_bound == 0 and not made.blocks


def test_of_several_lanes_those_that_are_0_are_the_constant():
    wide = numbers(Real(-3, -1, 2), "wide")
    turned = np.diag([1, -1]) @ wide
    made = compile(_circuit(exceeds(turned, turned.relu(), 0.25)))
    assert made.error_bound is not None and made.error_bound < 1e-3


def test_a_circuit_without_such_lanes_is_the_same_object():
    circuit = _circuit(X.relu() + N)
    assert zeros(circuit, Context.of(circuit, target_of("mamba")))[0] is circuit


READERS = {
    "a flag": (NEVER, lambda n: 0 * n),
    "a count of flags": (NEVER.cumsum(), lambda n: 0 * n),
    "a choice": (select(NEVER, 100, 0), lambda n: 0 * n),
    "a latch": (latch(N, NEVER), lambda n: 0 * n),
    "whether it was there": (present(NEVER), lambda n: 0 * n),
    "a count of numbers that are not 0": ((NOTHING != 0).cumsum(), lambda n: 0 * n),
    "a product": (N * NEVER + N * (NOTHING + 1), lambda n: n),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", READERS)
def test_what_reads_them_is_exact(name: str, dtype: str):
    """Each was off once: a flag that is never on was 1 at 2^24 + 2, in bfloat16 at 258, and called exact."""
    stream, wanted = READERS[name]
    made = compile(_circuit(stream), dtype=dtype)
    rows = {
        "far": [4, 7.5, 2.0**20 - 1 / 16, 2.0**24 - 1, 2.0**24 + 2, 2e7],
        "below": [0, -1e-12, -1.1e-12, -1e-6, -0.3, -1],
        "n": [0, 1, 2, 3, 1, 2],
    }
    given = {name: np.array(row)[None, :, None] for name, row in rows.items()}
    stack = numeric_stack(made)
    read = {record.name: given[record.name] for record in stack.inputs}
    out = stack.run(read or given)
    assert made.error_bound == 0
    np.testing.assert_array_equal(out, wanted(given["n"]))


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("least", [1, 3])
def test_comparisons_with_the_one_number_of_a_range_are_no_mistake(least: int, target: str):
    """The pre-activations of real numbers were scaled as those of a lattice, and called a mistake of the compiler."""
    x = numbers(Real(least, least), "x")
    for stream, told in ((x <= least, 1), (x > least, 0), (x == least, 1), (x >= least, 1), (x != least, 0)):
        out = numeric_stack(compile(_circuit(stream), target)).run({"x": np.full((1, 3, 1), least)})
        assert (out == told).all()


def test_a_comparison_that_no_bound_decides_is_refused():
    with pytest.raises(CompileError, match="gap"):
        compile(_circuit(FAR.clip(-1, 8) > 3))


def test_a_sum_with_a_real_number_is_no_integer_even_where_that_is_0():
    with pytest.raises(CompileError, match="step 0"):
        compile(_circuit((N + NOTHING).retyped(Int(0, 3)).lookup([5, 9, 1, 7])))


def test_a_number_too_small_for_float64_is_not_0():
    """Bounds of x^2048 were 0, as 2^-2048 is in float64; so x^2048 > 0 was never on, and called exact."""
    half = numbers(Real(0.25, 0.5, 100), "half")
    with pytest.raises(CompileError, match="it compares real numbers"):
        compile(Circuit("small", (half**2048 > 0)[0], length=16))
    one = numbers(Real(0, 0.5), "one")
    made = compile(Circuit("small", one**2048, length=1))
    assert 0 < made.error_bound < 1e-37
    scaled = numbers(Real(1, 1, 100), "scaled")
    for factor in (2.0**-300,) * 4 + (2.0**300,) * 4:
        scaled = scaled * factor
    with pytest.raises(CompileError, match="could exceed 2\\^256"):
        compile(Circuit("scaled", scaled[0], length=16))
