"""Inputs that are never 0, behind a shift: before the start there is a 0 that no input holds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from compiler.artifact.numeric import numeric_stack
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.stream import Stream
from compiler.language.types import Int, Real

LENGTH = 4
Rule = Callable[[list[Fraction], int], Fraction]


def _back(values: list[Fraction], t: int, k: int = 1) -> Fraction:
    return values[t - k] if t >= k else Fraction(0)


# What is written, and what it says of the values x[0], …, x[t].
CASES: dict[str, tuple[Callable[[Stream], Stream], Rule]] = {
    "shifted": (lambda x: x.shift(1), _back),
    "shifted far": (lambda x: x.shift(3), lambda v, t: _back(v, t, 3)),
    "a square, shifted": (lambda x: (x * x).shift(1), lambda v, t: _back(v, t) ** 2),
    "rectified, shifted": (lambda x: x.relu().shift(1), lambda v, t: max(_back(v, t), Fraction(0))),
    "times the one before": (lambda x: x * x.shift(1), lambda v, t: v[t] * _back(v, t)),
    "the change": (lambda x: abs(x - x.shift(1)), lambda v, t: abs(v[t] - _back(v, t))),
    "the sum up to the last": (lambda x: x.shift(1).cumsum(), lambda v, t: sum(v[:t], Fraction(0))),
}
WHOLE: dict[str, tuple[Callable[[Stream], Stream], Rule]] = {
    "compared": (lambda x: x.shift(1) >= 2, lambda v, t: Fraction(_back(v, t) >= 2)),
    "compared with this": (lambda x: x.shift(1) + 3 > x, lambda v, t: Fraction(_back(v, t) + 3 > v[t])),
    "the rest": (lambda x: x.shift(2) % 3, lambda v, t: _back(v, t, 2) % 3),
    "a lookup": (lambda x: (x * x).shift(1) < 30, lambda v, t: Fraction(_back(v, t) ** 2 < 30)),
}


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d", "mamba-delta-t", "gated-deltanet"])
@pytest.mark.parametrize("type", [Int(5, 9), Int(-9, -5), Int(1, 1), Real(1, 3), Real(-3, -1)], ids=str)
@pytest.mark.parametrize("case", [*CASES, *WHOLE])
def test_what_stands_before_the_start_is_held(case: str, type: Int | Real, target: str):
    if case in WHOLE and not type.integral:
        return
    write, rule = (CASES | WHOLE)[case]
    x = numbers(type, "x")
    try:
        made = compile(Circuit("back", write(x), length=LENGTH), target)
    except CompileError:
        assert target != "mamba"  # which refuses none of these
        return
    random = np.random.default_rng(0)
    values = random.integers(type.lo, type.hi + 1, (16, LENGTH, 1)).astype(float)
    if not type.integral:
        values = random.uniform(type.lo, type.hi, values.shape).astype(np.float32).astype(float)
    out = numeric_stack(made).run({x: values})
    most = made.error_bound
    assert most is not None and most < 1e-3
    for row, got in zip(values[..., 0].tolist(), out[..., 0].tolist(), strict=True):
        exact = [Fraction(value) for value in row]
        for t in range(LENGTH):
            assert abs(Fraction(got[t]) - rule(exact, t)) <= most
