"""How often a memory under random key codes answers wrongly: Theorem 3 of paper A with N entries to a key.

A query of key q reads r = N·v_q + Σ_s ρ_s v_s over the other live pairs, ρ_s = <c_s, c_q>, and is wrong where another
value code is at least as near. The words of a full balanced book of p lanes are told apart by the order of lanes, so it
is right iff every lane where v_q is +1 stands above every lane where it is −1. Three things decide how often:

- the draw of the code: ρ_s is a random overlap of two words, hypergeometric for balanced ones, binomial for free signs,
  cut off at a measured coherence. One draw serves all lanes of a query, so they fail together or not at all;
- given the overlaps, two lanes change places with the probability of Σ ρ_s d_s ≥ 2N, d_s = ±2 where the two lanes of
  v_s differ: a sum on a lattice, whose tails are no Gaussian's;
- (p/2)² pairs of lanes overlap, so that fewer than a union of them fails: as many as of independent Gaussian lanes
  whose pairs fail as often.

`failure_rate` averages this over seeded draws of ρ. Where failures are rare, rare overlaps make most of them, so that
overlaps are also drawn from wider laws and weighed by how likely they are. A value book that is not full has fewer
words to mistake the answer for, and fails less. The simpler formula, (p/2)²·Q(√(2N/(κ − 1))), averages the variance
before the tail is taken, which is too low where failures are rare (`simpler_formula`; docs/mqar.md has it beside the
law), and is a union bound, too high, where they are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt

import numpy as np
from scipy.special import gammaln, ndtr, ndtri

from verify.arguments import at_least, at_most, one_of

KINDS = ("balanced", "jl")
DRAWS = 500  # of each law of overlaps, at most
_LATTICE_ENTRIES = 1 << 10
_MOST_LENGTH = 1 << 16
_LISTED = 3000  # multisets of overlaps
_DRAWN = 1 << 16  # overlaps
_STEEPEST = 300.0  # exp of it is still a float
Z = 1.959964  # 95 %


def interval(rate: float, independent: int) -> tuple[float, float]:
    """The Wilson interval of 95 % of a mean rate over so many independent draws of a number between 0 and 1.

    Such a number varies at most as much as a coin of its mean, so this holds where each draw has many queries too.
    """
    at_least("independent", independent, 1, "nothing was measured")
    spread = Z**2 / independent
    middle = (rate + spread / 2) / (1 + spread)
    half = Z * sqrt(rate * (1 - rate) / independent + spread / (4 * independent)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def overlaps(length: int, kind: str = "balanced", coherence: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(<c, c'> of two random distinct words, how likely each is): balanced words, or free signs ("jl").

    coherence: |<c, c'>| is at most this share of the length, as in a code that was drawn until that was measured.
    """
    one_of("kind", kind, KINDS)
    entries = length // 2 if kind == "balanced" else length
    agree = np.arange(entries + 1)
    ways = gammaln(entries + 1) - gammaln(agree + 1) - gammaln(entries - agree + 1)  # the logarithm of their number
    values = (4 if kind == "balanced" else 2) * agree - length
    share = np.exp((ways - ways.max()) * (2 if kind == "balanced" else 1))
    share[-1] = 0.0  # distinct words
    kept = np.abs(values) <= coherence * length
    if not share[kept].sum() > 0:
        raise ValueError(f"coherence = {coherence} leaves no overlap of words of length {length}; take a larger one.")
    return values[kept], share[kept] / share[kept].sum()


def failure_rate(
    value_code: int, key_code: int, kappa: int, kind: str = "balanced", coherence: float = 1.0, seed: int = 0
) -> float:
    """The share of wrong answers, on average over codes and values, to three digits.

    value_code: p lanes of balanced words; key_code: N entries; kappa: live pairs; seed: of the draws of overlaps, where
    there are too many to take all. Tests compare these two down to rates of 1e-9.
    """
    at_least("value_code", value_code, 2, "a balanced code has two lanes or more")
    at_least("key_code", key_code, 2 if kind == "balanced" else 1, "a key code has at least so many entries")
    at_least("kappa", kappa, 1, "a query needs a pair")
    if kappa == 1:
        return 0.0
    signed, share = overlaps(key_code, kind, coherence)
    values, place = np.unique(np.abs(signed), return_inverse=True)  # signs change nothing: those of values are random
    share = np.bincount(place, weights=share)
    if comb(len(values) + kappa - 2, kappa - 1) <= _LISTED:
        drawn, weights = _all_overlaps(values, share, kappa - 1)
    else:
        rng, differ = np.random.default_rng(seed), _differ(value_code)
        drawn, weights = _rare_and_usual(rng, values, share, kappa - 1, key_code, differ)
    return float(f"{(_wrong(drawn, value_code, key_code) * weights).mean():.3g}")


def simpler_formula(value_code: int, key_code: int, kappa: int) -> float:
    """(p/2)²·Q(√(2N/(κ − 1))): of the average variance, and of all pairs of lanes as if no two failed together."""
    return float((value_code // 2) ** 2 * ndtr(-sqrt(2 * key_code / (kappa - 1))))


def asked_sets(keys: int, kappa: int) -> int:
    """Over how many queries among their live keys `failure_of_code` averages: each key once where all keys are live."""
    return keys if kappa == keys else max(keys, 2 * DRAWS)


def failure_of_code(words: np.ndarray, value_code: int, kappa: int, seed: int = 0) -> float:
    """The same for one code, (keys, N) signs, `kappa` of whose keys are live at a time: all, or random ones.

    Of random ones `asked_sets` are drawn: failures that are rarer than one set among these may be missed.
    """
    at_most("kappa", kappa, len(words), "a live key has a word")
    overlap = words.astype(np.int64) @ words.T.astype(np.int64)
    rng, keys = np.random.default_rng(seed), len(words)
    asked = np.arange(asked_sets(keys, kappa)) % keys
    if kappa == 1:
        return 0.0
    score = rng.random((len(asked), keys))
    score[np.arange(len(asked)), asked] = 2.0
    live = score.argsort(axis=1)[:, : kappa - 1]
    return float(f"{_wrong(overlap[asked[:, None], live], value_code, words.shape[1]).mean():.3g}")


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


def _differ(value_code: int) -> float:
    """How often two lanes of a balanced word differ, so that e = d/2 is −1 or 1; otherwise it is 0."""
    return value_code / (2 * (value_code - 1))


def _wrong(overlap: np.ndarray, value_code: int, key_code: int) -> np.ndarray:
    """P(wrong | ρ) of each row of overlaps."""
    drawn, differ = np.abs(overlap), _differ(value_code)
    step = int(np.gcd.reduce(drawn, axis=None)) or 1  # overlaps of balanced words are all even
    drawn, reach = drawn // step, -(-key_code // step)
    if drawn.sum(axis=1).max() <= _LATTICE_ENTRIES:
        swaps = np.array([_on_lattice(row, reach, differ) for row in drawn])
    else:
        swaps = ndtr(-reach / np.maximum(np.sqrt(differ * (drawn.astype(float) ** 2).sum(axis=1)), 1e-9))
    return _of_all_pairs(swaps, value_code // 2)


def _all_overlaps(values: np.ndarray, share: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns): every multiset of overlaps, and its weight in a mean of rows: how likely it is, times rows."""
    places = list(combinations_with_replacement(range(len(values)), columns))
    orders = [factorial(columns) / prod(map(factorial, Counter(row).values())) for row in places]
    rows = np.array(places)
    return values[rows], np.array(orders) * share[rows].prod(axis=1) * len(rows)


def _rare_and_usual(
    rng: np.random.Generator, values: np.ndarray, share: np.ndarray, columns: int, key_code: int, differ: float
) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns) overlaps, and the weight of each row in an average over overlaps as they are likely.

    Rows where Σ ρ_s e_s reaches N come mostly from shares times E exp(t ρ e), where t makes the mean of that sum N
    (exponential tilting). That is right for one pair of lanes; with many pairs overlaps that are less rare fail too. So
    rows come in equal parts from t and three shares of it, 0 among them. A row weighs what it is likely as it is, over
    the mean of what it is by the four laws.
    """
    tilted = lambda t: share * (1 - differ + differ * np.cosh(t * values))
    last = _STEEPEST / key_code
    t = _least(lambda t: columns * _mean_of_sum(values, share, differ, t) >= key_code, last)
    laws = [law / law.sum() for law in (tilted(t * part) for part in (0, 1 / 2, 3 / 4, 1))]
    rows = np.concatenate([_drawn(rng, law, columns) for law in laws])
    with np.errstate(divide="ignore"):
        logs = np.array([np.log(law)[rows].sum(axis=1) for law in laws])
    most = logs.max(axis=0)
    return values[rows], np.exp(logs[0] - most) / np.exp(logs - most).mean(axis=0)


def _mean_of_sum(values: np.ndarray, share: np.ndarray, differ: float, t: float) -> float:
    """The mean of one ρ·e where each weighs exp(t ρ e) times what it is likely."""
    weight = 1 - differ + differ * np.cosh(t * values)
    return float((share * differ * values * np.sinh(t * values)).sum() / (share * weight).sum())


def _drawn(rng: np.random.Generator, law: np.ndarray, columns: int) -> np.ndarray:
    """(rows, columns) places of a law of shares. The more columns, the less do rows differ, and the fewer are drawn."""
    rows = min(DRAWS, max(16, _DRAWN // columns))
    return np.minimum(np.searchsorted(np.cumsum(law), _strata(rng, rows, columns)), len(law) - 1)


def _least(reached: Callable[[float], bool], most: float) -> float:
    """The least number up to `most` from which on a condition holds, by halving; `most` where it never does."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _strata(rng: np.random.Generator, draws: int, columns: int) -> np.ndarray:
    """(draws, columns) uniform numbers, one in each of `draws` equal strata of every column, so that tails are met."""
    order = rng.random((draws, columns)).argsort(axis=0)
    return (order + rng.random((draws, columns))) / draws


def _on_lattice(overlap: np.ndarray, key_code: int, differ: float) -> float:
    """P(Σ ρ_s e_s ≥ N), e_s = 0 with probability 1 − differ and else a sign, by its characteristic function."""
    most = int(overlap.sum())
    if most < key_code:
        return 0.0
    size = 2 * most + 1
    angles = 2 * np.pi * np.arange(most + 1) / size
    spectrum = np.ones(most + 1)
    for value, count in zip(*np.unique(overlap, return_counts=True), strict=True):
        spectrum *= (1 - differ + differ * np.cos(value * angles)) ** int(count)
    mass = np.roll(np.fft.irfft(spectrum, size), most)
    return max(0.0, float(mass[most + key_code :].sum()))


def _of_all_pairs(swap: np.ndarray, lanes: int) -> np.ndarray:
    """P(some lower lane reaches some upper one), `lanes` of each, from the probability that a given pair does."""
    known, wrong = _gaussian_lanes(lanes)
    return np.where(swap > known[-1], np.interp(swap, known[::-1], wrong[::-1]), lanes**2 * swap)


@cache
def _gaussian_lanes(lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """(P(a pair changes places), P(any does)) of independent Gaussian lanes, for falling noise."""
    grid, gaps = np.linspace(-9, 9, 1801), np.linspace(0, 9, 181)
    below = ndtr(grid)
    largest = np.diff(below**lanes, prepend=0.0)  # of the lower lanes
    wrong = [(largest * -np.expm1(lanes * np.log1p(-ndtr(np.minimum(grid - gap, 8))))).sum() for gap in gaps]
    return ndtr(-gaps / sqrt(2)), np.array(wrong)


@cache
def key_code_for(rate: float, value_code: int, kappa: int, kind: str = "balanced") -> int:
    """An even N whose average failure rate is at most `rate`, where that of N − 2 is not.

    It is looked for from the length on at which the simpler formula reaches the rate. With two or three keys the law is
    not monotone in N, and a shorter length may do as well.
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate = {rate} is no rate of failures that a code can be found for; it lies between 0 and 1.")
    reaches = lambda n: failure_rate(value_code, n, kappa, kind) <= rate
    simplest = (kappa - 1) / 2 * ndtri(min(0.5, rate / (value_code // 2) ** 2)) ** 2
    refusal = f"no key code of at most {_MOST_LENGTH} entries fails at a rate of {rate} or less."
    if simplest > 4 * _MOST_LENGTH:  # it asks for three times too many where most answers are wrong
        raise ValueError(refusal)
    low = high = 2 * max(1, min(round(simplest / 2), _MOST_LENGTH // 2))
    step = 2 * max(1, high // 32)
    if reaches(high):
        while low > 2 and reaches(low := max(2, low - step)):
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
