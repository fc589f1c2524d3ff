"""Equal rows of numbers get one number, in all batches."""

from __future__ import annotations

from functools import cache

import numpy as np

_ROWS, _WORDS = 1 << 16, 1 << 21  # that are remembered; with more, all are forgotten before the next batch
_IN_CACHE = 1 << 16  # words
_BITS = 18  # of the table from hashes to rows


class Numbered:
    """Numbers for rows: the same for rows of the same bits, from 0 on in the order in which they are met.

    A table leads from some bits of a hash to the last row that was met with these. A row is taken for that one only
    where the whole hash and then all bits agree. So a row may get a new number when it is met again, but never the
    number of a row with other bits.
    """

    _count: int
    _rows: np.ndarray  # (at least _count, words)
    _hashes: np.ndarray  # of each row
    _table: np.ndarray  # row by place; those that are not filled name any row, for the hashes are compared

    def __init__(self) -> None:
        self._forget(0)

    def of(self, *parts: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
        """(row, known, new): the number of each row of parts (n, …) laid side by side; the least new number; and the
        index of a row of each new number.
        """
        words = [_words(part) for part in parts]
        count, width = len(words[0]), sum(part.shape[1] for part in words)
        if width != self._rows.shape[1] or self._count > min(_ROWS, _WORDS // max(1, width)):
            self._forget(width)
        size = max(1, _IN_CACHE // max(1, width))
        blocks = [self._met([part[i : i + size] for part in words]) for i in range(0, count, size)]
        row, unmet, hashes = (np.concatenate(each) for each in zip(*blocks, strict=True))
        first, which = distinct(unmet, hashes)
        known, left = self._count, np.flatnonzero(row < 0)
        row[left] = known + which
        self._remember(unmet[first], hashes[first])
        return row, known, left[first]

    def _met(self, parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The number of each row, -1 where it is not known; and these rows with their hashes."""
        words = np.concatenate(parts, axis=1)
        hashes = _hashes(words)
        if not self._count:
            return np.full(len(words), -1), words, hashes
        row, found = np.full(len(words), -1), self._table[_place(hashes)]
        here = np.flatnonzero(self._hashes[found] == hashes)
        equal = self._rows.take(found[here], axis=0) == words.take(here, axis=0)
        if not equal.all():
            here = here[equal.all(axis=1)]
        row[here] = found[here]
        left = np.flatnonzero(row < 0)
        return row, words[left], hashes[left]

    def _remember(self, words: np.ndarray, hashes: np.ndarray) -> None:
        end = self._count + len(words)
        if end > len(self._rows):
            more = max(end, 2 * len(self._rows)) - len(self._rows)
            self._rows = np.concatenate([self._rows, np.empty((more, words.shape[1]), np.uint32)])
            self._hashes = np.concatenate([self._hashes, np.empty(more, np.uint64)])
        self._rows[self._count : end], self._hashes[self._count : end] = words, hashes
        self._table[_place(hashes)] = np.arange(self._count, end)
        self._count = end

    def _forget(self, width: int) -> None:
        self._count = 0
        self._rows, self._hashes = np.empty((0, width), np.uint32), np.empty(0, np.uint64)
        self._table = np.zeros(1 << _BITS, np.int32)


def distinct(words: np.ndarray, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first, row): an index of each distinct row of (n, words), and which of them each row is.

    Rows are sorted by their hashes, and each is held against the first of its hash, bit for bit. If two hashes collide,
    all rows stand for themselves.
    """
    _, first, row = np.unique(hashes, return_index=True, return_inverse=True)
    if not (words == words[first][row]).all():
        return np.arange(len(words)), np.arange(len(words))
    return first, row


def _words(part: np.ndarray) -> np.ndarray:
    """The bits of rows as (n, words) uint32."""
    return np.ascontiguousarray(part).view(np.uint32).reshape(len(part), -1)


def _hashes(words: np.ndarray) -> np.ndarray:
    """(n,) uint64, a sum of odd multiples of the words, modulo 2^64."""
    return np.einsum("ij,j->i", words.astype(np.uint64), _multipliers(words.shape[1]))


@cache
def _multipliers(width: int) -> np.ndarray:
    drawn = np.random.default_rng(0).integers(0, 2**64, width, dtype=np.uint64)
    return np.bitwise_or(drawn, np.uint64(1))


def _place(hashes: np.ndarray) -> np.ndarray:
    """(n,): where the table holds rows of these hashes."""
    return hashes >> np.uint64(64 - _BITS)
