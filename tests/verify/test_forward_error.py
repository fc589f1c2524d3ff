"""The bound of a run on majorants: sums and products in float32 stay within it, where they underflow too."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from verify.forward_error import Majorant, gamma, shares, weighted

WEIGHTS = (Fraction(1), Fraction(-2), Fraction(1, 3), Fraction(1, 2**40), Fraction(3, 2**70), Fraction(1, 10**60))


def random_runs(rng, runs):
    """(float32 result, exact result, majorant) of random sums and products of numbers of very different sizes."""
    for _ in range(runs):
        x = np.float32(rng.choice([-1, 1]) * 2.0 ** rng.uniform(-60, 3))
        single, exact, majorant = x, Fraction(float(x)), Majorant(abs(float(x)))
        for _ in range(rng.integers(1, 7)):
            y = np.float32(rng.choice([-1, 1]) * 2.0 ** rng.uniform(-60, 3))
            weight = WEIGHTS[rng.integers(len(WEIGHTS))]
            match rng.integers(3):
                case 0:
                    single, exact = single * y, exact * Fraction(float(y))
                    majorant = majorant * Majorant(abs(float(y)))
                case 1:
                    single, exact = single + y, exact + Fraction(float(y))
                    majorant = majorant + Majorant(abs(float(y)))
                case _:
                    single, exact, majorant = single * np.float32(float(weight)), exact * weight, majorant * weight
        yield single, exact, majorant


@pytest.mark.parametrize("seed", range(4))
def test_float32_stays_within_the_bound_where_it_underflows(seed):
    lost = 0
    for single, exact, majorant in random_runs(np.random.default_rng(seed), 500):
        error = abs(Fraction(float(single)) - exact)
        assert error <= majorant.error("float32")
        lost += error > replace(majorant, lost=0.0).error("float32")
    assert lost > 20  # rounding alone does not explain these


def test_a_flushed_result_is_within_the_bound_and_is_carried_on():
    """2^-100·2^-100 is 0 in float32; a later factor 2^90 makes 2^-110 of what was lost."""
    tiny = Majorant(2.0**-100)
    assert tiny.lost == 0 < (tiny * tiny).lost
    assert (tiny * tiny * Majorant(2.0**90)).error("float32") >= 2.0**-110
    assert (tiny * Fraction(2)).lost == 0  # nothing that grows underflows


def test_a_weight_that_float32_cannot_hold_may_be_lost_whole():
    assert weighted(Fraction(1, 10**60)).lost == 1 and weighted(Fraction(1, 2**200)).lost == 1
    assert weighted(Fraction(1, 3)).lost == 0 == weighted(2).lost


def test_many_inputs_at_once_are_each_input_alone():
    x, y = np.array([1.5, 2.0**-90, 3.0]), np.array([0.1, 2.0**-70, 1e30])
    together = (Majorant(x) * Majorant(y) + Majorant(x)) * Fraction(1, 3) + 5
    alone = [(Majorant(a) * Majorant(b) + Majorant(a)) * Fraction(1, 3) + 5 for a, b in zip(x, y, strict=True)]
    assert together.error("float32").tolist() == [m.error("float32") for m in alone]
    assert all(m.roundings == together.roundings for m in alone)


def test_no_bound_is_claimed_of_too_many_roundings():
    with pytest.raises(ValueError, match="no certain digit"):
        gamma(2**23, "float32")


def test_an_error_beside_no_bound_is_no_share_of_0():
    assert shares(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.0, 2.0])).tolist() == [0, np.inf, 0.5]
