"""Sizes and errors of Lemmas F.1–F.6, H.1, H.3 and 3.3 of paper D with their constants written out.

The formulas of the paper ("State Space Models are Provably Comparable to Transformers in Dynamic Token Selection",
appendices F–H) are lost in the text that we read: these are ours, after its words. L: affine maps, W: width, S: nonzero
weights, B: largest magnitude; m: teeth of a square, k: squares or doublings, K: factors of a reciprocal, r: |t| ≤ 2^r,
A: frequencies, d: coordinates of a key.
"""

from __future__ import annotations

from math import ceil, exp, lgamma, log, log2, pi

import numpy as np

from verify.arguments import at_least

Sizes = dict[str, float]


def softmax_error(count: int, gap: float) -> float:
    """F.1 (1): |softmax(θ) − e_i|_1 ≤ 2(d − 1)e^−δ where θ_i ≥ θ_k + δ for all other k."""
    at_least("count", count, 1, "a soft maximum is over something")
    return 2 * (count - 1) * exp(-gap)


def soft_selection_error(count: int, gap: float, spread: float) -> float:
    """F.1 (2): |Σ v_k·softmax(θ)_k − v_i| ≤ (d − 1)e^−δ·(max v − min v); v_k = v_i counts as no other."""
    return softmax_error(count, gap) / 2 * spread


def clip_sizes(radius: float) -> Sizes:
    """F.2."""
    return {"L": 2, "W": 2, "S": 7, "B": max(1, radius)}


def square_sizes(m: int) -> Sizes:
    """x² on [0, 1]; error 4^−(m+1)."""
    return {"L": m + 1, "W": 4, "S": 8 * m - 3, "B": 4}


def product_sizes(m: int, largest: float = 1, factors: int = 2) -> Sizes:
    """F.3 mult of d = `factors` numbers of at most C; error C^d·(d − 1)·4^−(m+1)."""
    levels = ceil(log2(factors))
    clipped = factors > 2
    return {
        "L": levels * (m + 2) + (1 if clipped else 0),
        "W": 8 * ceil(factors / 2),
        "S": (factors - 1) * (16 * m + (50 if clipped else 20)),
        "B": max(4, largest**factors, 1 / largest if clipped else 1 / (2 * largest)),
    }


def exponential_sizes(k: int, m: int) -> Sizes:
    """F.3 exp; error 4e^−2/2^k + 2^k·4^−(m+1)."""
    return {"L": k * m + 2, "W": 4, "S": 8 * k * m, "B": 4}


def reciprocal_sizes(factors: int, m: int, low: float, high: float = 1) -> Sizes:
    """F.3 rec on [low, high]; K = `factors`."""
    largest = max(4, 2 * high / low, 2 / low)
    return {"L": factors * (m + 1), "W": 11, "S": factors * (24 * m + 60), "B": largest}


def ratio_sizes(factors: int, m: int, own: int, largest: float, low: float, high: float) -> Sizes:
    """F.4 (y/x, as we restore it) on |y| ≤ `largest`, x in [low, high]: the reciprocal, y beside it, and a product of
    `own` teeth."""
    inverse, times = reciprocal_sizes(factors, m, low, high), product_sizes(own)
    depth = inverse["L"] + times["L"]
    most = max(inverse["B"], 2 * largest / low)
    return {"L": depth, "W": inverse["W"] + 2, "S": inverse["S"] + times["S"] + 2 * depth + 20, "B": most}


def cosine_sizes(r: int, k: int, m: int) -> Sizes:
    """F.3 cos of 2πt."""
    return {"L": r + 2 + (k + 1) * m, "W": 9, "S": 8 * (k + 1) * m + 16 * k + 5 * r + 20, "B": 5}


def wave_sizes(top: int, error: float, largest: float) -> Sizes:
    """F.5: 1, cos ax and sin ax for a ≤ A = `top`, |x| ≤ `largest`, each a cosine of F.3 within ε, side by side.

    k = ⌈log2(8.2/ε)/2⌉ and m = ⌈log4(2(0.67·4^k + 5)/ε)⌉ − 1; the lower waves pass on to the depth of the highest.
    """
    k = max(1, ceil(log2(8.2 / error) / 2))
    m = max(1, ceil(log(2 * (0.67 * 4**k + 5) / error, 4)) - 1)
    r = ceil(log2(max(1, (top * largest + pi / 2) / (2 * pi))))
    one = cosine_sizes(r, k, m)
    return {"L": one["L"], "W": 8 * top + 2, "S": 2 * top * (one["S"] + 4 * r + 10) + 2 * one["L"] + 4, "B": one["B"]}


def feature_sizes(top: int, d: int, error: float, largest: float) -> Sizes:
    """F.6: the (2A + 1)^d products of a wave of each of d ≥ 2 coordinates within ε, half of it by the waves.

    A product reads waves through their last affine map: 8 rows of at most 10 more weights for each of its two factors.
    """
    at_least("d", d, 2, "of one coordinate the waves are the features")
    m = max(1, ceil(log(2 * (d - 1) / error, 4) - 1e-12) - 1)
    waves, times, terms = wave_sizes(top, error / 2 / d, largest), product_sizes(m, 1, d), kernel_terms(top, d)
    return {
        "L": waves["L"] + times["L"],
        "W": max(d * waves["W"], terms * times["W"]),
        "S": d * waves["S"] + terms * (times["S"] + 80 * d),
        "B": max(waves["B"], times["B"]),
    }


def poisson_tail(chi: float, terms: int) -> float:
    """P[Poisson(χ) ≥ N]: what the Taylor series of F.5 that ends before N = `terms` is off, at s = 0 exactly that."""
    if not chi > 0:
        raise ValueError(f"chi = {chi}: a kernel has a sharpness above 0.")
    more = np.arange(terms, ceil(terms + 60 + 10 * chi**0.5 + chi))
    return float(np.exp(-chi + more * log(chi) - [lgamma(n + 1) for n in more.tolist()]).sum())


def kernel_terms(top: int, d: int = 1) -> int:
    """F.6: (2A + 1)^d products, exponential in d."""
    return (2 * top + 1) ** d


def selection_channels(top: int, d: int, values: int) -> int:
    """3.3: D = (2A + 1)^d·(d_v + 1) + d."""
    return kernel_terms(top, d) * (values + 1) + d


def angle_gap(keys: int) -> float:
    """1 − cos(2π/n) ≥ 8/n² for n ≥ 2 keys at equal distances on a circle: the gap of a score of 1."""
    at_least("keys", keys, 2, "a gap lies between two keys")
    return 8 / keys**2


def sign_length(vocab: int, largest: float = 0.5) -> int:
    """H.1 with a k of ours: ⌈(2/s²)(2 ln V − ln 2)⌉ random signs have <M e_u, M e_v> ≤ s for all pairs with positive
    probability.
    """
    at_least("vocab", vocab, 2, "two words are told apart")
    return ceil(2 / largest**2 * (2 * log(vocab) - log(2)))


def context_gap(n: int) -> float:
    """H.3: <key, query> = 1 where n words match, at most 1 − 1/(2n) elsewhere (words: products of 1/2 at most)."""
    at_least("n", n, 1, "a context has a word")
    return 1 / (2 * n)


def context_match_sizes(n: int, k: int, tokens: int, ratio: Sizes) -> Sizes:
    """H.3 on d' = nk signs by 2^d' features: `ratio` are the sizes of F.4 on |y| ≤ T, x in [1, T]; D counts channels.

    A product of m signs takes m units and (m + 1)² weights at most; over all subsets m is d'/2 and m² d'(d' + 1)/4 on
    average.
    """
    d, features = n * k, 2 ** (n * k)
    alone = features * (d * (d + 1) / 4 + d + 1)
    with_value = features * (d * (d + 1) / 4 + 2 * d + 4)
    met = features * (k + 1)
    first = alone + k * with_value + 4 * d
    second = alone + 4 * met + 2 * met * (d / 2 + 4) + k * (ratio["S"] + 16 * features + 2 * ratio["L"]) + 9 * k
    widest = features * d / 2 + k * features * (d / 2 + 1) + 2 * d
    return {
        "L": ratio["L"] + 3,
        "W": max(widest, features * d / 2 + 2 * met, k * ratio["W"]),
        "S": first + second,
        "B": max(4 * tokens, ratio["B"]),
        "D": met + d,
    }


def random_features(length: int, digits: int, lost: float) -> int:
    """Ours, after 3.1: F = ⌈(28/3)(2N + 1)·ln(2N·d_v/ε')⌉ random ±1 features copy N words without a repeated context,
    but for a share ε'."""
    at_least("length", length, 1, "there is something to copy")
    return ceil(28 / 3 * (2 * length + 1) * log(2 * length * digits / lost))


def random_feature_sizes(n: int, letters: int, digits: int, features: int, pairs: int) -> Sizes:
    """Ours, after 3.1, both networks together, for contexts of n one-hot letters and values of so many signs; D between
    them."""
    one_hot, sums = n * letters, features * digits
    first = sums * ((n + 1) * (one_hot + 2) + n + 2) + 4 * one_hot
    second = features * n * (one_hot + 1) + 2 * sums * (n + 5)
    return {
        "L": 3,
        "W": max(sums * (n + 1), features * n + 2 * sums) + 2 * one_hot,
        "S": first + second,
        "B": max(4 * pairs, n + 1),
        "D": sums + one_hot,
    }


def random_feature_error(features: int, pairs: int, outcomes: int, lost: float) -> float:
    """Ours, after 3.1: e with 2·outcomes·exp(−F·e²/2/(2P + P·e/3)) = `lost`: none of so many numbers is off by more,
    but for that probability (Bernstein)."""
    log_odds = log(2 * outcomes / lost)
    half = log_odds * pairs / 3
    return float((half + np.sqrt(half**2 + 4 * features * log_odds * pairs)) / features)
