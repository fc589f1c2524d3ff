"""Inputs to try a compiled circuit on: all short strings of its language and random walks, or numbers of their ranges.

Prefixes count: whatever is compared is compared at every position. Everything is drawn with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, isfinite
from random import Random

import numpy as np

from compiler.language import operations as ops
from compiler.language.allowed import allowed, nearest
from compiler.language.circuit import Circuit
from compiler.language.graph import with_operation
from compiler.language.input_language import Edge, InputLanguage
from compiler.language.stream import Stream
from compiler.language.types import OPEN, Bool, Code, Int, OneHot, Real, Type

LONGEST_EXHAUSTIVE = 6
UNBOUNDED = 2**10  # how far an open bound of a numeric input is taken to lie beyond the other bound, and beyond 0

Inputs = tuple[np.ndarray | None, Mapping[Stream, np.ndarray]]


def inputs_of(circuit: Circuit, positions: int) -> Iterator[Inputs]:
    """Batches (token ids (batch, time) or None, {numeric input: (batch, time, width)}) of about this many positions in
    all.
    """
    if circuit.alphabet is not None and circuit.language is not None:
        for batch in _words(circuit.language, positions):
            yield batch, {}
    elif circuit.language is None:
        numbers = _numbers(circuit, positions, np.random.default_rng(0))
        # A circuit that reads nothing, a constant, has one sequence: its only token is the absent one.
        yield (None, numbers) if numbers else (np.zeros((1, min(circuit.max_length, positions)), dtype=np.int64), {})


# Tokens --------------------------------------------------------------------------------------------


def _words(language: InputLanguage, positions: int) -> list[np.ndarray]:
    """All strings of the greatest length that half of the positions hold, shorter ones that end there, and walks."""
    words = _short_strings(language, positions // 2)
    walker = _Walker(language, Random(0))
    for longest in (16, 64):
        length = min(language.max_length, longest, positions)
        words += [walker.word(length) for _ in range(max(1, positions // 4 // length))]
    by_length: dict[int, list[tuple[int, ...]]] = {}
    for word in dict.fromkeys(words):
        by_length.setdefault(len(word), []).append(word)
    return [np.array(same, dtype=np.int64) for length, same in sorted(by_length.items()) if length]


def _short_strings(language: InputLanguage, positions: int) -> list[tuple[int, ...]]:
    """Strings of which every shorter one is a prefix or listed."""
    found: list[tuple[int, ...]] = []
    for length, strings in enumerate(language.short_strings(LONGEST_EXHAUSTIVE, max(1, positions)), start=1):
        if len(strings) > max(1, positions // length):
            break
        prefixes = {word[:-1] for word in strings}
        found = [word for word in found if word not in prefixes] + strings
    return found


class _Walker:
    """Random walks of an input language that like to repeat a token."""

    def __init__(self, language: InputLanguage, rng: Random):
        self.start, self.rng = language.start, rng
        self.leaving: dict[str, list[tuple[int, Edge, np.ndarray]]] = {}
        for i, edge in enumerate(language.edges):
            if edge.tokens:
                tokens = np.sort(np.fromiter(edge.tokens, dtype=np.int64))
                self.leaving.setdefault(edge.source, []).append((i, edge, tokens))

    def word(self, length: int) -> tuple[int, ...]:
        """A walk of this length, or as far as it comes."""
        state = self.start
        used: set[tuple[int, int]] = set()
        word: list[int] = []
        while len(word) < length:
            options = list(self.leaving.get(state, ()))
            token = None
            while options and token is None:
                i, edge, tokens = options.pop(self.rng.randrange(len(options)))
                token = self._token(edge, tokens, {t for j, t in used if j == i} if edge.distinct else set(), word)
            if token is None:
                break
            used.add((i, token))
            word.append(token)
            state = edge.target
        return tuple(word)

    def _token(self, edge: Edge, tokens: np.ndarray, used: set[int], word: list[int]) -> int | None:
        if word and self.rng.random() < 0.5:
            earlier = self.rng.choice(word)
            if earlier in edge.tokens and earlier not in used:
                return earlier
        free = tokens if not used else tokens[~np.isin(tokens, list(used))]
        return int(free[self.rng.randrange(len(free))]) if len(free) else None


# Numbers -------------------------------------------------------------------------------------------


def _numbers(circuit: Circuit, positions: int, rng: np.random.Generator) -> dict[Stream, np.ndarray]:
    length = min(circuit.max_length, 16)
    batch = max(2, positions // length)
    inputs = with_operation(circuit.streams, ops.Numbers)
    return {s: drawn(numbers.type, (batch, length), rng) for s, numbers in inputs}


def drawn(
    type: Type,
    shape: tuple[int, int],
    rng: np.random.Generator,
    most: float = inf,
    dtype: type[np.floating] = np.float64,
) -> np.ndarray:
    """Values of a type, its bounds among them; ValueError where it allows none.

    most: the largest size of numbers; where it is not told, an open bound is 2^10 away. dtype: the format whose numbers
    they are. The first sequence holds the greatest numbers throughout, and the first lane of a OneHot: so what adds up
    over a sequence, of several inputs together, is as large as it can be. Of a OneHot the second goes through all
    lanes.
    """
    if isinstance(type, (Int, Real)):
        return _numbers_of(type, shape, rng, most, dtype)
    values = _drawn(type, shape, rng)
    if isinstance(type, OneHot):
        lanes = np.eye(type.n + 1, dtype=values.dtype)[:, : type.n]  # the last of them: absent
        values[0], values[1:2] = lanes[0], lanes[np.arange(shape[1]) % (type.n + 1)]
    elif isinstance(type, Bool):
        values[0] = 1
    return values


def _drawn(type: Type, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    if isinstance(type, Bool):
        return rng.integers(0, 2, (*shape, type.width))
    if isinstance(type, OneHot):
        return np.eye(type.n + 1, dtype=np.int64)[rng.integers(0, type.n + 1, shape)][..., : type.n]
    if isinstance(type, Code):
        words = np.vstack([np.zeros((1, type.width)), type.book.words]).astype(np.int64)
        return words[rng.integers(0, len(words), shape)]
    raise TypeError(f"no input is declared {type}")


def _numbers_of(
    type: Int | Real,
    shape: tuple[int, int],
    rng: np.random.Generator,
    most: float,
    dtype: type[np.floating],
) -> np.ndarray:
    """Ends of what is allowed, small integers, and 257 places between the ends."""
    intervals = allowed(type, dtype, most, OPEN if isfinite(most) else UNBOUNDED)
    if not intervals:
        raise ValueError(f"{type} allows no number of {np.dtype(dtype)}" + f" up to {most:g} in size" * isfinite(most))
    lo, hi = intervals[0][0], intervals[-1][1]
    lanes = (*shape, type.width)
    bounds = np.where(rng.integers(0, 2, lanes) == 1, hi, lo)
    small = np.clip(rng.integers(-3, 4, lanes), lo, hi)
    parts = rng.integers(0, 257, lanes)
    inside = lo + (hi - lo) * parts / 256 if isfinite(hi - lo) else lo / 256 * (256 - parts) + hi / 256 * parts
    inside = np.round(inside) if type.integral else _single(inside)
    values = np.choose(rng.integers(0, 3, lanes), [bounds, small, np.clip(inside, lo, hi)])
    gap = float(getattr(type, "gap", 0))
    if gap:  # its own ends are tried
        edge = np.where(rng.integers(0, 2, lanes) == 1, gap, -gap)
        values = np.where(rng.integers(0, 4, lanes) == 0, edge, values)
    values = nearest(values, intervals)
    values[0] = hi
    return values


def _single(values: np.ndarray) -> np.ndarray:
    """Rounded to float32: beyond its range, the largest that it holds."""
    largest = np.finfo(np.float32).max
    return np.float32(np.clip(values, -largest, largest)).astype(float)
