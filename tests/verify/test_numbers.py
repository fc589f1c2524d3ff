"""Inputs that are drawn stay within what is declared, also where a bound is no float32 or the range has no 0."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.types import Int, OneHot, Real
from compiler.language.words import concatenate
from verify.tasks.haar import HaarTask
from verify.tasks.numbers import AnyNumbers, _of


@pytest.mark.parametrize("low, high", [(-0.001, 0.001), (0.7, 0.9), (-0.9, -0.7), (-1 / 3, 2 / 3), (-1, 1)])
def test_a_bound_that_is_no_float32_is_not_exceeded(low: float, high: float) -> None:
    drawn = _of(Real(low, high, 3), 5.0, (64, 16), np.random.default_rng(0))
    assert low <= drawn.min() and drawn.max() <= high
    assert (drawn == drawn.astype(np.float32)).all()
    assert drawn.min() < low + 1e-6 and drawn.max() > high - 1e-6


KINDS = [Real(2, 3), Real(3, 3), Real(-3, -1, 2), Real(0.25, 1, gap=0.25), Real(0.25, 1, gap=0.5), Real(0.7, 0.9)]
KINDS += [
    Real(-1, 1, gap=0.3),
    Real(-1, 0.25, gap=0.5),
    Real(3000, None),
    Real(None, -0.5),
    Real(0, 0),
    Int(2000, None),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_size_stays_within_the_declared_range(kind: Int | Real) -> None:
    """A range without 0 was asked numbers of 2^-20, which verify then refused to give to the model."""
    x, y = numbers(kind, "x"), numbers(Real(-1, 1), "y")
    lo, hi = (-(2.0**62) if kind.lo is None else kind.lo), (2.0**62 if kind.hi is None else kind.hi)
    alone, beside = (AnyNumbers(Circuit("c", s, length=6)) for s in (x, concatenate(x, y, numbers(OneHot(2), "z"))))
    assert len(set(alone.sizes())) == len(alone.sizes())
    for batch in [*alone.random(64, 0), *beside.random(64, 0)]:
        held = batch.inputs["x"]
        assert lo <= held.min() and held.max() <= hi
        assert (held == held.astype(np.float32)).all()
        if isinstance(kind, Real):
            assert np.abs(held)[held != 0].min(initial=np.inf) >= kind.gap
            assert np.abs(held).max() <= batch.size
    sizes = sorted({np.abs(batch.inputs["y"]).max() for batch in beside.random(64, 0)})
    assert sizes[0] <= 2.0**-20 and sizes[-1] == 1


@pytest.mark.parametrize("largest, orthonormal", [(0.1, True), (5.5, False), (8.0, False)])
def test_samples_of_haar_are_within_what_it_declares(largest: float, orthonormal: bool) -> None:
    for batch in HaarTask(2, orthonormal, largest).random(64, 0):
        x = batch.inputs["x"]
        assert np.abs(x).max() <= largest and (x == x.astype(np.float32)).all()
        assert orthonormal or (x == np.round(x)).all()
