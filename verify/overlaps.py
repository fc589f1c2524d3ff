"""The overlaps of random key words: how many words have which product with a given one."""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.special import gammaln

from verify.arguments import one_of

KINDS = ("balanced", "jl")


def overlaps(length: int, kind: str = "balanced", coherence: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(<c, c'> of two random distinct words, how likely each is): balanced words, or free signs ("jl").

    coherence: |<c, c'>| is at most this share of the length, as in a code that was drawn until that was measured.
    """
    values, logs = words_at(length, kind, coherence)
    share = np.exp(logs - logs.max())
    return values, share / share.sum()


def words_at(length: int, kind: str = "balanced", coherence: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(<c, c'>, the logarithm of how many words c' other than c have it)."""
    one_of("kind", kind, KINDS)
    entries = length // 2 if kind == "balanced" else length
    agree = np.arange(entries)  # not in all entries: the words are distinct
    ways = gammaln(entries + 1) - gammaln(agree + 1) - gammaln(entries - agree + 1)
    values = (4 if kind == "balanced" else 2) * agree - length
    kept = np.abs(values) <= coherence * length
    if not kept.any():
        raise ValueError(f"coherence = {coherence} leaves no overlap of words of length {length}; take a larger one.")
    return values[kept], (ways * (2 if kind == "balanced" else 1))[kept]


def counted(length: int, kind: str) -> list[tuple[int, int]]:
    """The same without a limit, in whole numbers: (<c, c'>, how many words c' have it)."""
    if kind == "balanced":
        return [(4 * a - length, comb(length // 2, a) ** 2) for a in range(length // 2)]
    return [(2 * a - length, comb(length, a)) for a in range(length)]


def all_distinct(logs: np.ndarray, columns: int) -> float:
    """P(so many independent words, other than a given one, are distinct), from the logarithms of `words_at`."""
    share = np.exp(-np.logaddexp.reduce(logs))  # of one word
    return float(np.prod(np.maximum(0.0, 1 - np.arange(columns) * share)))
