"""ReLU gadgets: errors in exact arithmetic, sizes by formula, and what their stated rules for m, k and K promise."""

from fractions import Fraction
from math import exp, pi

import numpy as np
import pytest
import torch

from constructions.token_selection.relu_gadgets.approximation import teeth_for, tooth
from constructions.token_selection.relu_gadgets.cosine import cosine, cosine_within, rounding, wave_within
from constructions.token_selection.relu_gadgets.exponential import exponential, exponential_of, exponential_within
from constructions.token_selection.relu_gadgets.products import (
    clip,
    product,
    product_of_many,
    square,
    square_of_absolute,
)
from constructions.token_selection.relu_gadgets.products import product_sizes as tree_sizes
from constructions.token_selection.relu_gadgets.reciprocal import ratio_within, reciprocal_within


def exactly(network, *points):
    """The values in Fractions: (n, outputs)."""
    return network(np.array([[Fraction(v) for v in point] for point in points], dtype=object))


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_squares_touch_x_squared_and_reach_their_bound(m) -> None:
    """Equal at the multiples of 2^−m, 4^−(m+1) above it halfway between them, in exact arithmetic."""
    grid = [[Fraction(i, 2 ** (m + 1))] for i in range(2 ** (m + 1) + 1)]
    for made, points in ((square(m), grid), (square_of_absolute(m), [*grid, *([-x] for (x,) in grid)])):
        over = [y - x * x for (y,), (x,) in zip(exactly(made.network, *points), points, strict=True)]
        assert set(over) == {0, Fraction(1, 4 ** (m + 1))}
    assert square(m).network.nonzeros == 8 * m - 3 and square(m).network.depth == m + 1
    if m > 1:
        assert square_of_absolute(m).network.nonzeros == 8 * m + 6


@pytest.mark.parametrize("largest", [Fraction(1, 16), 1, 3])
def test_products(largest) -> None:
    """0 times anything is 0; ends of the range; and B is 1/(2C) for a small C, which max(4, C²) leaves out."""
    made = product(5, largest)
    ends = [(x, y) for x in (-largest, 0, largest) for y in (-largest, 0, largest)]
    for (got,), (x, y) in zip(exactly(made.network, *ends), ends, strict=True):
        assert abs(got - x * y) <= largest**2 * Fraction(1, 4**6) and (got == 0 or x * y)
    assert made.network.largest == max(4, largest**2, 1 / (2 * Fraction(largest)))
    assert made.network.nonzeros == 16 * 5 + 20


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_a_tree_of_products(d) -> None:
    made = product_of_many(d, 6, 2)
    depth, width = tree_sizes(d, 6)
    assert made.network.depth == depth and made.network.width <= max(width, d)
    x = np.random.default_rng(d).integers(-64, 65, (500, d)) / 32
    assert np.abs(made(x)[:, 0] - x.prod(1)).max() <= made.error == 2.0**d * (d - 1) * tooth(6)


def test_clip_is_exact() -> None:
    points = [[Fraction(v, 2)] for v in range(-9, 10)]
    assert exactly(clip(3), *points)[:, 0].tolist() == [min(max(v, -3), 3) for (v,) in points]


@pytest.mark.parametrize("error", [0.3, 1e-2, 1e-3])
def test_each_rule_keeps_what_it_was_asked(error) -> None:
    """The rules for k, m and K: the proved error is at most the one that was asked for, whatever the range."""
    made = [exponential_within(error), *(cosine_within(error, reach) for reach in (0.2, 1, 9))]
    made += [reciprocal_within(error, *ends) for ends in ((0.02, 1), (1, 1), (0.3, 50), (3, 3.5))]
    made += [ratio_within(error, largest, *ends) for largest, ends in ((0.5, (0.1, 2)), (20, (0.5, 20)))]
    assert all(0 < one.error <= error for one in made)
    assert tooth(teeth_for(error)) <= error < tooth(teeth_for(error) - 1) or teeth_for(error) == 1


@pytest.mark.parametrize(("k", "m"), [(1, 3), (3, 4), (6, 9)])
def test_exponential_where_its_proof_is_tight(k, m) -> None:
    """At x = 2 the power falls short most, 4e^−2/n of it; beyond n it is 0."""
    made, x = exponential(k, m), np.linspace(0, 2**k + 2, 4001)[:, None]
    off = made(x)[:, 0] - np.exp(-x[:, 0])
    assert np.abs(off).max() <= made.error and abs(made(np.array([[2.0**k]])).item()) <= 2**k * tooth(m)
    power = exp(-2) - (1 - 2 / 2**k) ** 2**k if k > 1 else exp(-2)
    assert power <= 4 * exp(-2) / 2**k
    halved = exponential_of(0.01, 0.5)
    assert np.abs(halved(x)[:, 0] - np.exp(-x[:, 0] / 2)).max() <= halved.error


def test_cosines_stay_within_one_and_reach_far() -> None:
    made = cosine(5, 5, 8)
    t = np.linspace(-32, 32, 20001)[:, None]
    got = made(t)[:, 0]
    assert np.abs(got).max() <= 1 and np.abs(got - np.cos(2 * pi * t[:, 0])).max() <= made.error
    sine = wave_within(1e-2, 3, pi / 2, 4)
    x = np.linspace(-4, 4, 5001)[:, None]
    assert np.abs(sine(x)[:, 0] - np.sin(3 * x[:, 0])).max() <= sine.error + 1e-12


def test_torch_computes_the_same() -> None:
    made = ratio_within(1e-2, 2, 0.5, 4)
    x = np.random.default_rng(0).uniform([-2, 0.5], [2, 4], (300, 2))
    module = made.network.module()
    assert np.abs(module(torch.from_numpy(x)).detach().numpy() - made(x)).max() < 1e-9


def test_what_cannot_be_is_refused() -> None:
    for wrong in (lambda: square(0), lambda: product_of_many(0, 3), lambda: teeth_for(0)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError, match=r"1/x is taken on an interval above 0"):
        reciprocal_within(0.1, 0, 1)
    with pytest.raises(ValueError, match="error = 1.5: a cosine"):
        cosine_within(1.5, 1)


def test_what_float64_adds_to_a_cosine_is_bounded() -> None:
    """In exact arithmetic it is within 1e-9; in float64 its 17 doublings multiply what is rounded by 4 each."""
    made, at = cosine_within(1e-9, 4), np.random.default_rng(0).uniform(-4, 4, 20_000)
    off = np.abs(made(at[:, None])[:, 0] - np.cos(2 * np.pi * at)).max()
    assert made.error < off <= made.error + rounding(1e-9)
