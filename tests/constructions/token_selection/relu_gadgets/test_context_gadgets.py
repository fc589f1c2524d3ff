"""Products of signs, Lemma H.3's tensor feature map and random ±1 features, against plain Python."""

from fractions import Fraction
from itertools import combinations, product
from math import exp, log, prod

import numpy as np
import pytest

from constructions.token_selection.context_rows import contexts_until
from constructions.token_selection.relu_gadgets import kernel
from constructions.token_selection.relu_gadgets.context_match import ContextMatch
from constructions.token_selection.relu_gadgets.embedding import every_word
from constructions.token_selection.relu_gadgets.random_features import RandomFeatures
from constructions.token_selection.relu_gadgets.signs import sign_products, sign_times
from verify import lemma_bounds as stated


def test_products_of_signs_are_exact_on_every_input():
    subsets = [s for m in range(6) for s in combinations(range(5), m)]
    network = sign_products(5, subsets)
    signs = np.array(list(product((-1, 1), repeat=5)), dtype=object)
    expected = [[prod(row[i] for i in s) for s in subsets] for row in signs]
    assert (network(signs) == np.array(expected, dtype=object)).all()
    assert network.depth == 2 and network.nonzeros <= sum((len(s) + 1) ** 2 for s in subsets)
    assert network.layers[0].width == sum(map(len, subsets))


def test_a_sign_times_a_number_is_exact_up_to_its_largest():
    network = sign_times(3, 2)
    numbers = [Fraction(j, 7) for j in range(-21, 22)]
    rows = np.array([(s, z, -s, -z) for s in (-1, 1) for z in numbers], dtype=object)
    assert (network(rows) == np.array([(r[0] * r[1], r[2] * r[3]) for r in rows], dtype=object)).all()
    beyond = np.array([-1, 4, 1, 0], dtype=object)
    assert network(beyond)[0] != -4


@pytest.mark.parametrize(("n", "k"), [(1, 2), (2, 1)])
def test_a_match_of_contexts_on_every_window_of_three(n, k):
    """Two signs of a key, k of a value: all windows; the softmax and the matched value, each within its bound."""
    made = ContextMatch(n, k, 3, 0.125)
    keys, values = list(product((-1, 1), repeat=2)), list(product((-1, 1), repeat=k))
    windows = [(w, query) for w in product(product(keys, values), repeat=3) for query in keys]
    rows = [[[*key, *query, *value] for key, value in window] for window, query in windows]
    got = made.second(made.filtered(made.first(np.array(rows, dtype=float))))
    assert made.error <= 0.125 and made.first.outputs == made.channels == 4 * (k + 1) + 2
    matched = 0
    for (window, query), found in zip(windows, got, strict=True):
        weights = [float(made.share) ** sum(a != b for a, b in zip(key, query, strict=True)) for key, _ in window]
        for b in range(k):
            soft = sum(w * value[b] for w, (_, value) in zip(weights, window, strict=True)) / sum(weights)
            if max(weights) == 1:
                assert abs(found[b] - soft) <= made.ratio.error
            same = [value[b] for key, value in window if key == query]
            if len(same) == 1:
                matched += 1
                assert abs(found[b] - same[0]) <= made.error
    assert matched > 100


def test_the_weights_are_the_softmax_of_inner_products():
    """ρ^h = exp(−χ(1 − <key, query>)) with χ = (d'/2) ln 1/ρ, and Σ_S α_S·key_S·query_S is that, in fractions."""
    made = ContextMatch(2, 2, 8, 0.125)
    chi = made.d / 2 * log(1 / made.share)
    for key in product((-1, 1), repeat=4):
        inner = sum(key) / 4  # the query is all ones
        assert float(made.share) ** key.count(-1) == pytest.approx(exp(-chi * (1 - inner)))
        total = sum(w * prod(key[i] for i in s) for w, s in zip(made.weights, made.subsets, strict=True))
        assert total == made.share ** key.count(-1)
    assert sum(made.weights) == 1


def test_fractions_give_what_floats_do():
    made = ContextMatch(1, 2, 2, 0.5)
    tokens = [[1, 1, 1, 1, 1, -1], [-1, 1, 1, 1, -1, 1]]
    exact = made.second(made.filtered(made.first(np.array(tokens, dtype=object))))
    floats = made.second(made.filtered(made.first(np.array(tokens, dtype=float))))
    assert np.abs(exact.astype(float) - floats).max() < 1e-12


@pytest.mark.parametrize(("n", "k", "tokens"), [(1, 1, 2), (2, 2, 30), (3, 2, 8), (1, 6, 5), (2, 3, 100)])
def test_sizes_are_those_that_are_stated(n, k, tokens):
    made = ContextMatch(n, k, tokens, 0.125)
    promised = stated.context_match_sizes(n, k, tokens, made.ratio.network.sizes())
    for network in (made.first, made.second):
        assert all(network.sizes()[name] <= promised[name] for name in ("L", "W", "B"))
    assert made.first.nonzeros + made.second.nonzeros <= promised["S"]
    assert made.first.outputs == made.channels == promised["D"]


def test_too_many_coordinates_and_words_are_refused():
    with pytest.raises(ValueError, match=r"n·k = 12 makes 2\^12 features"):
        ContextMatch(3, 4, 8, 0.1)
    with pytest.raises(ValueError, match="asked = 1.5"):
        ContextMatch(1, 1, 8, 1.5)
    for k in range(1, 5):
        words = every_word(k)
        products = words @ words.T - 2 * k * np.eye(len(words))
        assert len(words) == 2**k and (2 * products <= k).all()
    with pytest.raises(ValueError, match="largest k that works is 4"):
        every_word(5)


def test_contexts_end_at_the_latest_bar():
    bar, none = 4, 5
    (found,) = contexts_until(np.array([[bar, 1, 2, bar, 3, 0]]), 3, bar).tolist()
    assert found == [
        [bar, none, none],
        [1, bar, none],
        [2, 1, bar],
        [bar, none, none],
        [3, bar, none],
        [0, 3, bar],
    ]


def test_random_features_are_what_plain_python_binds():
    """All copies of three words out of two, token by token, with a dictionary of signs."""
    made = RandomFeatures(2, 3, 2, 8, 40, seed=3)
    sign = {(i, f, c): 1 - 2 * int(made.negative[f, 3 * i + c]) for i in range(2) for f in range(40) for c in range(3)}
    bits = {0: (-1, -1), 1: (1, -1), 2: (-1, 1)}

    def bound(context, f):
        return prod(sign[i, f, c] for i, c in enumerate(context))

    def one_hot(context):
        return [int(i < len(context) and context[i] == c) for i in range(2) for c in range(3)]

    for words in product(range(2), repeat=3):
        text = [2, *words, 2, *words]
        ends = [max(i for i in range(t + 1) if text[i] == 2) for t in range(8)]
        contexts = [[text[i] for i in range(t, max(ends[t], t - 1) - 1, -1)] for t in range(8)]
        keys = [[], *contexts[:-1]]
        rows = [[*one_hot(keys[t]), *one_hot(contexts[-1]), *bits[text[t]]] for t in range(8)]
        sent = made.first(np.array(rows, dtype=float))
        sums = np.concatenate([sent[:, :80].sum(0), sent[-1, 80:]])
        for b, y in enumerate(made.second(sums)):
            stored = [sum(bound(keys[t], f) * bits[text[t]][b] for t in range(8)) for f in range(40)]
            assert y == pytest.approx(sum(bound(contexts[-1], f) * stored[f] for f in range(40)) / 40, abs=1e-12)


def test_bernsteins_bound_is_what_it_is_solved_for():
    features, pairs, outcomes, lost = 799, 14, 3000, 1e-6
    e = stated.random_feature_error(features, pairs, outcomes, lost)
    assert 2 * outcomes * exp(-features * e**2 / 2 / (2 * pairs + pairs * e / 3)) == pytest.approx(lost)
    for length, digits in ((1, 1), (6, 3), (100, 5)):  # F signs are enough for one string
        count = stated.random_features(length, digits, 0.05)
        assert stated.random_feature_error(count, 2 * length + 2, length * digits, 0.05) < 1


@pytest.mark.parametrize(("chi", "at"), [(0.5, 0.4), (4.0, 1.1), (30.0, 0.2)])
def test_waves_collapse_into_two_features_on_signs(chi, at):
    """F.6's cosines and sines at ±u: a constant and a multiple of s·t, which is ρ^[s ≠ t] with ρ = κ(2u)."""
    top = kernel.top_frequency(chi, 1e-12)
    alpha, share = kernel.coefficients(chi, top), float(kernel.kernel([2 * at], [0.0], chi))
    constant = sum(a * np.cos(i * at) ** 2 for i, a in enumerate(alpha))
    odd = sum(a * np.sin(i * at) ** 2 for i, a in enumerate(alpha))
    assert constant == pytest.approx((1 + share) / 2) and odd == pytest.approx((1 - share) / 2)
    for s, t in product((-1, 1), repeat=2):
        waves = kernel.exact_features(np.array([[s * at], [t * at]]), top)
        assert (waves[0] * waves[1]) @ kernel.weights(chi, 1, top) == pytest.approx(constant + odd * s * t)
