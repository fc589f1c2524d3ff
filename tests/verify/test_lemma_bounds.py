"""Lemma F.1 by its definition: the bounds hold for every score with the gap, and are reached as the gap grows."""

from __future__ import annotations

import numpy as np
import pytest

from verify import lemma_bounds as stated

_ROUNDING = 1e-14


def _soft(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("count", [1, 2, 3, 17, 400])
@pytest.mark.parametrize("gap", [0.1, 1.0, 4.0, 20.0])
def test_a_soft_maximum_is_as_near_to_the_hard_one_as_f1_says(count: int, gap: float) -> None:
    rng = np.random.default_rng(count)
    for others in (np.zeros((1, count - 1)), -rng.exponential(1, (300, count - 1))):
        scores = np.concatenate([np.full((len(others), 1), gap), others], axis=1)
        off = np.abs(_soft(scores) - np.eye(count)[0]).sum(axis=1)
        assert (off <= stated.softmax_error(count, gap) * (1 + 1e-9) + _ROUNDING).all()
        values = rng.uniform(-3, 5, (len(others), count))
        spread = values.max(axis=1) - values.min(axis=1)
        picked = np.abs((values * _soft(scores)).sum(axis=1) - values[:, 0])
        assert all(picked <= [stated.soft_selection_error(count, gap, s) * (1 + 1e-9) + _ROUNDING for s in spread])


@pytest.mark.parametrize("count", [2, 3, 17, 400])
def test_f1_is_reached_where_all_others_are_equal(count: int) -> None:
    """2(d − 1)e^−δ is 2(1 − p) up to a factor 1 + (d − 1)e^−δ; selected, it is one half of that times the spread."""
    gap = 20.0
    soft = _soft(np.array([gap, *[0.0] * (count - 1)]))
    off, one = float(np.abs(soft - np.eye(count)[0]).sum()), (count - 1) * np.exp(-gap)
    assert off / stated.softmax_error(count, gap) == pytest.approx(1 / (1 + one), rel=1e-6)
    values = np.array([2.0, *[-1.0] * (count - 1)])
    lost = float(2.0 - (values * soft).sum())
    assert lost / stated.soft_selection_error(count, gap, 3.0) == pytest.approx(1 / (1 + one), rel=1e-6)


def test_nothing_else_is_no_error() -> None:
    assert stated.softmax_error(1, 0.5) == stated.soft_selection_error(1, 0.5, 9.0) == 0
    with pytest.raises(ValueError, match="count = 0"):
        stated.softmax_error(0, 1.0)
