"""Kernels as sums of products, words as signs, and the soft selection made of them."""

from math import comb, exp, log, pi, sqrt

import numpy as np
import pytest

from constructions.token_selection.relu_gadgets import kernel
from constructions.token_selection.relu_gadgets.embedding import context_keys, sign_embedding, sign_length
from constructions.token_selection.relu_gadgets.random_features import RandomFeatures
from constructions.token_selection.relu_gadgets.selection import SoftSelection, sharpness, unit_scale
from verify import lemma_bounds as stated


@pytest.mark.parametrize("chi", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("error", [0.1, 1e-4])
def test_both_rules_for_the_terms_of_a_kernel(chi, error) -> None:
    top, terms = kernel.top_frequency(chi, error), kernel.taylor_terms(chi, error)
    assert kernel.tail(chi, top) <= error and stated.poisson_tail(chi, terms) <= error
    s = np.linspace(-pi, pi, 2001)
    for alpha, bound in (
        (kernel.coefficients(chi, top), kernel.tail(chi, top)),
        (kernel.taylor_coefficients(chi, terms), stated.poisson_tail(chi, terms) + 1e-12),
    ):
        assert (alpha >= 0).all() and alpha.sum() <= 1 + 1e-12
        off = np.abs(np.cos(np.outer(s, np.arange(len(alpha)))) @ alpha - kernel.kernel(s[:, None], 0, chi))
        assert off.max() <= bound and off.max() - off[1000] < 1e-12  # the most at s = 0


def test_taylor_coefficients_by_hand() -> None:
    """e^−χ(1 + χ cos s + χ²/2·cos² s) has 1 + χ²/4, χ and χ²/4."""
    assert kernel.taylor_coefficients(2.0, 3) == pytest.approx(np.array([2, 2, 1]) * exp(-2))


@pytest.mark.parametrize("d", [1, 2])
def test_features_are_every_product_of_waves(d) -> None:
    made, top = kernel.features(d, 2, pi, 1e-2), 2
    x = np.random.default_rng(0).uniform(-pi, pi, (200, d))
    assert made.network.outputs == stated.kernel_terms(top, d) == 5**d
    assert np.abs(made(x) - kernel.exact_features(x, top)).max() <= made.error and np.abs(made(x)).max() <= 1
    by_hand = [np.ones(200), *(f(a * x[:, 0]) for a in (1, 2) for f in (np.cos, np.sin))]
    if d == 1:
        assert np.allclose(kernel.exact_features(x, top), np.stack(by_hand, 1))


def test_words_as_signs() -> None:
    for vocab in (2, 8, 64):
        signs = sign_embedding(vocab)
        assert signs.shape == (vocab, stated.sign_length(vocab)) and set(np.unique(signs)) == {-1, 1}
        products = signs @ signs.T
        assert all(2 * products[u, v] <= signs.shape[1] for u in range(vocab) for v in range(u))
    assert sign_length(8) == 28 and sign_length(64) == 61 and sign_length(512) == 95
    with pytest.raises(ValueError, match="28 signs suffice"):
        sign_embedding(8, 1)


def test_contexts_by_hand() -> None:
    words = np.array([3, 1, 2])
    assert context_keys(words, 2, 9, 1).tolist() == [[9, 9], [3, 9], [1, 3]]
    assert context_keys(words, 2, 9, 0).tolist() == [[3, 9], [1, 3], [2, 1]]


def test_the_number_of_terms_is_exponential_in_d() -> None:
    assert [stated.kernel_terms(1, d) for d in range(5)] == [3**d for d in range(5)]
    assert comb(4, 2) < stated.kernel_terms(1, 4)


def test_a_selection_is_the_soft_maximum_and_needs_the_skip() -> None:
    """Two tokens at the ends of a circle; where the filter keeps the query of the first token, the answer is wrong."""
    chi = sharpness(2, 2.0, 0.2)
    made = SoftSelection(1, 1, 2, chi, pi, 1.0, 0.1)
    assert made.channels == made.first.outputs == stated.selection_channels(made.top, 1, 1)
    keys = np.array([[[0.0], [pi]]] * 2)
    queries, values = np.array([[0.0], [pi]]), np.array([[[1.0], [-1.0]]] * 2)
    out = made(keys, queries, values)[:, 0]
    assert np.abs(out - [1, -1]).max() <= stated.soft_selection_error(2, chi * 2.0, 2) + made.error <= 0.2
    tokens = made.first(np.concatenate([keys, np.zeros_like(keys), values], -1))
    summed = tokens.sum(1)  # a filter of ones on every channel, the query too: 0 + 0 for each
    assert made.second(summed)[1, 0] > 0.5


def test_an_imperfect_best_match_takes_as_many_features_as_its_weight_is_small() -> None:
    """II.5 with real waves: d' = 2, best score −0.085, δ = 0.8, n = 60, ε = 0.01: A = 84, D = 57,124, within ε.

    Weights are no less than exp(−χ(1 − s*)), so the kernel may err by ε·exp(−χ(1 − s*))/(8n) only.
    """
    gap, error, n, best = 0.8, 0.01, 60, -0.085
    chi, scale = 2 / gap * log(4 * n / error), unit_scale(gap)
    assert scale == pytest.approx(sqrt(3 * gap / 4))
    sharp, eta = chi / scale**2, error * exp(-chi * (1 - best)) / 8 / n
    top = kernel.top_frequency(sharp, eta / 2)
    assert top == 84 and stated.selection_channels(top, 2, 1) == 57_124
    rng = np.random.default_rng(0)
    angle = np.arccos(np.concatenate([[best], rng.uniform(-1, best - gap, n - 1)])) * rng.choice([-1, 1], n)
    value = np.where(np.arange(n) == 0, 1.0, rng.uniform(-1, 0, n))
    keys, query = np.stack([np.cos(angle), np.sin(angle)], 1), np.array([1.0, 0.0])
    phi, psi = (kernel.exact_features(scale * x, top) for x in (keys, query))
    weighted = kernel.weights(sharp, 2, top) * psi
    found = weighted @ (phi.T @ value) / (weighted @ phi.sum(0))
    assert abs(found - 1) <= error


def test_sums_stay_within_the_room_for_n_tokens() -> None:
    """The largest sums there are: n tokens on one place, values of one sign."""
    made = SoftSelection(1, 1, 3, 1.0, pi, 0.1, 0.2)
    keys, values = np.zeros((1, 3, 1)), np.ones((1, 3, 1))
    assert abs(made(keys, np.zeros((1, 1)), values).item() - 1) <= made.error


@pytest.mark.parametrize(("top", "error"), [(1, 0.1), (5, 1e-2), (11, 1e-4)])
def test_waves_have_the_sizes_that_are_stated(top, error) -> None:
    built, promised = kernel.waves(top, pi, error).network.sizes(), stated.wave_sizes(top, error, pi)
    assert all(0.8 * promised[name] <= built[name] <= promised[name] for name in ("L", "W", "S", "B"))


@pytest.mark.parametrize(("d", "top", "error"), [(2, 1, 0.1), (2, 3, 1e-2), (3, 1, 0.1), (4, 1, 1e-2)])
def test_features_have_the_sizes_that_are_stated(d, top, error) -> None:
    built, promised = kernel.features(d, top, pi, error).network.sizes(), stated.feature_sizes(top, d, error, pi)
    assert all(0.5 * promised[name] <= built[name] <= promised[name] for name in ("L", "W", "S", "B"))


@pytest.mark.parametrize(("n", "letters", "digits", "count", "pairs"), [(1, 2, 1, 3, 4), (3, 5, 3, 60, 14)])
def test_random_features_have_the_sizes_that_are_stated(n, letters, digits, count, pairs) -> None:
    made = RandomFeatures(n, letters, digits, pairs, count)
    promised = stated.random_feature_sizes(n, letters, digits, count, pairs)
    for network in (made.first, made.second):
        assert all(network.sizes()[name] <= promised[name] for name in ("L", "W", "B"))
    assert made.first.nonzeros + made.second.nonzeros <= promised["S"]
    assert made.first.outputs == made.channels == promised["D"]
