"""What a verification counts as right: the bits of the interpreter, or, for real numbers, within the promised bound."""

from __future__ import annotations

import numpy as np
import pytest

from verify.check import check
from verify.tasks.task import IGNORED, Batch


def _verified(off: float, bound: float):
    batch = Batch(np.zeros((2, 3), dtype=np.int64), np.full((2, 3), IGNORED))
    reference = lambda tokens: np.ones((*tokens.shape, 4))
    return check(lambda tokens: (reference(tokens) + off).astype(np.float32), reference, [batch], bound=bound)


@pytest.mark.parametrize(
    ("off", "bound", "exact", "passed"),
    [
        (0, 0, True, True),
        (2**-10, 0, False, False),
        (2**-10, 2**-9, False, True),
        (2**-8, 2**-9, False, False),
        (np.nan, 2**-9, False, False),
    ],
)
def test_scores_are_as_near_as_promised(off: float, bound: float, exact: bool, passed: bool) -> None:
    found = _verified(off, bound)
    assert (found.bit_exact, found.passed) == (exact, passed)
    assert (found.failure is None) == passed


def test_a_score_that_the_format_cannot_hold_is_not_right() -> None:
    """2^24 + 1 is rounded to 2^24 in float32: the interpreter's number is not rounded before it is compared."""
    batch = Batch(np.zeros((1, 2), dtype=np.int64), np.full((1, 2), IGNORED))
    reference = lambda tokens: np.full((*tokens.shape, 3), 2.0**24 + 1)
    found = check(lambda tokens: reference(tokens).astype(np.float32), reference, [batch])
    assert (found.bit_exact, found.passed) == (False, False)
