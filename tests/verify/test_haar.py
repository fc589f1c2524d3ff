"""The Haar oracle against sums written out, and the slope from which float32 bases are exact against exp itself."""

from fractions import Fraction

import numpy as np
import pytest

from constructions.selectivity.haar_bases import exact_slope, grid_error
from verify.haar import haar_of


def test_small_transforms_are_those_written_out():
    a, b, c, d, e, f, g, h = samples = [Fraction(n**3 + 1, 7) for n in range(8)]
    assert haar_of([a]) == [a]
    assert haar_of([a, b]) == [a + b, a - b]
    assert haar_of([a, b, c, d]) == [a + b + c + d, a + b - c - d, a - b, c - d]
    scales = [[a + b + c + d - e - f - g - h], [a + b - c - d, e + f - g - h], [a - b, c - d, e - f, g - h]]
    assert haar_of(samples) == [sum(samples), *scales[0], *scales[1], *scales[2]]


def test_each_coefficient_is_a_sum_over_its_support():
    rng = np.random.default_rng(0)
    samples = rng.integers(-100, 101, 32).tolist()
    found = haar_of(samples)
    assert len(found) == 32
    for j in range(5):
        for k in range(2**j):
            width = 32 // 2**j
            support = samples[k * width : (k + 1) * width]
            assert found[2**j + k] == sum(support[: width // 2]) - sum(support[width // 2 :])


@pytest.mark.parametrize("count", [0, 3, 5, 6, 7, 9, 12, 24])
def test_other_numbers_of_samples_are_refused(count):
    with pytest.raises(ValueError, match=f"{count} samples"):
        haar_of([1] * count)


@pytest.mark.parametrize("j, k, bins", [(1, 1, 4), (2, 3, 64)])
def test_the_exact_slope_is_the_least_for_a_whole_step(j, k, bins):
    """The nearest centre is half a bin from a jump, so Δ is slope / (2 · bins) there; 104 is the first whole Δ at which
    float32's exp(−Δ) is 0. Before the wavelet begins nothing hides what is left of it.
    """
    first = next(n for n in range(200) if np.exp(np.float32(-n)) == 0)
    assert exact_slope(bins) == 2 * first * bins
    assert grid_error(j, k, 2 * first * bins, bins) == 0
    assert grid_error(j, k, 2 * (first - 1) * bins, bins) > 0
