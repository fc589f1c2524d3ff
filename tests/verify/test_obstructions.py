"""Lower bounds against everything there is, at small sizes: all encoders, all sign kernels, all filters of a grid."""

from itertools import combinations, permutations, product
from math import ceil, log2, sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

from verify import obstructions


@pytest.mark.parametrize(("vocab", "length", "states"), [(2, 2, 1), (2, 2, 3), (3, 1, 2), (2, 3, 2)])
def test_no_encoder_copies_more_strings_than_it_has_states(vocab, length, states) -> None:
    """All maps of strings to states: the best decoder gets one string right for each state that is reached."""
    best = max(len(set(map_)) for map_ in product(range(states), repeat=vocab**length))
    assert best / vocab**length == pytest.approx(obstructions.most_copied(log2(states), length, vocab))
    assert log2(states) < obstructions.copy_bits(length, vocab)


def test_bits_of_a_recall_are_those_of_its_prompts() -> None:
    """Prompts that show all keys, in any order, told apart by some question: by plain dictionaries."""
    for keys, values in ((1, 3), (2, 2), (3, 2), (2, 4)):
        prompts = [dict(zip(range(keys), word, strict=True)) for word in product(range(values), repeat=keys)]
        answers = {tuple(prompt[key] for key in range(keys)) for prompt in prompts}
        assert log2(len(answers)) == pytest.approx(obstructions.recall_bits(keys, values))


def test_errors_buy_little() -> None:
    assert obstructions.copy_bits(10, 4, 0.5) == obstructions.copy_bits(10, 4) - 1
    assert obstructions.most_copied(obstructions.copy_bits(10, 4, 0.5), 10, 4) == pytest.approx(0.5)
    assert obstructions.copy_bits(2, 2, 0.9) == 0  # a state of no bit writes one of four strings


@pytest.mark.parametrize(("keys", "terms"), [(3, 1), (4, 1), (4, 2), (5, 2)])
def test_all_kernels_of_sign_features_have_as_many_products_as_the_bound(keys, terms) -> None:
    """Every choice of ±1 features: η as it is, the number of products no less than the bound, and the rank neither."""
    tight = 0.0
    for signs in product((-1, 1), repeat=keys * terms):
        features = np.array(signs).reshape(keys, terms)
        kernel = features @ features.T / terms
        off = np.abs(kernel - np.eye(keys)).max()
        least = obstructions.least_products(keys, float(off))
        rank = np.linalg.matrix_rank(kernel)
        assert terms >= rank >= least - 1e-9
        tight = max(tight, least / rank)
    assert tight > 0.8


def test_the_rank_bound_of_orthogonal_keys_is_their_number() -> None:
    for keys in (1, 2, 8, 64):
        assert obstructions.least_products(keys, 0) == keys == obstructions.least_products_for_pairs(keys, keys)
        assert obstructions.least_products_for_pairs(keys, ceil(sqrt(keys)) + 1) >= keys / 2


def _recalls(kernel: np.ndarray, pairs: int) -> bool:
    """Whether every query of every `pairs` stored keys, each with one of two values, is answered right."""
    for stored in combinations(range(len(kernel)), pairs):
        for values in product((1, -1), repeat=pairs):
            for query, value in zip(stored, values, strict=True):
                if value * sum(kernel[query, key] * v for key, v in zip(stored, values, strict=True)) <= 0:
                    return False
    return True


@pytest.mark.parametrize(("keys", "pairs"), [(3, 1), (3, 2), (3, 3), (4, 2), (4, 3), (6, 2)])
def test_every_kernel_that_recalls_has_as_many_products_as_the_bound(keys, pairs) -> None:
    """Random features of keys, those of queries almost the same: which kernels recall is tried, on all values."""
    rng, right, tight = np.random.default_rng(0), 0, 0.0
    for _ in range(5_000):
        terms = int(rng.integers(1, keys + 1))
        features = rng.normal(size=(keys, terms))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        kernel = (features + rng.normal(size=(keys, terms)) * 0.05) @ features.T
        if _recalls(kernel, pairs):
            right += 1
            least = obstructions.least_products_for_pairs(keys, pairs)
            assert terms >= np.linalg.matrix_rank(kernel) >= least - 1e-9
            tight = max(tight, least / terms)
    assert right > 5 and tight > 0.6


def test_a_recall_may_weigh_one_key_by_more_than_a_share() -> None:
    """Two of three pairs are right where one key weighs 0.9: an early derivation took η ≤ 1/l of every key."""
    kernel = np.array([[1, 0.9, 0], [0, 1, 0], [0, 0, 1.0]])
    assert _recalls(kernel, 3) and np.linalg.matrix_rank(kernel) >= obstructions.least_products_for_pairs(3, 3)


def _delay_off(delay: int, frequencies: tuple[int, ...], window: int) -> float:
    """The least sup error of Σ c·cos + c'·sin at these frequencies of a window to a delay: a linear program."""
    j = np.arange(window)
    columns = [f(2 * np.pi * a * j / window) for a in frequencies for f in (np.cos, np.sin)]
    basis, target = np.stack(columns, 1), (j == delay).astype(float)
    ones = np.ones((window, 1))
    rows = np.block([[basis, -ones], [-basis, -ones]])
    cost = np.append(np.zeros(len(columns)), 1)
    found = linprog(cost, rows, np.concatenate([target, -target]), bounds=[(None, None)] * len(columns) + [(0, None)])
    return found.fun


@pytest.mark.parametrize("delay", [2, 3, 4, 5])
def test_every_filter_of_few_frequencies_misses_a_delay(delay) -> None:
    """All sets of frequencies of a window of 2i positions, each with its best weights."""
    window, close = 2 * delay, 0.0
    for count in (1, 2):
        for frequencies in combinations(range(delay + 1), count):
            states = sum(1 if a in (0, delay) else 2 for a in frequencies)
            off, least = _delay_off(delay, frequencies, window), obstructions.delay_error(delay, states)
            assert off >= least - 1e-9
            close = max(close, least / off)
    assert close > 0.3


@pytest.mark.parametrize("delay", [2, 8, 18])
def test_nearer_than_the_bound_takes_more_than_half_the_states(delay) -> None:
    """At 1/√(2i) itself half are enough: for i = 2 the filter 0, ½, ½, … of one state, h_t = ½ from t = 1 on."""
    bound = 1 / np.sqrt(2 * delay)
    assert obstructions.least_delay_states(delay, bound) == delay / 2
    assert obstructions.least_delay_states(delay, 0.99 * bound) > delay / 2
    one = np.array([0.0] + [0.5] * 9)
    assert np.abs(one - (np.arange(10) == 2)).max() == 1 / np.sqrt(4)


def test_hankel_matrices_of_delays_and_of_filters() -> None:
    """A delay by i has rank i, all singular values 1; F frequencies have rank 2F at most."""
    rng = np.random.default_rng(0)
    for delay in range(1, 9):
        matrix = obstructions.hankel(np.eye(20)[delay], delay)
        assert np.allclose(np.linalg.svd(matrix)[1], 1)
        angle, weight, shift = rng.uniform(0.1, 3, (3, delay))
        taps = (weight * np.cos(np.outer(np.arange(40), angle) + shift)).sum(1)
        assert np.linalg.matrix_rank(obstructions.hankel(taps, 20), tol=1e-8) <= 2 * delay
        for states in range(delay):
            off = obstructions.delay_error(delay, states)
            assert states <= obstructions.least_delay_states(delay, off) <= states + 1
    assert obstructions.least_delay_states(50, 0.0999) > 25


def test_the_exact_delay_has_as_many_states_as_it_must() -> None:
    """⌊P/2⌋ + 1 cosines and sines of a window of P = U + 1 positions: as many states as positions, no less than i."""
    for window in (2, 5, 8):
        w = np.array([1 / window if 2 * a in (0, window) else 2 / window for a in range(window // 2 + 1)])
        for delay in range(window):
            turn = 2 * np.pi * np.outer(np.arange(window) - delay, np.arange(window // 2 + 1)) / window
            assert np.allclose((w * np.cos(turn)).sum(1), np.eye(window)[delay])
        states = sum(1 if 2 * a in (0, window) else 2 for a in range(window // 2 + 1))
        assert states == window >= obstructions.least_delay_states(window - 1, 0)


def answers(text: tuple[int, ...]) -> dict[int, int]:
    """What stands behind each token that stands once, but for the end of the text."""
    return {a: b for a, b in zip(text, text[1:]) if text.count(a) == 1}


def differ(texts: list[tuple[int, ...]]) -> bool:
    """Whether each two texts have a token in common that is asked for, with another answer."""
    known = [answers(text) for text in texts]
    return all(any(a in y and y[a] != x[a] for a in x) for x, y in combinations(known, 2))


@pytest.mark.parametrize("vocab", range(1, 5))
@pytest.mark.parametrize("length", range(2, 8))
def test_texts_that_a_unique_induction_must_tell_apart(vocab: int, length: int) -> None:
    """Two families of texts, listed, which are as many as the bound says; of two letters a single bit is enough."""
    families = [[(0,) * (length - 1)]]
    for n in range(1, min(vocab - 1, (length - 1) // 2) + 1):
        behind = [sum(zip(range(n), values), ()) for values in product(range(n, vocab), repeat=n)]
        families.append([text + (vocab - 1,) * (length - 1 - 2 * n) for text in behind])
    most = min(vocab, length - 1)
    families.append([(*order, *[most - 1] * (length - most)) for order in permutations(range(most - 1))])
    assert all(len(text) == length - 1 for family in families for text in family)
    assert all(map(differ, families))
    assert obstructions.unique_induction_bits(vocab, length) == pytest.approx(log2(max(map(len, families))))
    assert vocab > 2 or obstructions.unique_induction_bits(vocab, length) <= 1


def test_a_recall_of_few_pairs_needs_the_bits_of_these_alone() -> None:
    assert obstructions.recall_bits(64, 16, pairs=1) == 4 and obstructions.recall_bits(4, 16, pairs=9) == 16


def test_of_constructions() -> None:
    copying = obstructions.of_copy(8, 6, obstructions.Capacity.of_network(46, 2, 18))
    assert [one.kind for one in copying] == ["information", "delay"] and all(one.kept for one in copying)
    assert copying[0].least == pytest.approx(8 * log2(6)) and copying[1].least == 7
    network = obstructions.Capacity.of_network(32, 2, 16)
    recalling = obstructions.of_recall(8, 8, network, products=8)
    assert recalling[0].least == 24 and recalling[1].least == 8
    assert not obstructions.of_recall(8, 8, network, products=3)[1].kept
    said = "any exact solution needs D ≥ 1, one with a bilinear read-out D ≥ 8; built 32"
    assert obstructions.summary(recalling, 32) == said
    assert str(copying[1]) == "delay: 7 states of a filter at least with fixed filters (D ≥ 2), built 19"


def test_one_word_is_copied_without_a_delay() -> None:
    """And earlier versions said one state more."""
    _, delay = obstructions.of_copy(1, 6, obstructions.Capacity.of_network(46, 2, 18))
    assert (delay.least, delay.channels) == (0, 0)
    assert [one.least for one in obstructions.as_before([delay])] == [1]


def test_what_every_answer_is_needs_nothing() -> None:
    """A recall of one value says that value: no state, and no products."""
    found = obstructions.of_recall(64, 1, obstructions.Capacity.of_network(32, 2, 16), products=8)
    assert [one.least for one in found] == [0, 0] and all(one.channels == 0 for one in found)


def test_the_bound_on_products_is_no_bound_on_channels() -> None:
    """One number tells of 8 keys which were seen, and another their values: a bilinear read-out needs 4 channels."""
    keys, pairs = 8, 8
    has = obstructions.Capacity.of_network(2, 2, 2)
    found = obstructions.of_recall(keys, 2, has, products=keys, pairs=pairs)
    assert obstructions.least_channels(found) <= 2 < obstructions.least_channels(found, given=True)


@pytest.mark.parametrize(("power", "constant"), [(1, 1), (2, 1), (3, 10)])
def test_every_poly_logarithmic_bound_is_crossed_for_good(power, constant) -> None:
    length = obstructions.crossing(power, constant)
    needed = lambda n: obstructions.copy_bits(int(n), 2) / (4 * 2 * 32)
    assert all(needed(length * 2**i) > constant * log2(2 * length * 2**i) ** power for i in range(20))
    assert length / 2 < 2 ** (2 * power) or needed(length / 2) <= constant * log2(length) ** power


def test_what_is_asked_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="error = 1 is no probability of failure"):
        obstructions.copy_bits(3, 2, 1)
    with pytest.raises(ValueError, match="the smallest count that works is 1"):
        obstructions.recall_bits(0, 2)
