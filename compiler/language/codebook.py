"""Codebooks: short codewords that stand for one of many tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import ceil, comb, log, sqrt

import numpy as np

from compiler import digits
from compiler.language.arguments import MOST_LANES, integer, number, shown

_MOST_ENTRIES = 1 << 28  # of a random codebook, a byte each


@dataclass(frozen=True, eq=False)
class Codebook:
    """Distinct codewords, one row per symbol, no word all zeros (zeros mean that no symbol is present).

    words: (size, length) array of −1 and +1 (signs) or of 0 and 1 (bits).
    """

    words: np.ndarray

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "words", np.asarray(self.words))
        except ValueError:  # rows of unequal length
            raise _no_table() from None
        if self.words.ndim != 2 or self.words.dtype.kind not in "iuf" or not self.words.size:
            raise _no_table()
        entries = set(np.unique(self.words).tolist())
        if not (entries <= {-1, 1} or entries <= {0, 1}):
            raise ValueError(f"a codebook's entries must be −1 and +1, or 0 and 1, and these are {sorted(entries)}")
        words = self.words.astype(np.int8)  # a set of them takes a hundredth of the time that sorting long rows does
        if len({word.tobytes() for word in words}) < len(words) or not words.any(axis=1).all():
            raise ValueError("a codebook's words must be distinct and none of them all zeros")

    @property
    def size(self) -> int:
        """How many codewords there are."""
        return self.words.shape[0]

    @property
    def length(self) -> int:
        """How many entries a codeword has."""
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


def _no_table() -> TypeError:
    return TypeError("the words of a codebook must be a (size, length) array of −1 and +1, or of 0 and 1")


def balanced_length(size: int) -> int:
    """The least even p with C(p, p/2) ≥ size (E8: p = 12 for 512 words, 20 for 50,257)."""
    p = 2
    while comb(p, p // 2) < size:
        p += 2
    return p


def balanced(size: int) -> Codebook:
    """`size` distinct words of the least even length with half of the entries +1.

    Two distinct words differ in at least two places, so <c, c'> ≤ p − 4 < p = <c, c>:
    the argmax over <c, ·> finds the word that is present (exactness E8).
    """
    size = integer(size, "size of balanced", 1, MOST_LANES)
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
    size = integer(size, "size of bits", 1, MOST_LANES)
    return Codebook(_binary_digits(np.arange(1, size + 1), size.bit_length()))


def signs(size: int) -> Codebook:
    """The numbers 0 … size − 1 as ⌈log2 size⌉ signs (at least one): the shortest ±1 code of distinct words.

    <c, c> = q and <c, c'> ≤ q − 2 for other words, which is what `decode` needs.
    """
    size = integer(size, "size of signs", 1, MOST_LANES)
    return Codebook(2 * _binary_digits(np.arange(size), max(1, (size - 1).bit_length())) - 1)


def _drawable(what: str, size: int, length: int, seed: int) -> tuple[int, int, int]:
    """(size, length, seed) of a random codebook that can be drawn; ValueError or TypeError where it cannot.

    what: the word that draws it, for messages.
    """
    size, length = integer(size, f"size of {what}", 1, MOST_LANES), integer(length, f"length of {what}", 1, MOST_LANES)
    if size * length > _MOST_ENTRIES:
        raise ValueError(
            f"{size} codewords of length {length} have {size * length} entries, and {what} draws at most "
            f"{_MOST_ENTRIES}"
        )
    return size, length, integer(seed, f"seed of {what}", 0)


def random_balanced(size: int, length: int, seed: int) -> Codebook:
    """`size` distinct balanced ±1 words of a given even length, drawn with a seed.

    For sums of many codewords (Lemma 4 of paper A): their coherence is a matter of
    measurement, never of assumption; see `Codebook.coherence`.
    """
    size, length, seed = _drawable("random_balanced", size, length, seed)
    least = balanced_length(size)
    if length % 2 or length < least:
        raise ValueError(
            f"{size} distinct balanced codewords need an even length of at least {least}, and it is {length}"
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


@dataclass(frozen=True, eq=False)
class MeasuredCode:
    """A random codebook that was measured: what a manifest records of it.

    epsilon: every |<c, c'>| ≤ epsilon · p over distinct words, p the length; measured, not assumed. 1 asks for nothing.
    draws:   how many codebooks were drawn, the last one with seed `seed + draws − 1`.
    """

    book: Codebook
    epsilon: float
    seed: int
    draws: int

    @property
    def coherence(self) -> float:
        """The largest |<c, c'>|/p."""
        return self.book.coherence() / self.book.length

    def to_json(self) -> dict:
        """Seed, sizes and measured coherence."""
        return {
            "size": self.book.size,
            "length": self.book.length,
            "epsilon": self.epsilon,
            "coherence": self.coherence,
            "seed": self.seed,
            "draws": self.draws,
        }


def jl_length(size: int, epsilon: float, delta: float) -> int:
    """p = ⌈4 ε⁻² ln(size/δ)⌉: one draw has coherence at most ε with probability at least 1 − δ² (paper A, Lemma 4).

    Hoeffding gives 2 e^(−ε²p/2) for a pair, and there are fewer than size²/2 pairs.
    """
    size = integer(size, "size of a random code", most=MOST_LANES)
    epsilon, delta = float(number(epsilon, "epsilon")), float(number(delta, "delta"))
    if size < 1 or not 0 < epsilon < 1 or not 0 < delta < 1:
        raise ValueError(
            f"a code of {size} words with ε = {epsilon} and δ = {delta} makes no sense: "
            "size ≥ 1, 0 < ε < 1 and 0 < δ < 1 do"
        )
    return ceil(4 * epsilon**-2 * log(size / delta))


def least_coherence(size: int, length: int) -> float:
    """No `size` words of this length have a smaller |<c, c'>|/p (Welch's bound; for odd p also 1/p, by parity; 1 if two
    must agree up to sign).
    """
    size, length = integer(size, "size of a code", 1), integer(length, "length of a code", 1)
    if (size - 1).bit_length() > length - 1:
        return 1.0
    welch = sqrt((size - length) / (length * (size - 1))) if size > length else 0.0
    return max(welch, 1 / length if length % 2 and size > 1 else 0.0)


def jl(
    size: int, epsilon: float, delta: float = 0.5, length: int | None = None, seed: int = 0, most_draws: int = 64
) -> MeasuredCode:
    """Uniformly random ±1 words (scaled by 1/√p they are Lemma 4's projections of unit vectors), drawn until their
    coherence is at most ε.

    length: p, by default `jl_length`. ValueError where p cannot succeed, and where no draw did.
    """
    needed = jl_length(size, epsilon, delta)
    p = needed if length is None else integer(length, "length of jl", 1)
    if least_coherence(size, p) > epsilon:
        raise ValueError(
            f"no {size} words of length {p} have a coherence of {epsilon} or less: "
            f"{digits.at_least(least_coherence(size, p))} is the least possible; length {needed} succeeds"
        )
    otherwise = f"length {needed} succeeds with probability {digits.at_least(1 - delta**2, 2)} or more a draw"
    return drawn("jl", size, p, epsilon, seed, most_draws, otherwise)


def free_signs(size: int, length: int, seed: int) -> Codebook:
    """Uniformly random ±1 words; ValueError where two came out alike."""
    size, length, seed = _drawable("free_signs", size, length, seed)
    return Codebook(np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=(size, length)))


KINDS = {"balanced": random_balanced, "jl": free_signs}


def drawn(
    kind: str, size: int, length: int, epsilon: float = 1.0, seed: int = 0, most_draws: int = 64, otherwise: str = ""
) -> MeasuredCode:
    """Codes of a kind, with the seeds `seed`, `seed + 1` …, until the measured coherence is at most epsilon.

    otherwise: what a refusal recommends, by default a longer code.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"the kind of a random code is {shown(kind)}, and it must be one of {', '.join(KINDS)}")
    size, length, seed = _drawable(f"a {kind} code", size, length, seed)
    epsilon, best = float(number(epsilon, "epsilon")), 1.0
    for draw in range(integer(most_draws, "most_draws", 1)):
        try:
            book = KINDS[kind](size, length, seed + draw)
        except ValueError:
            if kind == "balanced":
                raise
            continue  # two words alike
        if epsilon >= 1:
            return MeasuredCode(book, epsilon, seed, draw + 1)
        best = min(best, book.coherence() / length)
        if best <= epsilon:
            return MeasuredCode(book, epsilon, seed, draw + 1)
    raise ValueError(
        f"none of {most_draws} codes of {size} words of length {length} had a coherence of {epsilon} or less (the "
        f"best {digits.at_most(best)}); {otherwise or f'length {2 * length} is the next to try'}"
    )
