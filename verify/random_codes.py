"""How often a memory under random key codes answers wrongly: Theorem 3 of paper A with N entries to a key.

`failure_rate` is the share of wrong answers on average over codes of distinct words and over values of the book that is
used. Where the sum over all of them is short it is that sum; else it is an estimate with its 95 % interval, beside a
bound that is proved (`verify.code_sums`, `verify.rare_swaps`). `key_code_for` goes by the sum or the bound alone.

The simpler formula, (p/2)²·Q(√(2N/(κ − 1))), averages the variance before the tail is taken, which is too low where
failures are rare (docs/mqar.md has it beside the rate), and is a union, too high, where they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, islice
from math import comb, sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from verify.arguments import at_least, at_most
from verify.code_sums import exact_failure, failure_bound
from verify.overlaps import words_at
from verify.rare_swaps import average_over_codes, given_overlaps, of_draws, rows_of

ASKED = 1000  # queries, at least, over which the rate of one code is averaged
_MOST_LENGTH = 1 << 16
Z = 1.959964  # 95 %


@dataclass(frozen=True)
class Failure:
    """A share of wrong answers.

    rate:    the share, or an estimate of it.
    error:   half of the estimate's 95 % interval; 0 of an exact sum.
    at_most: what is proved of the average over codes; None where nothing is.
    """

    rate: float
    error: float
    at_most: float | None

    @property
    def exact(self) -> bool:
        """Whether the rate is the sum over all codes and values."""
        return self.error == 0 and self.rate == self.at_most


def interval(rate: float, independent: int) -> tuple[float, float]:
    """The Wilson interval of 95 % of a mean rate over so many independent draws of a number between 0 and 1.

    Such a number varies at most as much as a coin of its mean, so this holds where each draw has many queries too.
    """
    at_least("independent", independent, 1, "nothing was measured")
    spread = Z**2 / independent
    middle = (rate + spread / 2) / (1 + spread)
    half = Z * sqrt(rate * (1 - rate) / independent + spread / (4 * independent)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


@cache
def failure_rate(
    vocab: int, key_code: int, kappa: int, kind: str = "balanced", coherence: float = 1.0, seed: int = 0
) -> Failure:
    """The share of wrong answers, on average over codes of distinct words and over values.

    vocab: words of the value book, balanced ones of the least length; key_code: N entries; kappa: live pairs; seed: of
    the draws of an estimate. coherence: below 1 the estimate counts codes whose overlaps *with the key that is asked
    for* are at most this share of N; those of the other keys are left free, and no bound is proved.
    """
    _check(vocab, key_code, kappa, kind)
    if kappa == 1:
        return Failure(0.0, 0.0, 0.0)
    words = value_words(vocab)
    values, logs = words_at(key_code, kind, coherence)
    proved = _proved(vocab, key_code, kappa, kind) if coherence >= 1 else None
    if isinstance(proved, Fraction):
        return Failure(float(proved), 0.0, float(proved))
    found = average_over_codes(words, key_code, values, logs, kappa - 1, seed)
    return Failure(_three_digits(found.mean), _three_digits(found.error), proved)


@cache
def _proved(vocab: int, key_code: int, kappa: int, kind: str) -> Fraction | float:
    """The exact sum, or else the bound."""
    if not all_keys(key_code, kind) >= kappa:
        raise ValueError(f"key_code = {key_code} has fewer than kappa = {kappa} {kind} words; take a longer one.")
    exact = exact_failure(value_words(vocab), key_code, kappa, kind)
    return failure_bound(value_words(vocab), key_code, kappa, kind) if exact is None else exact


def _check(vocab: int, key_code: int, kappa: int, kind: str) -> None:
    at_least("vocab", vocab, 1, "an answer is a value")
    at_least("key_code", key_code, 2 if kind == "balanced" else 1, "a key code has at least so many entries")
    at_least("kappa", kappa, 1, "a query needs a pair")


def all_keys(length: int, kind: str) -> int:
    """How many key words there are."""
    return comb(length, length // 2) if kind == "balanced" else 2**length


@cache
def value_words(vocab: int) -> np.ndarray:
    """(V, p): the first balanced words of the least even length, as a value book has them."""
    p = 2
    while comb(p, p // 2) < vocab:
        p += 2
    words = np.full((vocab, p), -1, dtype=np.int8)
    np.put_along_axis(words, np.array(list(islice(combinations(range(p), p // 2), vocab))), 1, axis=1)
    return words


def _three_digits(number: float) -> float:
    return float(f"{number:.3g}")


def simpler_formula(value_code: int, key_code: int, kappa: int) -> float:
    """(p/2)²·Q(√(2N/(κ − 1))): of the average variance, and of all pairs of lanes as if no two failed together."""
    return float((value_code // 2) ** 2 * ndtr(-sqrt(2 * key_code / (kappa - 1))))


def asked_sets(keys: int, kappa: int) -> int:
    """Over how many queries among their live keys `failure_of_code` averages: each key once where all keys are live."""
    return keys if kappa == keys else max(keys, ASKED)


def failure_of_code(code: np.ndarray, vocab: int, kappa: int, seed: int = 0) -> Failure:
    """An estimate for one code, (keys, N) signs, `kappa` of whose keys are live at a time: all, or random ones.

    Of random ones `asked_sets` are drawn: failures that are rarer than one set among these may be missed. The error
    takes all draws for independent.
    """
    at_most("kappa", kappa, len(code), "a live key has a word")
    overlap = code.astype(np.int64) @ code.T.astype(np.int64)
    rng, keys = np.random.default_rng(seed), len(code)
    asked = np.arange(asked_sets(keys, kappa)) % keys
    if kappa == 1:
        return Failure(0.0, 0.0, None)
    score = rng.random((len(asked), keys))
    score[np.arange(len(asked)), asked] = 2.0
    rows = overlap[asked[:, None], score.argsort(axis=1)[:, : kappa - 1]]
    words = value_words(vocab)
    times = -(-rows_of(words, kappa - 1) // len(rows))
    found = of_draws(given_overlaps(words, code.shape[1], np.tile(rows, (times, 1)), rng))
    return Failure(_three_digits(found.mean), _three_digits(found.error), None)


def measured_failures(
    values: np.ndarray, keys: Callable[[int], np.ndarray], kappa: int, codes: int, sequences: int, seed: int = 0
) -> np.ndarray:
    """The share of wrong answers under each of `codes` codes, (codes,): the sums of Theorem 3, added up and read.

    values: the value words, (V, p) balanced signs; keys(i): the key words of draw i, (κ, N), of which the first `kappa`
    are live.
    """
    words, rates = values.astype(np.float64), []
    for draw in range(codes):
        book = keys(draw)[:kappa].astype(np.float64)
        stored = np.random.default_rng([seed, draw]).integers(len(words), size=(sequences, kappa))
        read = np.einsum("qs,bsp->bqp", book @ book.T, words[stored]).reshape(-1, words.shape[1])
        scores, own = read @ words.T, stored.reshape(-1)
        rows = np.arange(len(own))
        right = scores[rows, own].copy()
        scores[rows, own] = -np.inf
        rates.append(float((scores.max(axis=1) >= right).mean()))
    return np.array(rates)


def mean_interval(rates: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of a mean over independent draws."""
    half = Z * float(rates.std(ddof=1)) / sqrt(len(rates))
    return float(rates.mean()) - half, float(rates.mean()) + half


def key_code_for(rate: float, vocab: int, kappa: int, kind: str = "balanced", least: int = 2) -> int:
    """An even N, at least `least`, at which at most `rate` of all answers is wrong on average over codes: by the exact
    sum, or by the bound. N − 2 does not reach the rate that way, unless it is below `least`.

    It is looked for from the length on at which the simpler formula reaches the rate. With two or three keys the rate
    is not monotone in N, and a shorter length may do as well.
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate = {rate} is no rate of failures that a code can be found for; it lies between 0 and 1.")
    p, least = value_words(vocab).shape[1], least + least % 2
    while all_keys(least, kind) < kappa:
        least += 2
    reaches = lambda n: kappa == 1 or _proved(vocab, n, kappa, kind) <= rate
    simplest = (kappa - 1) / 2 * ndtri(min(0.5, rate / (p // 2) ** 2)) ** 2
    refusal = f"no key code of at most {_MOST_LENGTH} entries is shown to fail at a rate of {rate} or less."
    if simplest > 4 * _MOST_LENGTH:  # it asks for three times too many where most answers are wrong
        raise ValueError(refusal)
    low = high = max(least, 2 * max(1, min(round(simplest / 2), _MOST_LENGTH // 2)))
    step = 2 * max(1, high // 32)
    if reaches(high):
        while low > least and reaches(low := max(least, low - step)):
            high, step = low, 2 * step
    else:
        while not reaches(high := high + step):
            low, step = high, 2 * step
            if high > _MOST_LENGTH:
                raise ValueError(refusal)
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
