"""Real inputs that are drawn stay within what is declared, also where a bound is no float32."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.language.types import Real
from verify.tasks.numbers import _of


@pytest.mark.parametrize("low, high", [(-0.001, 0.001), (0.7, 0.9), (-0.9, -0.7), (-1 / 3, 2 / 3), (-1, 1)])
def test_a_bound_that_is_no_float32_is_not_exceeded(low: float, high: float) -> None:
    drawn = _of(Real(low, high, 3), 5.0, (64, 16), np.random.default_rng(0))
    assert low <= drawn.min() and drawn.max() <= high
    assert (drawn == drawn.astype(np.float32)).all()
    assert drawn.min() < low + 1e-6 and drawn.max() > high - 1e-6
