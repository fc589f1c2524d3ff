"""Clipping (Lemma F.2), squares and products (Lemma F.3, mult).

Square. With the tent T(g) = 2R(g) − 4R(g − 1/2) on [0, 1], g_0 = x and g_s = T(g_{s−1}), the sum
sq_m(x) = x − Σ_{s≤m} g_s·4^−s interpolates x² at the multiples of 2^−m. A chord of x² over a step h lies above it by
h²/4 at most: x² ≤ sq_m(x) ≤ x² + 4^−(m+1), and sq_m(x) ≤ x. The running sum is no less than x² ≥ 0, so one R carries
it: three units per layer. (Beyond 1 the tent would need a third, R(g − 1), which is 0 on [0, 1].)

Product. xy = C²·[((x + y)/2C)² − ((x − y)/2C)²] for |x|, |y| ≤ C. The first layer of the square of |z| has R(z), R(−z),
R(z − 1/2), R(−z − 1/2), so the absolute values cost no layer of their own. Both squares err upwards by at most
4^−(m+1), so |mult − xy| ≤ C²·4^−(m+1); for y = 0 both are equal, and the product is 0.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2

from compiler.machines.fnn_ssm.relu_network import ReluNetwork, SparseAffine, exact, linear, select, side_by_side
from constructions.token_selection.relu_gadgets.approximation import Approximation, tooth
from verify.arguments import at_least

HALF = Fraction(1, 2)


def clip(radius: float | Fraction = 1, count: int = 1) -> ReluNetwork:
    """x ↦ min(max(x, −r), r) for each of `count` numbers, exactly: R(x + r) − R(x − r) − r. L = 2, W = 2 count."""
    rows = [{j: 1} for j in range(count) for _ in range(2)]
    shifts = [sign * exact(radius) for _ in range(count) for sign in (1, -1)]
    back = [{2 * j: 1, 2 * j + 1: -1} for j in range(count)]
    return ReluNetwork(
        (SparseAffine.of(count, rows, shifts), SparseAffine.of(2 * count, back, [-exact(radius)] * count))
    )


def positive() -> ReluNetwork:
    """R(x): L = 2."""
    return ReluNetwork((SparseAffine.of(1, [{0: 1}]), SparseAffine.of(1, [{0: 1}])))


def square(m: int) -> Approximation:
    """x² for x in [0, 1]: L = m + 1, W = 3, S = 8m − 3, B = 4."""
    first = SparseAffine.of(1, [{0: 1}, {0: 1}], [0, -HALF])
    return _square(m, first, {0: 1}, {0: 2, 1: -4})


def square_of_absolute(m: int) -> Approximation:
    """x² for |x| ≤ 1: L = m + 1, W = 4, S = 8m + 6 (m ≥ 2), B = 4."""
    first = SparseAffine.of(1, [{0: 1}, {0: -1}, {0: 1}, {0: -1}], [0, 0, -HALF, -HALF])
    return _square(m, first, {0: 1, 1: 1}, {0: 2, 1: 2, 2: -4, 3: -4})


def _square(m: int, first: SparseAffine, absolute: dict[int, int], tent: dict[int, int]) -> Approximation:
    """first: the units of the first layer; absolute, tent: |x| and T(|x|) as sums of them."""
    at_least("m", m, 1, "a square has at least one tooth")
    layers, total = [first], _minus(absolute, tent, 1)
    for s in range(2, m + 1):
        layers.append(SparseAffine.of(layers[-1].width, [tent, tent, total], [0, -HALF, 0]))
        tent = {0: 2, 1: -4}
        total = _minus({2: 1}, tent, s)
    layers.append(SparseAffine.of(layers[-1].width, [total]))
    return Approximation(ReluNetwork(tuple(layers)), tooth(m))


def _minus(total: dict[int, int], tent: dict[int, int], s: int) -> dict[int, Fraction]:
    """total − tent·4^−s."""
    return {j: total.get(j, 0) - Fraction(tent.get(j, 0), 4**s) for j in {**total, **tent}}


def product(m: int, largest: float | Fraction = 1) -> Approximation:
    """x·y for |x|, |y| ≤ C = largest: L = m + 1, W = 8, S = 16m + 20 (m ≥ 2), B = max(4, C², 1/2C)."""
    c = exact(largest)
    scaled = linear(2, [{0: Fraction(1, 2) / c, 1: sign * Fraction(1, 2) / c} for sign in (1, -1)])
    squares = side_by_side(square_of_absolute(m).network, square_of_absolute(m).network)
    network = scaled.then(squares, linear(2, [{0: c * c, 1: -c * c}]))
    return Approximation(network, float(c * c) * tooth(m))


def product_of_many(d: int, m: int, largest: float | Fraction = 1) -> Approximation:
    """x_1·…·x_d for |x_i| ≤ C: a tree of products of numbers of at most 1, each clipped, times C^d.

    |xy − x'y'| ≤ |x − x'| + |y − y'| for numbers of at most 1, so the errors of the d − 1 products add up:
    C^d·(d − 1)·4^−(m+1). L = ⌈log2 d⌉·(m + 1) + 1, W ≤ 8⌈d/2⌉, B = max(4, C^d, 1/C).
    """
    at_least("d", d, 1, "a product has a factor")
    c = exact(largest)
    network, width = linear(d, [{j: Fraction(1) / c} for j in range(d)]), d
    pair = product(m).network.then(clip())
    while width > 1:
        rest = [select(1, [0])] * (width % 2)
        network = network.then(side_by_side(*[pair] * (width // 2), *rest))
        width = (width + 1) // 2
    network = network.then(linear(1, [{0: c**d}]))
    return Approximation(network, float(c**d) * (d - 1) * tooth(m))


def product_sizes(d: int, m: int) -> tuple[int, int]:
    """(L, W) that `product_of_many` is promised to keep."""
    return ceil(log2(d)) * (m + 1) + 1, max(1, 8 * ceil(d / 2))
