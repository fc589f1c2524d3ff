"""How often a memory under random key codes fails, by drawing failures and weighing them.

An answer is wrong only where some lane j with v_q = −1 stands at or above some lane i with v_q = +1
(`verify.code_sums`). With S the number of such pairs of lanes,

    P(wrong) = Σ_{i, j} E[ 1{j above i} · 1{wrong} / S ],

so a pair is drawn, then overlaps and values under which that pair is likely to change places (exponential tilting: each
weighs exp(t ρ e) times what it is likely, where t makes the mean of Σ ρ e the N that it takes), and what comes out
weighs 1/S times the ratio of the two laws. The mean is right for every size, rare failures included; how far draws
differ says how near it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np

from verify.code_sums import pair_laws
from verify.overlaps import all_distinct

_ENTRIES = 1 << 20  # overlaps that are drawn
_MOST_ROWS = 1 << 15
_SCORED = 1 << 29  # products of a lane
_STEEPEST = 300.0  # exp of it is still a float
_MOSTLY_ALIKE = 0.1  # below that share of independent words being distinct, distinct ones are drawn


@dataclass(frozen=True)
class Estimate:
    """A mean of independent draws, and half of its 95 % interval."""

    mean: float
    error: float


LEAST_ROWS = 256  # draws of an estimate


def of_draws(draws: np.ndarray) -> Estimate:
    return Estimate(float(draws.mean()), 1.959964 * float(draws.std(ddof=1)) / sqrt(len(draws)))


def rows_of(words: np.ndarray, columns: int) -> int:
    """How many draws are made: fewer where each takes longer."""
    rows = min(_MOST_ROWS, _ENTRIES // columns)
    return max(LEAST_ROWS, rows if _full(words) else min(rows, _SCORED // words.size))


def average_over_codes(
    words: np.ndarray, key_code: int, values: np.ndarray, logs: np.ndarray, columns: int, seed: int
) -> Estimate:
    """The rate over codes of distinct words. values, logs: the overlaps and how many words have them (`words_at`)."""
    rng, rows = np.random.default_rng(seed), rows_of(words, columns)
    distinct = all_distinct(logs, columns)
    if distinct < _MOSTLY_ALIKE:
        counts = np.round(np.exp(logs)).astype(np.int64)
        times = rng.multivariate_hypergeometric(counts, columns, size=rows, method="marginals")
        drawn = np.repeat(np.tile(values, (rows, 1)).ravel(), times.ravel()).reshape(rows, columns)
        return of_draws(given_overlaps(words, key_code, drawn, rng))
    share, differ = np.exp(logs - np.logaddexp.reduce(logs)), _differ(words)
    moment = lambda t: 1 - differ + differ * np.cosh(t * values)
    slope = lambda t: (share * differ * values * np.sinh(t * values)).sum() / (share * moment(t)).sum()
    t = _least(lambda t: columns * slope(t) >= key_code, _STEEPEST / key_code)
    law = share * moment(t)
    law, whole = law / law.sum(), law.sum()
    places = np.minimum(np.searchsorted(np.cumsum(law), rng.random((rows, columns))), len(law) - 1)
    ratio = columns * np.log(whole) - np.log(moment(t))[places].sum(axis=1)
    weights = np.exp(ratio) * _distinct(places, logs) / distinct
    return of_draws(weights * given_overlaps(words, key_code, values[places], rng, np.full(rows, t)))


def given_overlaps(
    words: np.ndarray, key_code: int, overlap: np.ndarray, rng: np.random.Generator, t: np.ndarray | None = None
) -> np.ndarray:
    """For each row of overlaps, (rows, κ − 1), one draw of a number whose mean is P(wrong | these overlaps)."""
    own = words[rng.integers(len(words), size=len(overlap))].astype(np.int64)
    upper = np.where(own > 0, rng.random(own.shape), -1).argmax(axis=1)
    lower = np.where(own < 0, rng.random(own.shape), -1).argmax(axis=1)
    t = _tilts(overlap, key_code, _differ(words)) if t is None else t
    stored = np.empty(overlap.shape, dtype=np.int64)
    log = np.empty(len(overlap))
    up, down = pair_laws(words)
    group = upper * words.shape[1] + lower
    for one in np.unique(group):
        i, j = divmod(int(one), words.shape[1])
        rows = group == one
        stored[rows], log[rows] = _tilted_values(words, i, j, (up[i, j], down[i, j]), overlap[rows], t[rows], rng)
    read = key_code * own + np.einsum("rs,rsp->rp", overlap, words.astype(np.int64)[stored])
    least = np.where(own > 0, read, np.iinfo(np.int64).max)
    swaps = (np.where(own[:, None, :] < 0, read[:, None, :], np.iinfo(np.int64).min) >= least[:, :, None]).sum((1, 2))
    at = np.arange(len(read))
    hit = read[at, lower] >= read[at, upper]
    hit[hit] &= _wrong(words, own[hit], read[hit])
    pairs = (words.shape[1] // 2) ** 2
    return np.where(hit, pairs * np.exp(np.where(hit, log, 0.0)) / np.maximum(swaps, 1), 0.0)


def _tilted_values(
    words: np.ndarray,
    i: int,
    j: int,
    law: tuple[float, float],
    overlap: np.ndarray,
    t: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """(places of values, (rows, κ − 1); log of the ratio of laws): e weighs exp(t ρ e), values of one e are even."""
    classes = [np.flatnonzero(words[:, j].astype(int) - words[:, i] == 2 * e) for e in (-1, 0, 1)]
    rise, fall = law
    steep = t[:, None] * overlap
    parts = np.stack([fall * np.exp(-steep), np.full(steep.shape, 1 - rise - fall), rise * np.exp(steep)])
    whole, one = parts.sum(axis=0), rng.random(steep.shape)
    e = (one * whole >= parts[0]).astype(int) + (one * whole >= parts[0] + parts[1])
    e = np.where(np.take_along_axis(parts, e[None], 0)[0] > 0, e, parts.argmax(axis=0))  # rounding met an empty class
    sizes, starts = np.array([len(c) for c in classes]), np.cumsum([0, *(len(c) for c in classes[:2])])
    place = starts[e] + np.minimum((rng.random(e.shape) * sizes[e]).astype(int), sizes[e] - 1)
    return np.concatenate(classes)[place], np.log(whole).sum(axis=1) - (steep * (e - 1)).sum(axis=1)


def _wrong(words: np.ndarray, own: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Whether another word of the book scores at least as much. In a full book one does as soon as two lanes swap."""
    if _full(words):
        return np.ones(len(own), dtype=bool)
    found, step = np.empty(len(own), dtype=bool), max(1, (1 << 24) // len(words))
    for at in range(0, len(own), step):
        part = slice(at, at + step)
        scores = read[part].astype(float) @ words.T.astype(float)
        right = (read[part] * own[part]).sum(axis=1)
        found[part] = (scores >= right[:, None]).sum(axis=1) > 1  # its own word is one of them
    return found


def _distinct(places: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """P(the words are distinct | their overlaps) of each row: those of one overlap are drawn from so many."""
    ordered = np.sort(places, axis=1)
    at = np.broadcast_to(np.arange(ordered.shape[1]), ordered.shape)
    new = np.concatenate([np.ones((len(ordered), 1), bool), ordered[:, 1:] != ordered[:, :-1]], axis=1)
    earlier = at - np.maximum.accumulate(np.where(new, at, 0), axis=1)
    return np.maximum(0.0, 1 - earlier * np.exp(-logs)[ordered]).prod(axis=1)


def _tilts(overlap: np.ndarray, key_code: int, differ: float) -> np.ndarray:
    """For each row the t that makes the mean of Σ ρ e equal to N, by halving; where none does, a steep one."""
    rows, place = np.unique(np.sort(np.abs(overlap), axis=1), axis=0, return_inverse=True)
    low, high = np.zeros(len(rows)), np.full(len(rows), _STEEPEST / key_code)
    for _ in range(40):
        t = (low + high) / 2
        steep = t[:, None] * rows
        mean = (rows * differ * np.sinh(steep) / (1 - differ + differ * np.cosh(steep))).sum(axis=1)
        low, high = np.where(mean >= key_code, low, t), np.where(mean >= key_code, t, high)
    return high[place.ravel()]


def _least(reached: Callable[[float], bool], most: float) -> float:
    """The least number up to `most` from which on a condition holds, by halving; `most` where it never does."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _differ(words: np.ndarray) -> float:
    """How often two lanes of a balanced word differ."""
    return words.shape[1] / (2 * (words.shape[1] - 1))


def _full(words: np.ndarray) -> bool:
    """Whether these are all balanced words of their length."""
    return len(words) == comb(words.shape[1], words.shape[1] // 2)
