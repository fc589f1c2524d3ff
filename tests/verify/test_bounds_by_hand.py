"""Bounds evaluated a second time: counted by hand, or spelled as the statement has them, in plain Python.

A bound that is only compared with what it bounds may be many times too large and nobody sees it.
"""

from __future__ import annotations

from math import exp, log, log2, pi

import numpy as np
import pytest

from verify import bounds, covering, estimation
from verify.bounds import LayerBound
from verify.copy_bound import copy_report


@pytest.mark.parametrize(("vocab", "sizes"), [(5, (10, 10, 5, 1)), (1, (2, 2, 1, 1))])
def test_lemma_3_of_induction_heads(vocab: int, sizes: tuple[int, ...]) -> None:
    """d = 2V and N = V; one token has a lane for the blank beside it."""
    assert bounds.induction_heads_bound(vocab) == LayerBound(*sizes)


def test_what_an_induction_head_must_know() -> None:
    """3 tokens: the start, 3 of one token, 3·2 of two, and 9 trees of three."""
    assert bounds.induction_heads_information_bits(3) == log2(1 + 3 + 6 + 9)
    assert bounds.induction_heads_information_bits(1) == 1


def test_what_short_promises_need() -> None:
    """In 3 tokens there is one pair and a query, in 5 there are two; a token that is asked for at its place is read."""
    assert [bounds.information_bound_bits(4, 8, length) for length in (2, 3, 4, 5, 9, 99)] == [0, 3, 3, 6, 12, 12]
    assert bounds.induction_heads_information_bits(40, 1) == bounds.keep_nth_information_bits(5, 128, 5) == 0
    assert bounds.keep_nth_information_bits(5, 128, 6) == log2(129)


def test_how_often_an_ngram_repeats() -> None:
    assert bounds.repeated_ngram_bound(4, 10, 3) == pytest.approx(16 / 1000 / 2)
    assert bounds.repeated_ngram_bound(100, 2, 1) == 1


@pytest.mark.parametrize("seed", range(10))
def test_covering_numbers_are_those_of_appendix_j(seed: int) -> None:
    """Small classes, in plain numbers where the module has logarithms; Λ by following distances through the chain."""
    rng = np.random.default_rng(seed)
    m, u, d, depth = (int(rng.integers(1, 4)) for _ in range(4))
    w, b, reach, delta = d + int(rng.integers(0, 3)), float(rng.uniform(1, 3)), float(rng.uniform(1, 2)), 0.25
    nonzeros = int(rng.integers(0, 9))
    made = covering.SsmClass(m, u, d, depth, w, nonzeros, b)
    grown, lip = (2 * b * w) ** depth, (b * w) ** depth
    own_network = depth * (w + 1) * (2 * b * w) ** (depth - 1)
    through, own_filter = 2 * (u + 1) * d * b**2, (u + 1) * d * b * (4 + 4 * pi * b)
    for found, expected in (
        (covering.network_growth(depth, w, b), grown),
        (covering.network_lipschitz(depth, w, b), lip),
        (covering.network_sensitivity(depth, w, b), own_network),
        (covering.filter_growth(u, d, b), through),
        (covering.filter_sensitivity(u, d, b), own_filter),
    ):
        assert exp(found) == pytest.approx(expected)
    size, off = reach, 0.0
    for _ in range(m):
        off = off * lip * through + own_filter * size * lip + own_network * size * through
        size *= through * grown
    assert exp(made.log_sensitivity(reach)) == pytest.approx(off)
    assert made.weights == m * (depth * (w * w + w) + d * d + 5 * d)
    assert made.nonzero_weights == m * (nonzeros + d * d + 5 * d)
    inside = 2 * made.weights * (2 * b + 1) * max(1, off / delta)
    assert made.log_covering(delta, reach) == pytest.approx(made.nonzero_weights * log(inside))


def test_where_weights_cannot_move_the_output_they_are_still_counted() -> None:
    made = covering.SsmClass(1, 0, 1, 1, 1, 0, 1.0)
    assert made.log_sensitivity() > 0  # so that the larger of 1 and Λ/δ is Λ/δ for every δ < 1


@pytest.mark.parametrize("bad", [{"blocks": 0}, {"window": -1}, {"channels": 0}, {"depth": 0}, {"largest": 0.9}])
def test_classes_below_the_least(bad: dict) -> None:
    least = {"blocks": 1, "window": 0, "channels": 1, "depth": 1, "width": 1, "nonzeros": 0, "largest": 1.0}
    covering.SsmClass(**least)
    with pytest.raises(ValueError, match=next(iter(bad))):
        covering.SsmClass(**least | bad)


def theorem_1(a, b, c, step, pos, rho, delta, window, first) -> float:
    """M‖Δ‖[2(1 − α_p ρ) + δ α_p (Σ a^k + Σ ā^−k)] for M = 1, the maximum from the place `first` on."""
    kept = float(np.prod(a[pos:]))
    before, after = a[first - 1 : pos - (first == 1)], a[pos:]
    early = 0.0
    if len(before):
        top = max(before)
        early = pos - 1 if top == 1 else top / (1 - top)
    late = 0.0
    if len(after):
        low = min(after)
        late = window - 1 if low == 1 else (low ** -(window - 1) - 1) / (1 - low)
    return float(step.max()) * (2 * (1 - kept * rho) + delta * kept * (early + late))


@pytest.mark.parametrize("seed", range(30))
def test_theorem_1_of_copy_as_it_is_written(seed: int) -> None:
    """Both forms, for decays below 1, decays of 1, and a first decay that no bound but the paper's reads."""
    rng = np.random.default_rng(seed)
    length, window = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    a = np.ones(length) if seed % 3 == 0 else rng.uniform(0.2, 1, length)
    a[0] = 1.0 if seed % 2 else a[0]
    pos, rho, delta = int(rng.integers(max(1, length - window + 1), length + 1)), 0.8, 0.125
    b, c = rng.uniform(-1, 1, (length, 2)), rng.uniform(-1, 1, 2)
    x, step = rng.uniform(-1, 1, (length, 3)), rng.uniform(0.5, 2, (length, 3))
    found = copy_report(a[None], b[None], c[None], x[None], step[None], np.array([pos]), rho, delta, window)
    operands = (a, b, c, step, pos, rho, delta, window)
    assert found.theorem[0] == pytest.approx(theorem_1(*operands, first=2))
    assert found.paper[0] == pytest.approx(theorem_1(*operands, first=1))


def test_sizes_and_risk_of_estimation() -> None:
    """T = 6, α = 2: the depth is T², the waves 2^(T/a⁺); α = 1/2: powers of T are what α makes them."""
    assert estimation.sizes(6, 2, 1.5) == pytest.approx(
        {"log2_U": 6, "M": 6**0.5, "L": 36, "W": 6**0.5 * 16, "S": 6 * 36 * 16, "log2_B": 6}
    )
    assert estimation.sizes(3, 0.5, 1) == pytest.approx(
        {"log2_U": 3, "M": 9, "L": 81, "W": 9 * 8, "S": 81 * 81 * 8, "log2_B": 9}
    )
    assert estimation.risk(0.5, 7.0, 14.0, 0.25, 3.0, 2.0) == pytest.approx(0.25 + (9 + 4) / 2 + 5 / 4)
    assert estimation.terms_for(2.0**10, 1.0) == pytest.approx(10 / 3) and estimation.rate(8, 1) == pytest.approx(0.25)
    assert estimation.effective_smoothness([2.0], "mixed") == 2.0
    assert log2(estimation.rate(2.0**10, 1.0)) == pytest.approx(-20 / 3)
