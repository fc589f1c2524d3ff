"""The periodic Gaussian kernel as a sum of products (Lemma F.5), and over several coordinates (Lemma F.6).

κ(s) = exp(−χ(1 − cos s)) = Σ_{a≥0} α_a cos(a·s),  α_0 = e^−χ·I_0(χ),  α_a = 2e^−χ·I_a(χ)  (Jacobi and Anger)

All α_a > 0, and they add up to κ(0) = 1. So what is cut off after a = A is at most tail(A) = 1 − Σ_{a≤A} α_a, at s = 0
exactly that. cos(a(x − y)) = cos(ax)cos(ay) + sin(ax)sin(ay) makes 2A + 1 products of a function of x and one of y;
with cosines that err by η (and stay within [−1, 1]) each pair errs by 4η at most: tail + 4η.

The paper takes a Taylor series instead; as we restore it (its formula is lost), that of e^(χ cos s), α_a from the
powers n < N of cos, whose error is P[Poisson(χ) ≥ N]; N has to grow with χ, not only with log 1/ε. Over d coordinates
κ(s_1)·…·κ(s_d) has (2A + 1)^d terms: exponential in d.
"""

from __future__ import annotations

from itertools import product as every
from math import ceil, comb, e, exp, lgamma, log, log2, pi, sqrt

import numpy as np

from compiler.machines.fnn_ssm.relu_network import linear, of_one_input, select, side_by_side
from constructions.token_selection.relu_gadgets.approximation import Approximation, teeth_for, tooth
from constructions.token_selection.relu_gadgets.cosine import wave_within
from constructions.token_selection.relu_gadgets.products import product_of_many
from verify.arguments import at_least


def coefficients(chi: float, top: int) -> np.ndarray:
    """α_0 … α_A, A = top."""
    from scipy.special import ive

    return ive(np.arange(top + 1), chi) * np.where(np.arange(top + 1), 2, 1)


def tail(chi: float, top: int) -> float:
    """Σ_{a > A} α_a: the largest error of the sum that ends at A, added up where it is not lost in 1 − Σ."""
    more = ceil(top + 40 + 12 * sqrt(chi))
    return float(coefficients(chi, more)[top + 1 :].sum()) + 1e-15


def top_frequency(chi: float, error: float) -> int:
    """A = ⌈√(2χΛ) + 2Λ/3⌉ with Λ = ln(2/ε): tail(A) ≤ ε."""
    span = log(2 / error)
    return ceil(sqrt(2 * chi * span) + 2 * span / 3)


def taylor_terms(chi: float, error: float) -> int:
    """N = max(⌈2eχ⌉, ⌈log2 1/ε⌉): P[Poisson(χ) ≥ N] ≤ ε."""
    return max(ceil(2 * e * chi), ceil(log2(1 / error)), 1)


def taylor_coefficients(chi: float, terms: int) -> np.ndarray:
    """α_0 … α_{N−1} from the powers of cos below N = terms."""
    alpha = np.zeros(terms)
    for n in range(terms):
        weight = exp(-chi + n * log(chi) - lgamma(n + 1))
        for a in range(n % 2, n + 1, 2):
            alpha[a] += weight * comb(n, (n - a) // 2) / 2**n * (2 if a else 1)
    return alpha


def indices(d: int, top: int) -> list[tuple[int, ...]]:
    """The waves of a feature, one of each coordinate: 0 is 1, 2a − 1 is cos(a·), 2a is sin(a·); (2A + 1)^d of them."""
    return list(every(range(2 * top + 1), repeat=d))


def frequency(wave: int) -> int:
    """a of a wave."""
    return (wave + 1) // 2


def weights(chi: float, d: int, top: int) -> np.ndarray:
    """Of each feature the product of its α."""
    alpha = coefficients(chi, top)
    return np.array([np.prod([alpha[frequency(w)] for w in index]) for index in indices(d, top)])


def waves(top: int, largest: float, error: float) -> Approximation:
    """x ↦ (1, cos x, sin x, …, cos Ax, sin Ax) for |x| ≤ largest, each within the error and within [−1, 1]."""
    parts = [linear(1, [{}], [1])]
    parts += [wave_within(error, a, phase, largest).network for a in range(1, top + 1) for phase in (0, pi / 2)]
    return Approximation(of_one_input(*parts), error)


def features(d: int, top: int, largest: float, error: float) -> Approximation:
    """x in [−largest, largest]^d ↦ all products of a wave of each coordinate, (2A + 1)^d of them."""
    at_least("d", d, 1, "a key has a coordinate")
    if d == 1:
        return waves(top, largest, error)
    one = waves(top, largest, error / 2 / d)
    m = teeth_for(error / 2 / (d - 1))
    pair, count = product_of_many(d, m).network, 2 * top + 1
    all_waves = side_by_side(*[one.network] * d)
    chosen = select(d * count, [i * count + w for index in indices(d, top) for i, w in enumerate(index)])
    tensor = side_by_side(*[pair] * count**d)
    return Approximation(all_waves.then(chosen, tensor), d * one.error + (d - 1) * tooth(m))


def kernel_error(chi: float, d: int, top: int, feature_error: float) -> float:
    """What Σ α·φ(x)·φ(y) is off from Π κ(x_i − y_i), both φ made by networks: d·tail + 2^(d+1)·ε_φ.

    Σ over the multi-indices of α is at most 1, each of them has at most 2^d features, of at most 1.
    """
    return d * tail(chi, top) + 2 ** (d + 1) * feature_error


def exact_features(x: np.ndarray, top: int) -> np.ndarray:
    """(…, d) to (…, (2A + 1)^d): the features by cos and sin themselves, as a filter over positions has them."""
    x = np.asarray(x, dtype=float)
    angles = x[..., None] * np.array([frequency(w) for w in range(2 * top + 1)])
    odd = np.arange(2 * top + 1) % 2 == 1
    each = np.where(odd | (np.arange(2 * top + 1) == 0), np.cos(angles), np.sin(angles))
    out = each[..., 0, :]
    for i in range(1, x.shape[-1]):
        out = (out[..., :, None] * each[..., i, None, :]).reshape(*x.shape[:-1], -1)
    return out


def kernel(x: np.ndarray, y: np.ndarray, chi: float) -> np.ndarray:
    """Π_i exp(−χ(1 − cos(x_i − y_i))) over the last axis."""
    return np.exp(-chi * (1 - np.cos(np.asarray(x) - np.asarray(y))).sum(-1))
