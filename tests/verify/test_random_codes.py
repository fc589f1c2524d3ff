"""The failure law of random key codes against codes that are drawn and read, and what is told of one draw."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from compiler.language.codebook import balanced, drawn
from verify import random_codes
from verify.overlaps import overlaps
from verify.random_codes import (
    failure_of_code,
    failure_rate,
    interval,
    key_code_for,
    mean_interval,
    measured_failures,
    simpler_formula,
    value_words,
)

VALUES = balanced(924).words  # every balanced word of 12 lanes


def measured(kappa: int, length: int, kind: str = "balanced", codes: int = 120) -> np.ndarray:
    return measured_failures(VALUES, lambda i: drawn(kind, kappa, length, seed=i).book.words, kappa, codes, 40)


@pytest.mark.parametrize(
    "kappa, length, kind",
    [(4, 8, "balanced"), (8, 24, "balanced"), (8, 48, "balanced"), (16, 64, "balanced"), (8, 24, "jl")],
)
def test_the_law_is_the_mean_over_codes(kappa: int, length: int, kind: str) -> None:
    """Both with their errors, of 95 % each and a half more (free signs that come out alike are drawn again)."""
    rates = measured(kappa, length, kind)
    low, high = mean_interval(rates)
    law = failure_rate(924, length, kappa, kind)
    apart = 1.5 * ((high - low) / 2 + law.error)
    assert abs(rates.mean() - law.rate) <= apart < 0.6 * law.rate, (low, law, high)
    assert rates.mean() <= law.at_most + apart


def test_a_gaussian_of_average_variance_is_far_too_low_where_failures_are_rare() -> None:
    low, _ = mean_interval(measured(8, 48))
    assert 3 * simpler_formula(12, 48, 8) < low
    assert 30 * simpler_formula(12, 32, 4) < failure_rate(924, 32, 4).rate


@pytest.mark.parametrize("vocab", [1, 2, 5, 512, 924])
def test_value_words_are_those_of_the_circuit(vocab: int) -> None:
    assert np.array_equal(value_words(vocab), balanced(vocab).words)


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
    assert failure_of_code(hadamard, 924, 3).rate == 0
    opposite = failure_of_code(np.array([[1, -1], [-1, 1]]), 924, 2)
    assert abs(opposite.rate - (1 - 1 / 924)) < 0.02 + opposite.error < 0.1
    assert failure_of_code(hadamard, 924, 1).rate == 0


def test_the_law_of_one_code_is_what_it_does() -> None:
    for seed in (0, 1, 2):
        words = drawn("balanced", 16, 32, seed=seed).book.words
        rates = measured_failures(VALUES, lambda i, words=words: words, 16, 20, 40)
        assert failure_of_code(words, 924, 16).rate == pytest.approx(rates.mean(), abs=0.03)


def test_the_rate_of_one_code_with_some_keys_live_is_what_it_does() -> None:
    words, rng, wrong = drawn("balanced", 12, 20, seed=1).book.words.astype(int), np.random.default_rng(0), []
    values = balanced(512).words.astype(int)
    for _ in range(6000):
        live, stored = words[rng.permutation(12)[:5]], values[rng.integers(512, size=5)]
        read = (live @ live[0]) @ stored
        wrong.append((values @ read >= stored[0] @ read).sum() > 1)
    found = failure_of_code(words, 512, 5)
    assert abs(found.rate - np.mean(wrong)) <= 0.012 + found.error < 0.04


def test_a_wanted_rate_gets_its_length() -> None:
    length = key_code_for(0.05, 924, 8)
    assert failure_rate(924, length, 8).at_most <= 0.05 < failure_rate(924, length - 2, 8).at_most
    assert failure_rate(924, length - 8, 8).rate > 0.04  # not much too long
    assert mean_interval(measured(8, length))[1] <= 0.05
    assert key_code_for(0.01, 924, 8) > length


@pytest.mark.parametrize("kappa", [2, 4, 5])
@pytest.mark.parametrize("rate", [1e-3, 1e-4, 1e-6])
def test_a_rare_rate_gets_its_length(kappa: int, rate: float) -> None:
    """What is proved is at most the rate asked for, and the rate is not far below."""
    length = key_code_for(rate, 924, kappa)
    found = failure_rate(924, length, kappa)
    assert found.at_most <= rate < failure_rate(924, length - 2, kappa).at_most
    assert rate / 30 < found.rate <= rate


def test_a_length_for_many_keys_is_found_soon() -> None:
    """As many evaluations for 3,000 keys as for 8; what is too long is refused before any."""
    asked = []
    bound = random_codes.failure_bound
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_codes, "failure_bound", lambda *given: asked.append(given) or bound(*given))
        assert 6 * 3000 < key_code_for(0.002, 924, 3000) < 10 * 3000
        assert len(asked) < 20
        with pytest.raises(ValueError, match="no key code of at most 65536 entries"):
            key_code_for(0.002, 924, 100_000)
        assert len(asked) < 20


def test_small_coherence_fails_less() -> None:
    near, free = failure_rate(924, 32, 8, coherence=0.3), failure_rate(924, 32, 8)
    assert near.rate + near.error < free.rate - free.error
    assert near.at_most is None  # only the overlaps with one key are limited
    values, _ = overlaps(32, "balanced", 0.3)
    assert np.abs(values).max() <= 9.6


def test_intervals() -> None:
    assert interval(0.5, 100) == pytest.approx((0.404, 0.596), abs=1e-3)  # Wilson, by the tables
    assert interval(0.0, 10) == pytest.approx((0, 0.278), abs=1e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: failure_rate(0, 2, 2), "vocab = 0"),
        (lambda: failure_rate(2, 0, 2), "key_code = 0"),
        (lambda: failure_rate(2, 2, 0), "kappa = 0"),
        (lambda: overlaps(6, "balanced", 0.1), "leaves no overlap"),
        (lambda: overlaps(6, "other"), "'balanced', 'jl'"),
        (lambda: failure_rate(2, 4, 7), "key_code = 4 has fewer than kappa = 7 balanced words"),
        (lambda: key_code_for(0.0, 12, 4), "rate = 0"),
        (lambda: failure_of_code(np.ones((2, 4)), 12, 3), "kappa = 3"),
    ],
)
def test_impossible_arguments(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
