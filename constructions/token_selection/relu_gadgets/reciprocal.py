"""1/x (Lemma F.3, rec) and y/x (Lemma F.4, as we restore it).

On [a, 1], with z = 1 − x: P_K = Π_{k<K} (1 + z^(2^k)) = (1 − z^(2^K))/x, short of 1/x by at most e^(−a·2^K)/a. The
network keeps z_k (squares, over by δ_k ≤ (2^k − 1)ε with ε = 4^−(m+1)) and Q_k = a·P_k ≤ 1, and multiplies Q_{k+1} =
2·mult(Q_k, (1 + z_k)/2), off by 2ε. Since every 1 + z_k ≥ 1 and their product is at most 1/a,

    |Q_K/a − P_K| ≤ e^(2^K·ε)/a · (2^K + 2(K − 1)/a)·ε.

Q_k·(1 + z_k) ≤ 1 keeps (Q_k + (1 + z_k)/2)/2 at 3/4 or less, so what Q is off never leaves the range of mult.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, log, log2

from compiler.machines.fnn_ssm.relu_network import exact, linear, of_one_input, select, side_by_side
from constructions.token_selection.relu_gadgets.approximation import Approximation, teeth_for, tooth
from constructions.token_selection.relu_gadgets.products import HALF, product, square


def reciprocal(a: float, factors: int, m: int) -> Approximation:
    """1/x for x in [a, 1] by K = factors: L = Km + 1, W ≤ 11, B = max(4, 2/a)."""
    least = exact(a)
    one_more = linear(2, [{1: 1}, {0: HALF}], [0, HALF])  # (z, Q) ↦ (Q, (1 + z)/2)
    network = linear(1, [{0: -1}, {0: -least}], [1, 2 * least])  # x ↦ (z_0, Q_1)
    if factors > 1:
        network = network.then(side_by_side(square(m).network, select(1, [0])))  # (z_1, Q_1)
    for k in range(1, factors):
        grown = one_more.then(product(m).network, linear(1, [{0: 2}]))
        if k + 1 == factors:
            network = network.then(grown)
        else:
            network = network.then(of_one_input(select(2, [0]).then(square(m).network), grown))
    kept = select(network.outputs, [network.outputs - 1])
    network = network.then(kept, linear(1, [{0: 1 / Fraction(least)}]))
    return Approximation(network, exp(-a * 2**factors) / a + _rounding(a, factors) * tooth(m))


def _rounding(a: float, factors: int) -> float:
    """What ε = 4^−(m+1) is multiplied by, where 2^K·ε is at most 1/10."""
    return 1.11 / a * (2**factors + 2 * (factors - 1) / a)


def parts_within(error: float, low: float, high: float) -> tuple[int, int]:
    """(K, m) for 1/x on [low, high] within ε: K = ⌈log2(ln(2/(aε'))/a)⌉ with a = low/high and ε' = ε·high."""
    if not 0 < low <= high:
        raise ValueError(f"[low, high] = [{low}, {high}]: 1/x is taken on an interval above 0.")
    a, inner = low / high, error * high
    factors = max(1, ceil(log2(log(max(2 / (a * inner), 2)) / a)))
    return factors, teeth_for(min(0.1 / 2**factors, inner / 2 / _rounding(a, factors)))


def reciprocal_within(error: float, low: float, high: float) -> Approximation:
    """1/x for x in [low, high] within ε: (1/high)·rec(x/high)."""
    made = reciprocal(low / high, *parts_within(error, low, high))
    scale = 1 / Fraction(high)
    network = linear(1, [{0: scale}]).then(made.network, linear(1, [{0: scale}]))
    return Approximation(network, made.error / high)


def ratio_teeth(error: float, largest: float, low: float, high: float) -> tuple[int, int, int]:
    """(K, m, m') of `ratio_within`: m' teeth of its own product."""
    factors, m = parts_within(error / 2 / largest, low, high)
    return factors, m, teeth_for(error / 2 / (largest * (1 / low + error / 2 / largest)))


def ratio_within(error: float, largest: float, low: float, high: float) -> Approximation:
    """(y, x) ↦ y/x for |y| ≤ Y = largest, x in [low, high]: mult(rec(x), y), each taken down to at most 1.

    |y|·ε_rec + (Y/low')·4^−(m+1), half of the error each; low' = low/(1 + low·ε_rec), for rec may reach 1/low + ε_rec.
    """
    inverse, (_, _, m) = reciprocal_within(error / 2 / largest, low, high), ratio_teeth(error, largest, low, high)
    top = Fraction(1 / low + inverse.error)
    scaled = linear(2, [{0: 1 / Fraction(largest)}, {1: 1 / top}])
    both = side_by_side(select(1, [0]), inverse.network)
    whole = both.then(scaled, product(m).network, linear(1, [{0: top * Fraction(largest)}]))
    return Approximation(whole, largest * inverse.error + float(top) * largest * tooth(m))
