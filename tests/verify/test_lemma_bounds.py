"""Lemma F.1 by its definition: the bounds hold for every score with the gap, and are reached as the gap grows."""

from __future__ import annotations

from math import exp, log

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


def sizes(depth: float, width: float, nonzeros: float, largest: float) -> dict[str, float]:
    return {"L": depth, "W": width, "S": nonzeros, "B": largest}


RATIO = sizes(3, 4, 5, 6)
BY_HAND = [
    (stated.clip_sizes(3), sizes(2, 2, 7, 3)),
    (stated.clip_sizes(0.5), sizes(2, 2, 7, 1)),
    (stated.square_sizes(5), sizes(6, 4, 37, 4)),
    (stated.product_sizes(3), sizes(5, 8, 68, 4)),
    (stated.product_sizes(3, 0.1), sizes(5, 8, 68, 5)),
    (stated.product_sizes(3, 2, 5), sizes(3 * 5 + 1, 24, 4 * 98, 32)),
    (stated.product_sizes(2, 0.1, 3), sizes(9, 16, 164, 10)),
    (stated.exponential_sizes(3, 4), sizes(14, 4, 96, 4)),
    (stated.reciprocal_sizes(3, 4, 0.25), sizes(15, 11, 468, 8)),
    (stated.reciprocal_sizes(3, 4, 0.25, 2), sizes(15, 11, 468, 16)),
    (stated.reciprocal_sizes(3, 4, 0.9, 1), sizes(15, 11, 468, 4)),
    (stated.ratio_sizes(3, 4, 2, 10, 0.25, 1), sizes(19, 13, 468 + 52 + 38 + 20, 80)),
    (stated.cosine_sizes(2, 3, 4), sizes(20, 9, 206, 5)),
    (stated.wave_sizes(2, 0.01, 1), sizes(50, 18, 4 * 494 + 104, 5)),  # k = 5, m = 8, r = 0
    (stated.wave_sizes(4, 0.01, 10), sizes(53, 34, 8 * 521 + 110, 5)),  # r = 3
    (stated.wave_sizes(1, 2.0, 1), sizes(5, 10, 2 * 86 + 14, 5)),  # k = 2, and m = 1 for 15.72 < 4²
    (stated.feature_sizes(1, 2, 0.1, 1), sizes(48, 72, 2 * 984 + 9 * 212, 5)),
    (stated.context_match_sizes(1, 2, 5, RATIO), sizes(6, 28, 102 + 354, 20) | {"D": 14}),
    (stated.random_feature_sizes(1, 2, 3, 4, 5), sizes(3, 32, 140 + 156, 20) | {"D": 14}),
    (stated.random_feature_sizes(9, 1, 1, 1, 1), sizes(3, 11 + 18, 10 * 11 + 11 + 36 + 118, 10) | {"D": 10}),
]


@pytest.mark.parametrize(("found", "expected"), BY_HAND)
def test_sizes_are_those_that_are_counted_by_hand(found, expected) -> None:
    assert found == pytest.approx(expected)


def test_numbers_by_hand() -> None:
    assert stated.poisson_tail(1.0, 1) == pytest.approx(1 - exp(-1)) and stated.poisson_tail(3.0, 0) == pytest.approx(1)
    assert stated.kernel_terms(2, 3) == 125 and stated.selection_channels(1, 2, 3) == 9 * 4 + 2
    assert stated.angle_gap(4) == 0.5 and stated.context_gap(3) == pytest.approx(1 / 6)
    assert stated.sign_length(10) == 32 and stated.sign_length(10, 0.25) == 126  # 8 and 32 times 2 ln 10 − ln 2 = 3.912
    assert stated.random_features(2, 3, 0.1) == 224  # (28/3)·5·ln 120 = 223.4


@pytest.mark.parametrize(("features", "pairs", "outcomes", "lost"), [(100, 3, 7, 0.01), (20, 5, 2, 0.3)])
def test_the_error_of_random_features_solves_bernstein_s_inequality(features, pairs, outcomes, lost) -> None:
    e = stated.random_feature_error(features, pairs, outcomes, lost)
    assert 2 * outcomes * exp(-features * e * e / 2 / (2 * pairs + pairs * e / 3)) == pytest.approx(lost)
    assert log(2 * outcomes / lost) > 0
