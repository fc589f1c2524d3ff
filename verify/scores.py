"""Scores of every token at every position, and each distinct row of what they depend on scored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Scores = Callable[[np.ndarray], np.ndarray]
"""Token ids (batch, length) to scores (batch, length, tokens)."""

_SCORES_AT_ONCE = 1 << 18  # beyond, what is formed of them leaves the cache
_SOME = 16


@dataclass(frozen=True)
class Split:
    """Scores in two steps, of which the second sees one position at a time.

    rows: token ids (batch, length) to (batch, length, width).
    head: rows (n, width) to scores (n, tokens).
    read: the entries of a row that the scores depend on, and the head on these alone; None for all entries.
    widest: numbers that a position takes at most while rows are computed; products: multiplications in all.
    """

    rows: Callable[[np.ndarray], np.ndarray]
    head: Callable[[np.ndarray], np.ndarray]
    read: tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]] | None = None
    widest: int = 0
    products: int = 0

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Token ids (batch, length) to scores (batch, length, tokens)."""
        rows = self.rows(tokens)
        scores = self.head(rows.reshape(-1, rows.shape[-1]))
        return scores.reshape(*tokens.shape, -1)

    def deciding(self, rows: np.ndarray) -> np.ndarray:
        """(n, entries): the part of rows (n, width) that the scores depend on."""
        return rows if self.read is None else rows[:, self.read[0]]

    def scored(self, deciding: np.ndarray) -> np.ndarray:
        """Scores (n, tokens) of what `deciding` gives."""
        return self.head(deciding) if self.read is None else self.read[1](deciding)


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of the positions `where`, flat indices into (batch, length): theirs are rows `row` of all arrays.

    expected: the reference's; found: those of each model.
    """

    where: np.ndarray
    row: np.ndarray
    expected: np.ndarray
    found: tuple[np.ndarray, ...]


def at_every_position(models: Sequence[Scores], reference: Scores, tokens: np.ndarray) -> Iterator[Scored]:
    """The scores of models and of their reference, all of them."""
    every = np.arange(tokens.size)
    flat = lambda scores: scores.reshape(tokens.size, -1)
    yield Scored(every, every, flat(reference(tokens)), tuple(flat(model(tokens)) for model in models))


def of_distinct_rows(models: Sequence[Split], reference: Split, tokens: np.ndarray) -> Iterator[Scored]:
    """The same, but positions where the reference and all models have equal rows are scored once.

    Equal rows have equal scores, because a head reads one position at a time. An entry with weight 0 changes no sum of
    finite numbers. Of the first rows the whole head must give the same; else every position is scored by it.
    """
    flat = lambda rows: rows.reshape(tokens.size, -1)
    theirs, ours = flat(reference.rows(tokens)), [flat(model.rows(tokens)) for model in models]
    if not all(_read_alone(model, rows) for model, rows in zip(models, ours, strict=True)):
        yield from at_every_position(models, reference, tokens)
        return
    deciding = [model.deciding(rows) for model, rows in zip(models, ours, strict=True)]
    first, row = distinct(theirs, *deciding)
    order = np.argsort(row, kind="stable")
    begins = np.searchsorted(row[order], np.arange(len(first) + 1))
    size = max(_SOME, _SCORES_AT_ONCE // reference.head(theirs[:1]).shape[1])
    for start in range(0, len(first), size):
        now = first[start : start + size]
        where = order[begins[start] : begins[start + len(now)]]
        found = tuple(model.scored(rows[now]) for model, rows in zip(models, deciding, strict=True))
        yield Scored(where, row[where] - start, reference.head(theirs[now]), found)


def _read_alone(model: Split, rows: np.ndarray) -> bool:
    """Whether the entries that a head reads give what the whole head gives, on the first rows; all must be finite."""
    some = rows[:_SOME]
    return bool(np.isfinite(rows).all()) and np.array_equal(model.scored(model.deciding(some)), model.head(some))


def distinct(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first, row): an index of each distinct row of parts (n, …) laid side by side, and which of them each row is.

    Rows are sorted by a 64-bit hash, and each is held against the first of its hash, bit for bit. If two hashes
    collide, all rows stand for themselves.
    """
    words = np.concatenate([_words(part) for part in parts], axis=1)
    _, first, row = np.unique(_hashes(words), return_index=True, return_inverse=True)
    if not (words == words[first][row]).all():
        return np.arange(len(words)), np.arange(len(words))
    return first, row


def _words(part: np.ndarray) -> np.ndarray:
    """The bits of rows as (n, words) uint32."""
    return np.ascontiguousarray(part).view(np.uint32).reshape(len(part), -1)


def _hashes(words: np.ndarray) -> np.ndarray:
    """(n,) uint64, a sum of odd multiples of the words, modulo 2^64."""
    drawn = np.random.default_rng(0).integers(0, 2**64, words.shape[1], dtype=np.uint64)
    return np.einsum("ij,j->i", words.astype(np.uint64), np.bitwise_or(drawn, np.uint64(1)))
