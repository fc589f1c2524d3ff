"""Theorem 1 of paper B: the bound holds whenever the assumptions do, it is tight, and what fails is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from constructions.gadgets.copy_decay import draw
from verify.copy_bound import ASSUMPTIONS, copy_report


@pytest.mark.parametrize(
    ("length", "window", "delta"), [(8, 1, 1 / 16), (16, 4, 1 / 64), (40, 16, 1e-3), (16, 16, 0.1)]
)
@pytest.mark.parametrize("decay", [None, 0.8, 0.98, 1.0])
def test_the_error_is_within_both_bounds(length: int, window: int, delta: float, decay: float | None) -> None:
    found = draw(1000, length, window, delta, decay, seed=length).report()
    held = found.holds
    assert held.mean() > 0.9
    assert (found.error <= found.bound * (1 + 1e-9))[held].all()
    assert (found.bound <= found.theorem * (1 + 1e-9))[held].all()


def test_the_bound_is_nearly_reached() -> None:
    found = draw(2000, 16, 4, 1 / 64, None, seed=5).report()
    assert (found.error / found.bound)[found.holds].max() > 0.999


def _one(a, scores, x, pos, delta, window):
    """An instance with d_state 1 and c = 1, where b is the score."""
    a, scores, x = (np.array(part, dtype=float)[None] for part in (a, scores, x))
    b, values = scores[..., None], x[..., None]
    rho = scores[:, pos - 1]
    return copy_report(a, b, np.ones((1, 1)), values, np.ones_like(values), np.array([pos]), rho, delta, window)


def test_by_hand() -> None:
    """y = ½·δ·(−1) + (1/1)·v_2 at p = i = 2: δ times the weight of what lies before."""
    found = _one([1, 0.5], [0.1, 1.0], [-1, 1], pos=2, delta=0.2, window=1)
    assert found.error == pytest.approx(0.05)
    assert found.bound == pytest.approx(0.2 * 0.5)
    assert found.theorem == pytest.approx(0.2 * 0.5 / 0.5)
    assert found.fails(0) == []


def test_the_maximum_of_the_paper_leaves_out_the_decay_that_matters() -> None:
    """a_p is not among a_1 … a_{p−1}: with small ones before and a_p = 1 the paper's condition is below the error."""
    found = _one([0.01, 0.01, 1.0], [0.0999, 0.0999, 1.0], [-1, -1, -1], pos=3, delta=0.1, window=1)
    assert found.holds.all()
    assert found.paper < found.error <= found.bound <= found.theorem


@pytest.mark.parametrize("name", ["mismatch", "match", "sum", "values", "position", "decay"])
def test_a_broken_assumption_is_named(name: str) -> None:
    whole = draw(50, 16, 4, 1 / 64, 15 / 16, seed=1)
    broken = {
        "mismatch": replace(whole, b=whole.b + whole.c[:, None] * (np.arange(16) < 12)[None, :, None]),
        "match": replace(whole, rho=whole.rho + 0.5),
        "sum": replace(whole, b=whole.b * 2),
        "values": replace(whole, x=whole.x * 3),
        "position": replace(whole, pos=np.full(50, 3)),
        "decay": replace(whole, a=whole.a * 1.25),
    }[name]
    found = broken.report()
    assert not found.holds.all()
    assert sum(ASSUMPTIONS[name] in found.fails(i) for i in range(50)) > 40
    assert whole.report().holds.all()


def _needed(a: np.ndarray, places: list[int], rho: float, delta: float, window: int) -> float:
    """The ε for which (7) is met at all positions, M‖Δ‖ = 1: each reads the place it copies by ρ, and nothing else."""
    reports = [_one(a[:i], np.eye(i)[p - 1] * rho, np.ones(i), p, delta, window) for i, p in enumerate(places, 1)]
    assert all(report.holds.all() for report in reports)
    return max(float(report.paper[0]) for report in reports)


def test_one_rho_gives_the_clause_on_delta_where_something_earlier_is_copied() -> None:
    """δ ≤ ε/((L − 1)M‖Δ‖); where every position copies itself the second quotient is 0, and δ may be larger."""
    rng, earlier, beyond = np.random.default_rng(0), 0, 0
    for _ in range(600):
        window = int(rng.integers(2, 6))
        a, rho = rng.uniform(0.6, 1, 7), rng.uniform(0.7, 1)
        delta = rng.uniform(0, 0.5) ** 2
        back = rng.integers(0, window, 7) * (rng.random(7) < 0.3)
        places = [max(1, i - int(b)) for i, b in enumerate(back, 1)]
        epsilon = _needed(a, places, rho, delta, window)
        if any(p < i for i, p in enumerate(places, 1)):
            earlier += epsilon <= 2
            assert epsilon > 2 or delta <= epsilon / (window - 1)
        beyond += delta > _needed(a / 10, list(range(1, 8)), rho, delta, window) / (window - 1)
    assert earlier > 50 and beyond > 50


def test_the_sum_of_assumption_1_may_come_to_one() -> None:
    found = _one([1, 1], [0.0, 1.0], [1, 1], pos=2, delta=0.1, window=1)
    assert found.holds.all() and found.error == 0


def test_without_the_assumption_the_bound_does_fail() -> None:
    """So that the property above is no empty one."""
    whole = draw(200, 16, 4, 1 / 64, 15 / 16, seed=1)
    far = replace(whole, b=whole.b + whole.c[:, None] * (np.arange(16) < 12)[None, :, None])
    found = far.report()
    assert (found.error > found.bound).mean() > 0.5
