"""Kernels as sums of products, words as signs, and the soft selection made of them."""

from math import comb, exp, pi

import numpy as np
import pytest

from compiler.machines.relu_gadgets import kernel
from compiler.machines.relu_gadgets.embedding import context_keys, sign_embedding, sign_length
from compiler.machines.relu_gadgets.selection import SoftSelection, sharpness
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


def test_sums_stay_within_the_room_for_n_tokens() -> None:
    """The largest sums there are: n tokens on one place, values of one sign."""
    made = SoftSelection(1, 1, 3, 1.0, pi, 0.1, 0.2)
    keys, values = np.zeros((1, 3, 1)), np.ones((1, 3, 1))
    assert abs(made(keys, np.zeros((1, 1)), values).item() - 1) <= made.error
