"""Degrees by finite differences on integer rays: exact, and blind to how the function is written.

Along a ray x = s·w a polynomial of total degree D is one in s of degree at most D, for almost
all w exactly D. Its differences of order D + 1 vanish, and those of order D do not. Values are
Python integers or Fractions, so "vanish" means zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log

import numpy as np

from compiler.language.arguments import Exact


def degree_on_ray(function: Callable[[Sequence[int]], Exact], direction: Sequence[int], most: int) -> int:
    """The degree of s ↦ function(s·direction), which must be at most `most` (−1 for the zero function).

    ValueError if the differences of order most + 1 do not vanish: the degree is larger, or it is no polynomial.
    """
    values = [function([s * w for w in direction]) for s in range(most + 2)]
    degree = -1
    for order in range(most + 2):
        if values[0] != 0:
            degree = order
        values = [b - a for a, b in zip(values, values[1:], strict=False)]
    if degree > most:
        raise ValueError(f"the differences of order {most + 1} do not vanish: the degree exceeds {most}.")
    return degree


def degree(function: Callable[[Sequence[int]], Exact], variables: int, most: int, rays: int = 3, seed: int = 0) -> int:
    """The largest degree on some random integer rays: the total degree, unless every ray is exceptional."""
    rng = np.random.default_rng(seed)
    directions = (rng.choice([-3, -2, -1, 1, 2, 3], variables).tolist() for _ in range(rays))
    return max(degree_on_ray(function, direction, most) for direction in directions)


def multilinear_degree(function: Callable[[Sequence[int]], Exact], variables: int) -> int:
    """The degree of the only multilinear polynomial that agrees with a function on {0, 1}^n (2^n values, Möbius
    transform).
    """
    values = [function([mask >> i & 1 for i in range(variables)]) for mask in range(1 << variables)]
    for i in range(variables):
        for mask in range(1 << variables):
            if mask >> i & 1:
                values[mask] = values[mask] - values[mask ^ 1 << i]
    return max((mask.bit_count() for mask, value in enumerate(values) if value != 0), default=-1)


def attention_layers(degree: int, gated: bool = False) -> int:
    """The least number of linear-attention layers whose degree, 3^N (4^N with a multiplicative gate), reaches
    this one.
    """
    base, layers = (4 if gated else 3), max(0, ceil(log(max(degree, 1)) / log(4 if gated else 3)) - 1)
    while base**layers < degree:
        layers += 1
    return layers
