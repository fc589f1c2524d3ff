"""Numbers that are drawn for an input are numbers that its type allows, and its ends are among them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import compiler
from compiler.artifact.numeric import numeric_stack
from compiler.exactness.samples import drawn
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.types import Bool, Int, Logits, OneHot, Real

CLOSED = [
    Real(2, 3),
    Real(3, 3),
    Real(-3, -1),
    Real(-3, 1),
    Real(0, 0),
    Real(0.7, 0.9, 3),
    Real(-1 / 3, Fraction(2, 3)),
]
GAPS = [Real(0.25, 1, gap=0.25), Real(0.25, 1, gap=0.5), Real(-1, 0.25, gap=0.5), Real(0, 1, gap=0.75)]
GAPS += [Real(-1, 1, 2, gap=0.3), Real(-8, -0.5, gap=7.5), Real(-0.3, 3, gap=0.5), Real(-1, 1, gap=1)]
OPEN_ENDS = [
    Real(None, None, gap=5000.0),
    Real(3000, None),
    Real(None, -3000, gap=1),
    Real(None, 0.5),
    Real(2.0**62, None),
]
WHOLE = [Int(2000, None), Int(None, -2000), Int(), Int(-3, -3), Int(5, 6), Int(2**53 + 1, 2**53 + 3), Int(0, None)]


def holds(kind: Int | Real, value: float) -> bool:
    """Whether a type allows a number, by its own words."""
    exact = Fraction(value)
    within = (kind.lo is None or Fraction(kind.lo) <= exact) and (kind.hi is None or exact <= Fraction(kind.hi))
    apart = kind.integral or not exact or abs(exact) >= Fraction(kind.gap)
    return within and apart and abs(exact) <= 2**62 and (not kind.integral or exact.denominator == 1)


@pytest.mark.parametrize("kind", [*CLOSED, *GAPS, *OPEN_ENDS, *WHOLE], ids=str)
def test_what_is_drawn_is_allowed(kind: Int | Real) -> None:
    values = drawn(kind, (64, 16), np.random.default_rng(0))
    assert values.shape == (64, 16, kind.width)
    assert all(holds(kind, value) for value in np.unique(values).tolist())
    assert (values[0] == values.max()).all()
    for end in (kind.lo, kind.hi):
        if end is not None and Fraction(float(end)) == Fraction(end) and holds(kind, float(end)):
            assert float(end) in values
    if not kind.integral and kind.gap:
        for edge in (-kind.gap, kind.gap, 0.0):
            assert (edge in values) == holds(kind, edge)


def test_lanes_of_a_one_hot_and_flags() -> None:
    values = drawn(OneHot(3), (8, 16), np.random.default_rng(0))
    assert set(np.unique(values)) == {0, 1} and values.sum(axis=-1).max() == 1
    assert set(np.unique(drawn(Bool(2), (8, 16), np.random.default_rng(0)))) == {0, 1}


@pytest.mark.parametrize(
    "kind, said",
    [
        (Real(-1, 1, gap=3), "its gap leaves nothing but 0"),
        (Real(-0.3, 0.3, gap=0.5), "its gap leaves nothing but 0"),
        (Real(0, 0.3, gap=0.3), "its gap leaves nothing but 0"),  # 0.3 is beyond the bound in float32
        (Real(0.25, 1, gap=2), "its gap leaves no number"),
        (Real(0.1, 0.1), "no number of float32 is within its bounds"),
        (Real(1e-50, 1e-49), "no number of float32 is within its bounds"),
        (Real(2.0**200, 2.0**201), "no number of float32 is within its bounds"),
        (Int(2**53 + 1, 2**53 + 1), "no number of float64 is within its bounds"),
        (Logits(3), "scores are what a circuit gives"),
    ],
    ids=str,
)
def test_a_type_that_leaves_nothing_is_refused_where_it_is_declared(kind: Real, said: str) -> None:
    with pytest.raises(ValueError, match=f"the type of numbers is .*{said}"):
        numbers(kind, "x")


@pytest.mark.parametrize("kind", [*GAPS, Int(2000, None), Int(1 << 20, None)], ids=str)
def test_a_range_is_compared_with_0(kind: Int | Real) -> None:
    """Each end of what is allowed, and 0: 0.25 … 1 with a gap of 0.5 was a mistake of the compiler, as was 2000 … ∞."""
    x, gap = numbers(kind, "x"), getattr(kind, "gap", 0)
    ends = [end for end in (kind.lo, kind.hi, 0, -gap, gap) if end is not None and holds(kind, end)]
    given = np.array(ends, dtype=float)[:, None, None].repeat(kind.width, axis=2)
    for name, flag, right in (("above", x > 0, given > 0), ("below", x < 0, given < 0), ("none", x == 0, given == 0)):
        stack = numeric_stack(compiler.compile(Circuit(name, flag, length=1)))
        assert np.array_equal(stack.run({i.name: given for i in stack.inputs}, given.shape[:2]), right)


def test_lanes_that_end_below_the_gap_stand_beside_others() -> None:
    x, y = numbers(Real(-1, 0.25, gap=0.5), "x"), numbers(Real(-1, 1, gap=0.5), "y")
    stack = numeric_stack(compiler.compile(Circuit("two", compiler.concatenate(x, y) > 0, length=1)))
    given = np.array([-1, -0.5, 0, 0, 0])[:, None, None], np.array([1, 0.5, 0, -0.5, -1])[:, None, None]
    got = stack.run({i.name: given[0] if i.name == "x" else given[1] for i in stack.inputs}, (5, 1))
    assert np.array_equal(got[:, 0], [[0, 1], [0, 1], [0, 0], [0, 0], [0, 0]])
