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


def _by_hand(batch: Batch, scores: np.ndarray, expected: np.ndarray) -> dict:
    """What is to be found of one batch, position by position."""
    found = {"queries": 0, "correct": 0, "exact_sequences": 0, "bit_exact": True, "margin": np.inf, "failure": None}
    for n, (tokens, labels) in enumerate(zip(batch.tokens.tolist(), batch.labels.tolist())):
        wrong_before = found["queries"] - found["correct"]
        for t, label in enumerate(labels):
            bad = scores[n, t].tolist() != expected[n, t].tolist()
            found["bit_exact"] &= not bad
            if label != IGNORED:
                lead = scores[n, t, label] - max(score for i, score in enumerate(scores[n, t]) if i != label)
                found["queries"] += 1
                found["correct"] += int(lead > 0)
                found["margin"] = min(found["margin"], lead)
                bad |= lead <= 0
            if bad and found["failure"] is None:
                found["failure"] = ("random", tokens, t)
        found["exact_sequences"] += found["queries"] - found["correct"] == wrong_before
    return found


def test_counts_margins_and_the_first_failure_are_those_found_by_hand() -> None:
    draw, failed = np.random.default_rng(0), 0
    for _ in range(60):
        batch = Batch(draw.integers(0, 9, (4, 6)), draw.choice([IGNORED, 0, 1, 2], (4, 6), p=[0.7, 0.1, 0.1, 0.1]))
        expected = draw.integers(0, 3, (4, 6, 3)).astype(np.float32)
        asked = np.nonzero(batch.labels != IGNORED)
        expected[(*asked, batch.labels[asked])] += draw.choice([0, 3], len(asked[0]), p=[0.1, 0.9])
        scores = expected + (draw.random((4, 6, 3)) < 0.01)
        found = check(lambda tokens, s=scores: s, lambda tokens, e=expected: e, [batch])
        by_hand = _by_hand(batch, scores, expected)
        assert {name: getattr(found, name) for name in by_hand} == by_hand
        assert found.within == found.bit_exact
        failed += found.failure is not None
    assert 20 < failed < 60
