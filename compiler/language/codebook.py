"""Codebooks: short codewords that stand for one of many tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import comb

import numpy as np


@dataclass(frozen=True, eq=False)
class Codebook:
    """Distinct codewords, one row per symbol, no word all zeros (zeros mean that no symbol is present).

    words: (size, length) array of −1 and +1 (signs) or of 0 and 1 (bits).
    """

    words: np.ndarray

    @property
    def size(self) -> int:
        return self.words.shape[0]

    @property
    def length(self) -> int:
        return self.words.shape[1]

    @property
    def signed(self) -> bool:
        """Whether the entries are −1 and +1, rather than bits."""
        return bool((self.words < 0).any())

    @property
    def balanced(self) -> bool:
        """Whether every codeword has as many +1 as −1, so that constant shifts cancel."""
        return bool((self.words.sum(axis=1) == 0).all())

    def coherence(self) -> int:
        """The largest |<c, c'>| over distinct codewords (0 for a single word); O(size²) time, tiled memory."""
        words = self.words.astype(np.float32)
        worst = 0.0
        for start in range(0, self.size, 1024):
            gram = words[start : start + 1024] @ words.T
            rows = np.arange(gram.shape[0])
            gram[rows, rows + start] = 0
            worst = max(worst, float(np.abs(gram).max()))
        return int(worst)


def balanced_length(size: int) -> int:
    """The least even p with C(p, p/2) ≥ size (E8: p = 12 for 512 words, 20 for 50,257)."""
    p = 2
    while comb(p, p // 2) < size:
        p += 2
    return p


def balanced(size: int) -> Codebook:
    """`size` distinct words of the least even length with half of the entries +1.

    Two distinct words differ in at least two places, so <c, c'> ≤ p − 4 < p = <c, c>:
    the argmax over <c, ·> finds the word that is present (exact-arithmetic E8).
    """
    if size < 1:
        raise ValueError(f"a codebook needs at least one word, and size is {size}")
    p = balanced_length(size)
    words = np.full((size, p), -1, dtype=np.int8)
    places = np.array(list(islice(combinations(range(p), p // 2), size)))
    np.put_along_axis(words, places, 1, axis=1)
    return Codebook(words)


def _binary_digits(numbers: np.ndarray, length: int) -> np.ndarray:
    """(count, length) array of 0 and 1, the least significant digit first."""
    return (numbers[:, None] >> np.arange(length) & 1).astype(np.int8)


def bits(size: int) -> Codebook:
    """The numbers 1 … size in ⌈log2(size + 1)⌉ binary digits: the shortest code that differs from "absent".

    Bits are stored as they are (no sign pair, no presence lane); zeros are the blank. Its
    readout is `nearest`, because a word may contain another.
    """
    if size < 1:
        raise ValueError(f"a codebook needs at least one word, and size is {size}")
    return Codebook(_binary_digits(np.arange(1, size + 1), size.bit_length()))


def signs(size: int) -> Codebook:
    """The numbers 0 … size − 1 as ⌈log2 size⌉ signs (at least one): the shortest ±1 code of distinct words.

    <c, c> = q and <c, c'> ≤ q − 2 for other words, which is what `decode` needs.
    """
    if size < 1:
        raise ValueError(f"a codebook needs at least one word, and size is {size}")
    return Codebook(2 * _binary_digits(np.arange(size), max(1, (size - 1).bit_length())) - 1)


def random_balanced(size: int, length: int, seed: int) -> Codebook:
    """`size` distinct balanced ±1 words of a given even length, drawn with a seed.

    For sums of many codewords (Lemma 4 of paper A): their coherence is a matter of
    measurement, never of assumption; see `Codebook.coherence`.
    """
    if length % 2 or comb(length, length // 2) < size:
        raise ValueError(
            f"{size} distinct balanced codewords need an even length of at least {balanced_length(size)}, and it is {length}"
        )
    rng = np.random.default_rng(seed)
    seen: dict[bytes, np.ndarray] = {}
    base = np.repeat(np.array([1, -1], dtype=np.int8), length // 2)
    while len(seen) < size:
        for word in rng.permuted(np.tile(base, (size, 1)), axis=1):
            seen.setdefault(word.tobytes(), word)
            if len(seen) == size:
                break
    return Codebook(np.stack(list(seen.values())))
