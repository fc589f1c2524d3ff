"""Lemmas F.1, F.5, F.6, H.1 and H.3 of paper D: soft maxima, kernels as sums of products, words as signs, contexts.

What a reader might fill in for lost formulas, and is wrong, is measured too: `counterexamples`.
"""

from __future__ import annotations

from math import ceil, e, log, log2, pi

import numpy as np

from constructions.token_selection.lemmas import AT_ONCE, Row, row_of
from constructions.token_selection.relu_gadgets import kernel
from constructions.token_selection.relu_gadgets.embedding import context_keys, context_vectors, sign_embedding
from verify import lemma_bounds as stated

FEWEST_SEQUENCES = 400  # a context of three words comes again in every thirtieth


def rows(samples: int, seed: int) -> list[Row]:
    """All of them."""
    rng = np.random.default_rng(seed)
    return [
        softmax_row(samples, rng),
        *(taylor_row(chi, error, samples, rng) for chi, error in ((4.0, 1e-3), (80.0, 1e-2))),
        *(kernel_row(chi, error, samples, rng) for chi, error in ((4.0, 1e-3), (80.0, 1e-2))),
        *(network_row(form, samples, rng) for form in ("networks", "filter", "filter and network")),
        tensor_row(samples, rng),
        *(embedding_row(vocab, samples, rng) for vocab in (8, 64, 512)),
        context_row(8, 3, samples, rng),
    ]


def softmax_row(samples: int, rng: np.random.Generator) -> Row:
    """F.1: scores with a gap, or several on top that share a value; error: the largest share of the bound.

    points: those of which a share was measured; where the bound is at most 1e-12, float64 itself is off by as much.
    """
    shares, points = [], 0
    for d in (2, 5, 30):
        count = samples // 3 + 1
        gap = rng.uniform(0, 12, (count, 1))
        less = np.where(
            rng.random((count, 1)) < 0.5, 0, rng.exponential(1, (count, d))
        )  # half of them right at the gap
        theta, value = -gap - less, rng.uniform(-1, 1, (count, d))
        value[: count // 2, 1:] = -np.sign(value[: count // 2, :1])
        theta[:, 0] = 0
        tied = (rng.random(count) < 0.1) & (d > 2)  # of two, both on top would leave nothing to bound
        theta[tied, 1], value[tied, 1] = 0, value[tied, 0]
        soft = np.exp(theta) / np.exp(theta).sum(1, keepdims=True)
        others = d - 1 - tied
        spread = value.max(1) - value.min(1)
        bound = others * np.exp(-gap[:, 0]) * spread
        off = np.abs((soft * value).sum(1) - value[:, 0])
        told = bound > 1e-12
        points += int((told | ~tied).sum())
        shares.extend(off[told] / bound[told])
        distance = np.abs(soft - np.eye(d)[0]).sum(1)[~tied]
        shares.extend(distance / (2 * (d - 1) * np.exp(-gap[~tied, 0])))
    return row_of("F.1", "soft maximum, share of its bound", points, float(max(shares)), 1.0, good=points > 0)


def taylor_row(chi: float, error: float, samples: int, rng: np.random.Generator) -> Row:
    """F.5 by a Taylor series, as we restore the paper's: that of e^(χ cos s), on [−π, π]."""
    terms = kernel.taylor_terms(chi, error)
    off = _off(kernel.taylor_coefficients(chi, terms), chi, samples, rng)
    tail = stated.poisson_tail(chi, terms) + 1e-12  # the last: float64 adds up so many terms
    return row_of(
        "F.5", f"Taylor, χ = {chi:g}, ε = {error:g}", samples, off, tail, terms=2 * terms - 1, good=tail <= error
    )


def kernel_row(chi: float, error: float, samples: int, rng: np.random.Generator) -> Row:
    """F.5 by the coefficients themselves: A + 1 frequencies instead of N."""
    top = kernel.top_frequency(chi, error)
    off, tail = _off(kernel.coefficients(chi, top), chi, samples, rng), kernel.tail(chi, top)
    return row_of(
        "F.5", f"kernel, χ = {chi:g}, ε = {error:g}", samples, off, tail, terms=2 * top + 1, good=tail <= error
    )


def _off(alpha: np.ndarray, chi: float, samples: int, rng: np.random.Generator) -> float:
    """The largest error of Σ α_a cos(a·s), with the corners s = 0 and ±π."""
    points = np.concatenate([[0, pi, -pi], rng.uniform(-pi, pi, samples)])
    parts = np.array_split(points, max(1, samples // AT_ONCE))
    return max(
        float(np.abs(np.cos(np.outer(s, np.arange(len(alpha)))) @ alpha - kernel.kernel(s[:, None], 0, chi)).max())
        for s in parts
    )


def network_row(form: str, samples: int, rng: np.random.Generator, chi: float = 4.0, error: float = 1e-2) -> Row:
    """F.5 (i) both sides by networks, (ii) x a position of a filter and y fixed, (iii) a filter and a network."""
    top = kernel.top_frequency(chi, error / 2)
    made = kernel.waves(top, pi, error / 8)
    off = {"networks": 4, "filter": 0, "filter and network": 2}[form] * made.error
    x, y = _pairs(1, samples, rng)
    worst = 0.0
    for xs, ys in zip(*(np.array_split(z, max(1, samples // AT_ONCE)) for z in (x, y)), strict=True):
        if form != "networks":
            xs = np.round(xs * 64 / 2 / pi) * 2 * pi / 64  # positions 0 … 63
        left = made(xs) if form == "networks" else kernel.exact_features(xs, top)
        right = kernel.exact_features(ys, top) if form == "filter" else made(ys)
        got = (left * right) @ kernel.weights(chi, 1, top)
        worst = max(worst, float(np.abs(got - kernel.kernel(xs, ys, chi)).max()))
    sizes = {} if form == "filter" else made.network.sizes()
    promised = {} if form == "filter" else stated.wave_sizes(top, error / 8, pi)
    what = f"by {form}, χ = {chi:g}"
    return row_of(
        "F.5", what, len(x), worst, kernel.tail(chi, top) + off, sizes=sizes, stated=promised, terms=2 * top + 1
    )


def tensor_row(samples: int, rng: np.random.Generator, chi: float = 0.5, error: float = 0.2, d: int = 2) -> Row:
    """F.6: the kernel over d coordinates by (2A + 1)^d products of networks."""
    top = kernel.top_frequency(chi, error / 2 / d)
    made = kernel.features(d, top, pi, error / 2 ** (d + 2))
    bound, (x, y), worst = kernel.kernel_error(chi, d, top, made.error), _pairs(d, samples, rng), 0.0
    for xs, ys in zip(*(np.array_split(z, max(1, samples // AT_ONCE)) for z in (x, y)), strict=True):
        got = (made(xs) * made(ys)) @ kernel.weights(chi, d, top)
        worst = max(worst, float(np.abs(got - kernel.kernel(xs, ys, chi)).max()))
    terms = stated.kernel_terms(top, d)
    promised = stated.feature_sizes(top, d, error / 2 ** (d + 2), pi) | {"D": terms}
    sizes = made.network.sizes() | {"D": made.network.outputs}
    return row_of("F.6", f"d = {d}, χ = {chi:g}", len(x), worst, bound, sizes=sizes, stated=promised)


def _pairs(d: int, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x and y in [−π, π]^d: the corners, equal ones, and others."""
    ends = np.array(np.meshgrid(*[[-pi, 0, pi]] * (2 * d))).reshape(2 * d, -1).T
    x, y = rng.uniform(-pi, pi, (2, samples, d))
    y[: samples // 4] = x[: samples // 4]
    return np.concatenate([ends[:, :d], x]), np.concatenate([ends[:, d:], y])


def embedding_row(vocab: int, samples: int, rng: np.random.Generator) -> Row:
    """H.1: the largest product of two words beside 1/2; every vector within 1/(4√k) is decoded.

    Corners: each word with all the noise towards each of 64 others.
    """
    signs = sign_embedding(vocab)
    k = signs.shape[1]
    products = signs @ signs.T / k
    np.fill_diagonal(products, -1)
    pairs = np.array([(word, other) for word in range(vocab) for other in range(min(vocab, 64))])
    words = np.concatenate([pairs[:, 0], rng.integers(vocab, size=samples)])
    towards = np.concatenate([pairs[:, 1], rng.integers(vocab, size=samples)])
    right = 0
    for word, other in zip(*(np.array_split(z, max(1, samples // AT_ONCE)) for z in (words, towards)), strict=True):
        away = signs[other] - signs[word]
        noise = np.where(away != 0, np.sign(away), rng.choice([-1, 1], away.shape)) * 0.999 / 4 / k**0.5
        right += int((((signs[word] / k**0.5 + noise) @ signs.T).argmax(1) == word).sum())
    good = k == stated.sign_length(vocab) and right == len(words)
    return row_of("H.1", f"V = {vocab}, k = {k}", len(words), float(products.max()), 0.5, good=good)


def context_row(vocab: int, n: int, samples: int, rng: np.random.Generator, length: int = 20) -> Row:
    """H.3: products of contexts of n words beside 1 − 1/(2n), and the word after a unique match, by a soft maximum."""
    count = max(FEWEST_SEQUENCES, samples // length)
    words, signs = rng.integers(vocab, size=(count, length)), sign_embedding(vocab + 1)
    keys = context_keys(words, n, vocab, 1)
    query = context_keys(words, n, vocab, 0)[:, -1:]
    scores = np.einsum("btk,bsk->bts", context_vectors(keys, signs), context_vectors(query, signs))[..., 0]
    matches = (keys == query).all(-1)
    worst = float(scores[~matches].max())
    exact = float(np.abs(scores[matches] - 1).max(initial=0))
    unique = matches.sum(1) == 1
    k = signs.shape[1]
    chi = log(4 * length / (1 / (8 * k**0.5))) / stated.context_gap(n)
    soft = np.exp(chi * (scores - scores.max(1, keepdims=True)))
    value = (soft[..., None] * signs[words] / k**0.5).sum(1) / soft.sum(1, keepdims=True)
    wanted = words[np.arange(count), matches.argmax(1)]
    off = np.abs(value - signs[wanted] / k**0.5).max(1)[unique]
    decoded = (value @ signs.T).argmax(1) == wanted
    good = exact < 1e-12 and off.max() <= 1 / (8 * k**0.5) and bool(decoded[unique].all()) and unique.any()
    what = f"n = {n}, V = {vocab}: product, no match"
    return row_of("H.3", what, scores.size, worst, 1 - stated.context_gap(n), good=bool(good), unique=int(unique.sum()))


def counterexamples() -> dict[str, float]:
    """What does not hold as it stands, each with its number.

    "F.5, N for [0, A]": the error of the Taylor series at χ = 80, ε = 0.01 with N = max(2eA, log2 3/ε) for A = log 3/ε,
    a choice that is valid for arguments up to A only. "H.3, key and query of the same words": how often the last token
    then matches itself. "H.3, nothing before the start": the gap between the match of a context that is cut off at the
    start, zeros standing for what is missing, and a context that does not match; promised are 1/(2n).
    """
    chi, error = 80.0, 0.01
    reach = log(3 / error)
    terms = ceil(max(2 * e * reach, log2(3 / error)))
    off = _off(kernel.taylor_coefficients(chi, terms), chi, 1000, np.random.default_rng(0))
    words, signs, n = np.random.default_rng(0).integers(8, size=(200, 12)), sign_embedding(9), 3
    same = context_keys(words, n, 8, 0)
    itself = (same[:, -1:] == same).all(-1)[:, -1].mean()
    zeroed = np.where(np.arange(9)[:, None] == 8, 0, signs)
    cut, whole = context_vectors(np.array([[1, 8, 8], [1, 2, 3]]), zeroed)
    return {
        "F.5, N for [0, A]": off,
        "H.3, key and query of the same words": float(itself),
        "H.3, nothing before the start": float(cut @ cut - cut @ whole),
    }
