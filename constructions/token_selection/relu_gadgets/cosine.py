"""cos(2πt) and sin(2πt) (Lemma F.3, cos): tents take t to one half period, a parabola and doublings do the rest.

T^(r+1)(|t|/2^r) = w = 2·dist(t, ℤ) and cos(2πt) = cos(πw). c_0 = 1 − u²/2·… with u = πw/2^k errs by u⁴/24 and by
u²/2 times the square's 4^−(m+1); k times c ← 2c² − 1 multiplies an error by at most 4 and adds 2·4^−(m+1):

    π⁴/(24·4^k) + (2/3·4^k + π²/2)·4^−(m+1).

All c lie in [−1, 1] (a square lies between 0 and its argument), so nothing is clipped. |t| and |c| are taken within the
first layer of what follows them.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, log2, pi

from compiler.machines.fnn_ssm.relu_network import ReluNetwork, SparseAffine, linear
from constructions.token_selection.relu_gadgets.approximation import Approximation, tooth
from constructions.token_selection.relu_gadgets.products import HALF, square, square_of_absolute


def cosine(r: int, k: int, m: int) -> Approximation:
    """cos(2πt) for |t| ≤ 2^r: L = r + 2 + (k + 1)m, W = 4, B = max(4, π²/2)."""
    scale = Fraction(1, 2**r)
    rows = [{0: sign * scale} for sign in (1, -1, 1, -1)]
    layers = [SparseAffine.of(1, rows, [0, 0, -HALF, -HALF])]
    tent = {0: 2, 1: 2, 2: -4, 3: -4}
    for _ in range(r):
        layers.append(SparseAffine.of(layers[-1].width, [tent, tent], [0, -HALF]))
        tent = {0: 2, 1: -4}
    layers.append(SparseAffine.of(layers[-1].width, [tent]))
    parabola = linear(1, [{0: -Fraction(pi**2 / 2 / 4**k)}], [1])
    double = square_of_absolute(m).network.then(linear(1, [{0: 2}], [-1]))
    network = ReluNetwork(tuple(layers)).then(square(m).network, parabola, *[double] * k)
    error = pi**4 / 24 / 4**k + (2 / 3 * 4**k + pi**2 / 2) * tooth(m)
    return Approximation(network, error)


def cosine_within(error: float, largest: float) -> Approximation:
    """cos(2πt) for |t| ≤ largest: k = ⌈log2(8.2/ε)/2⌉, m = ⌈log4(2(0.67·4^k + 5)/ε)⌉ − 1."""
    return cosine(max(0, ceil(log2(max(largest, 1)))), *_parts(error))


def _parts(error: float) -> tuple[int, int]:
    """(k, m)."""
    if not 0 < error < 1:
        raise ValueError(f"error = {error}: a cosine is at most 1, so an error lies above 0 and below 1.")
    k = max(1, ceil(log2(8.2 / error) / 2))
    return k, max(1, ceil(log(2 * (0.67 * 4**k + 5) / error, 4)) - 1)


def rounding(error: float) -> float:
    """What float64 adds to a cosine within ε: at most 4^k·u·(4(m + 1)/3 + 1), u = 2^−53.

    A square's teeth are exact in float64 and its m sums of two make 2mu; a doubling adds twice that and u to four times
    what was there.
    """
    k, m = _parts(error)
    return 4.0**k * 2.0**-53 * (4 * (m + 1) / 3 + 1)


def wave_within(error: float, frequency: float, phase: float, largest: float) -> Approximation:
    """cos(frequency·x − phase) for |x| ≤ largest: a sine has the phase π/2."""
    reach = (abs(frequency) * largest + abs(phase)) / (2 * pi)
    made = cosine_within(error, reach)
    turned = linear(1, [{0: Fraction(frequency / (2 * pi))}], [-Fraction(phase / (2 * pi))])
    return Approximation(turned.then(made.network), made.error)
