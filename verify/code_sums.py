"""How often a memory under random key codes fails: the exact sum, where it is short, and a bound for all sizes.

A query of key q reads r = N·v_q + Σ_s ρ_s v_s over the other live pairs, ρ_s = <c_s, c_q>, and is wrong where another
word of the value book scores at least as much as v_q.

- `exact_failure` sums over all sets of distinct key words and all values.
- `failure_bound` is a union over pairs of lanes. Words are balanced, so a word that beats v_q has a lane j where v_q is
  −1 that stands at or above a lane i where it is +1: Σ_s ρ_s e_s ≥ N with e_s = (v_s[j] − v_s[i])/2. Independent
  key words are distinct with a probability P, so what happens to distinct ones happens to those at most 1/P times as
  often. The sum's law on its lattice is a Fourier transform.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from itertools import combinations_with_replacement, groupby
from math import comb, sqrt

import numpy as np

from verify.overlaps import all_distinct, counted, overlaps, words_at

_MULTISETS = 3000  # of overlaps
_COMPARED = 1 << 27  # pairs of scores
_AT_ONCE = 1 << 22
_LATTICE = 1 << 17
_WIDE = 12  # standard deviations


def exact_failure(words: np.ndarray, key_code: int, kappa: int, kind: str) -> Fraction | None:
    """The share of wrong answers over all ordered sets of `kappa` distinct key words and all values; None where that
    sum is too long.

    words: the value book, (V, p) balanced signs.
    """
    book, columns = len(words), kappa - 1
    different = key_code // 2 if kind == "balanced" else key_code
    if comb(different + columns - 1, columns) > _MULTISETS or book ** (kappa + 1) > _COMPARED:
        return None
    population = counted(key_code, kind)
    able = [one for one in _multisets(population, columns) if sum(map(abs, one[0])) >= key_code]
    if len(able) * book ** (kappa + 1) > _COMPARED:
        return None
    gram = words.astype(np.int64) @ words.T.astype(np.int64)
    wrong = sum(ways * _wrong_values(gram, overlap, key_code) for overlap, ways in able)
    return Fraction(wrong, comb(sum(n for _, n in population), columns) * book**kappa)


def _multisets(population: list[tuple[int, int]], columns: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """(overlaps, how many sets of distinct words have them)."""
    for places in combinations_with_replacement(range(len(population)), columns):
        ways = 1
        for place, run in groupby(places):
            ways *= comb(population[place][1], len(list(run)))
        if ways:
            yield tuple(population[place][0] for place in places), ways


def _wrong_values(gram: np.ndarray, overlap: tuple[int, ...], key_code: int) -> int:
    """In how many of all V^κ choices of values the answer is wrong."""
    book = len(gram)
    sums = reduce(lambda a, b: (a[:, None] + b).reshape(-1, book), [rho * gram for rho in overlap])
    beaten = key_code * (gram - gram.diagonal())  # (the value, another word): what the other lacks
    np.fill_diagonal(beaten, np.iinfo(np.int64).min // 2)
    step = max(1, _AT_ONCE // book**2)
    return sum(
        int(((sums[at : at + step, None] + beaten).max(axis=2) >= sums[at : at + step]).sum())
        for at in range(0, len(sums), step)
    )


def failure_bound(words: np.ndarray, key_code: int, kappa: int, kind: str) -> float:
    """At most this share of answers is wrong, on average over codes of distinct words and over values (up to 1)."""
    values, share = overlaps(key_code, kind)
    distinct = all_distinct(words_at(key_code, kind)[1], kappa - 1)
    if not distinct > 1e-6:
        return 1.0
    up, down = pair_laws(words)
    laws, times = np.unique(np.stack([up, down], axis=-1).reshape(-1, 2), axis=0, return_counts=True)
    total = sum(
        n * fall * _tail(values, share, rise, fall, kappa - 1, key_code)
        for (rise, fall), n in zip(laws, times, strict=True)
        if fall > 0
    )
    return float(min(1.0, total / distinct))


def pair_laws(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(p, p) shares of words: with −1 in lane i and +1 in lane j, and the other way round."""
    plus = (words > 0).astype(float)
    up = (1 - plus).T @ plus / len(words)
    return up, up.T


def _tail(values: np.ndarray, share: np.ndarray, rise: float, fall: float, columns: int, least: int) -> float:
    """P(Σ ρ_s e_s ≥ least) of independent terms, e = 1, −1 or 0; at least that, rounding included.

    On a ring so long that twelve standard deviations fit in half of it. What goes round adds to the sum; what is
    beyond half of the ring is bounded by exp(−t·half) E exp(t·Σ).
    """
    step = int(np.gcd.reduce(values)) or 1
    at, reach = values // step, -(-least // step)
    most = columns * int(np.abs(at).max())
    if most < reach:
        return 0.0
    half, beyond = most, 0.0
    if most > _LATTICE:
        variance = columns * (rise + fall) * float((share * at.astype(float) ** 2).sum())
        half = min(most, reach + int(_WIDE * sqrt(variance)) + int(np.abs(at).max()))
        t = min(half / variance, 300.0 / float(np.abs(at).max()))
        moment = 1 + float((share * (rise * np.expm1(t * at) + fall * np.expm1(-t * at))).sum())
        beyond = float(np.exp(min(0.0, columns * np.log(moment) - t * half)))
    size = 2 * half + 1
    law = np.zeros(size)
    law[0] = 1 - rise - fall
    np.add.at(law, at % size, rise * share)
    np.add.at(law, -at % size, fall * share)
    mass = np.fft.irfft(np.fft.rfft(law) ** columns, size)
    rounding = 1e-15 * (columns + 100)
    return float(np.maximum(mass[reach : half + 1], 0).sum()) + beyond + rounding
