"""The failure law of random key codes against codes that are drawn and read, and what is told of one draw."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest

from compiler.language.codebook import balanced, drawn
from verify import random_codes
from verify.random_codes import (
    failure_of_code,
    failure_rate,
    interval,
    key_code_for,
    mean_interval,
    measured_failures,
    overlaps,
    simpler_formula,
)

VALUES = balanced(924).words  # every balanced word of 12 lanes


def measured(kappa: int, length: int, kind: str = "balanced", codes: int = 120) -> np.ndarray:
    return measured_failures(VALUES, lambda i: drawn(kind, kappa, length, seed=i).book.words, kappa, codes, 40)


@pytest.mark.parametrize(
    "kappa, length, kind",
    [(4, 8, "balanced"), (8, 24, "balanced"), (8, 48, "balanced"), (16, 64, "balanced"), (8, 24, "jl")],
)
def test_the_law_is_the_mean_over_codes(kappa: int, length: int, kind: str) -> None:
    """Within the interval and a tenth (free signs may come out alike, and then are drawn again)."""
    rates = measured(kappa, length, kind)
    low, high = mean_interval(rates)
    law = failure_rate(12, length, kappa, kind)
    assert low - 0.1 * rates.mean() <= law <= high + 0.1 * rates.mean(), (low, law, high)


def over_all_overlaps(length: int, kappa: int, lanes: int = 12) -> float:
    """The law as a sum over all multisets of |overlaps|, each as often as it is drawn."""
    chance: Counter[int] = Counter()
    for value, share in zip(*overlaps(length), strict=True):
        chance[abs(int(value))] += share
    total = 0.0
    for drawn_ones in combinations_with_replacement(sorted(chance), kappa - 1):
        if sum(drawn_ones) < length:
            continue  # cannot fail
        orders = factorial(kappa - 1) / prod(factorial(n) for n in Counter(drawn_ones).values())
        share = orders * prod(chance[one] for one in drawn_ones)
        swap = np.array([swapped(drawn_ones, length, lanes)])
        total += share * float(random_codes._of_all_pairs(swap, lanes // 2)[0])
    return total


def swapped(overlap: tuple[int, ...], length: int, lanes: int) -> float:
    """P(Σ ρ e ≥ N) by adding one key's part after the other; e is 0 where two of the lanes are equal."""
    sums, differ = {0: 1.0}, lanes / 2 / (lanes - 1)
    for one in overlap:
        following: dict[int, float] = {}
        for value, share in sums.items():
            for sign, part in ((0, 1 - differ), (1, differ / 2), (-1, differ / 2)):
                following[value + sign * one] = following.get(value + sign * one, 0.0) + share * part
        sums = following
    return sum(share for value, share in sums.items() if value >= length)


@pytest.mark.parametrize(
    "kappa, length, lanes", [(2, 10, 12), (2, 30, 12), (3, 30, 4), (3, 46, 6), (3, 60, 12), (4, 16, 12), (4, 64, 12)]
)
def test_the_law_of_few_keys_is_the_sum_over_all_overlaps(kappa: int, length: int, lanes: int) -> None:
    expected = over_all_overlaps(length, kappa, lanes)
    assert failure_rate(lanes, length, kappa) == pytest.approx(expected, rel=6e-3)  # three digits


@pytest.mark.parametrize("kappa, length", [(4, 120), (5, 24), (5, 40), (5, 80), (5, 100), (6, 60)])
def test_the_law_of_drawn_overlaps_is_the_sum_over_all(kappa: int, length: int) -> None:
    """Also where one query in 10^9 fails: rare overlaps are drawn more often, and weighed less."""
    assert failure_rate(12, length, kappa) == pytest.approx(over_all_overlaps(length, kappa), rel=0.2)


def test_a_gaussian_of_average_variance_is_far_too_low_where_failures_are_rare() -> None:
    low, _ = mean_interval(measured(8, 48))
    assert 3 * simpler_formula(12, 48, 8) < low
    assert 30 * simpler_formula(12, 32, 4) < over_all_overlaps(32, 4)


@pytest.mark.parametrize("length", [2, 4, 6])
def test_overlaps_by_counting(length: int) -> None:
    words = list(product((-1, 1), repeat=length))
    for kind, book in (("balanced", [w for w in words if sum(w) == 0]), ("jl", words)):
        counted: dict[int, int] = {}
        for a, b in combinations(book, 2):
            overlap = sum(x * y for x, y in zip(a, b, strict=True))
            counted[overlap] = counted.get(overlap, 0) + 1
        total = sum(counted.values())
        values, share = overlaps(length, kind)
        found = {int(v): s for v, s in zip(values, share, strict=True) if s}
        assert found == pytest.approx({v: n / total for v, n in counted.items()})


def test_a_code_of_known_overlaps() -> None:
    """Orthogonal words never fail; a word and its negative always do, but where their values agree."""
    hadamard = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    assert failure_of_code(hadamard, 12, 3) == 0
    assert failure_of_code(np.array([[1, -1], [-1, 1]]), 12, 2) > 0.9
    assert failure_of_code(hadamard, 12, 1) == 0


def test_the_law_of_one_code_is_what_it_does() -> None:
    for seed in (0, 1, 2):
        words = drawn("balanced", 16, 32, seed=seed).book.words
        rates = measured_failures(VALUES, lambda i, words=words: words, 16, 20, 40)
        assert failure_of_code(words, 12, 16) == pytest.approx(rates.mean(), abs=0.05)


def test_of_a_part_of_the_words_up_to_a_fifth_less_is_mistaken() -> None:
    """A rare failure is one swap of two signs; of `balanced(512)` 82 % of these swaps lead to a word of the book."""
    words = {tuple(word) for word in balanced(512).words.tolist()}
    stay = total = 0
    for word in words:
        for up, down in product(range(12), repeat=2):
            if word[up] == 1 and word[down] == -1:
                total += 1
                stay += (*(-sign if i in (up, down) else sign for i, sign in enumerate(word)),) in words
    assert 0.82 < stay / total < 0.83


def test_a_wanted_rate_gets_its_length() -> None:
    length = key_code_for(0.05, 12, 8)
    assert failure_rate(12, length, 8) <= 0.06 and failure_rate(12, length - 4, 8) > 0.04
    assert mean_interval(measured(8, length))[0] <= 0.05
    assert key_code_for(0.01, 12, 8) > length


@pytest.mark.parametrize("kappa", [2, 4, 5])
@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-6])
def test_a_rare_rate_gets_its_length(kappa: int, rate: float) -> None:
    """The rate that is printed is at most the one asked for, and the sum over all overlaps is about that."""
    length = key_code_for(rate, 12, kappa)
    assert failure_rate(12, length, kappa) <= rate < failure_rate(12, length - 2, kappa)
    assert rate / 30 < over_all_overlaps(length, kappa) <= 1.2 * rate


def test_a_length_for_many_keys_is_found_soon() -> None:
    """As many evaluations for 3,000 keys as for 8, each of fewer rows; what is too long is refused before any."""
    asked = []
    law = random_codes.failure_rate
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_codes, "failure_rate", lambda *given: asked.append(given) or law(*given))
        assert 6 * 3000 < key_code_for(0.002, 12, 3000) < 10 * 3000
        assert len(asked) < 20
        with pytest.raises(ValueError, match="no key code of at most 65536 entries"):
            key_code_for(0.002, 12, 100_000)
        assert len(asked) < 20


def test_small_coherence_fails_less() -> None:
    assert failure_rate(12, 32, 8, coherence=0.3) < failure_rate(12, 32, 8)
    values, _ = overlaps(32, "balanced", 0.3)
    assert np.abs(values).max() <= 9.6


def test_pairs_of_lanes_by_counting() -> None:
    """P(Σ ρ e ≥ N) over all e, and beside a Gaussian where there are many overlaps."""
    overlap, differ = np.array([4, 8, 8, 12]), 6 / 11
    total = 0.0
    for e in product((-1, 0, 1), repeat=4):
        share = np.prod([1 - differ if x == 0 else differ / 2 for x in e])
        total += share * (np.dot(overlap, e) >= 16)
    assert random_codes._on_lattice(overlap, 16, differ) == pytest.approx(total)
    many = np.abs(np.random.default_rng(0).integers(-20, 21, (1, 40)) * 2)
    near = random_codes.ndtr(-300 / np.sqrt(differ * (many.astype(float) ** 2).sum()))
    assert random_codes._on_lattice(many[0], 300, differ) == pytest.approx(near, rel=0.3)


def test_intervals() -> None:
    assert interval(0.5, 100) == pytest.approx((0.404, 0.596), abs=1e-3)  # Wilson, by the tables
    assert interval(0.0, 10) == pytest.approx((0, 0.278), abs=1e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: failure_rate(0, 2, 2), "value_code = 0"),
        (lambda: failure_rate(2, 0, 2), "key_code = 0"),
        (lambda: failure_rate(2, 2, 0), "kappa = 0"),
        (lambda: overlaps(6, "balanced", 0.1), "leaves no overlap"),
        (lambda: overlaps(6, "other"), "'balanced', 'jl'"),
        (lambda: key_code_for(0.0, 12, 4), "rate = 0"),
        (lambda: failure_of_code(np.ones((2, 4)), 12, 3), "kappa = 3"),
    ],
)
def test_impossible_arguments(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
