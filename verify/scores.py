"""Scores of every token at every position, and each distinct row of what they depend on scored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verify.distinct import Numbered

Scores = Callable[[np.ndarray], np.ndarray]
"""Token ids (batch, length) to scores (batch, length, tokens)."""

_IN_CACHE = 1 << 19  # numbers that the widest array of a run may have, or those of one sequence
_SCORES_AT_ONCE = 1 << 18  # beyond, what is formed of them leaves the cache
_SOME = 16


@dataclass(frozen=True)
class Split:
    """Scores in two steps, of which the second sees one position at a time.

    rows: token ids (batch, length) to (batch, length, width); it is given parts of a batch that fit the cache.
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
        return self.head(_joined(list(self.parts(tokens)))).reshape(*tokens.shape, -1)

    def parts(self, tokens: np.ndarray) -> Iterator[np.ndarray]:
        """Rows (n, width) of all positions in order, so many sequences at a time as the cache holds."""
        size = max(1, _IN_CACHE // (tokens.shape[1] * self.widest)) if self.widest else len(tokens)
        for part in np.array_split(tokens, -(-len(tokens) // size)):
            rows = self.rows(part)
            yield rows.reshape(-1, rows.shape[-1])

    def deciding(self, tokens: np.ndarray) -> np.ndarray | None:
        """(n, entries): the part of all rows that the scores depend on.

        An entry with weight 0 changes no sum of finite numbers. None where a number is not finite, or where the entries
        that the head reads do not give what the whole head gives, on the first rows.
        """
        found: list[np.ndarray] = []
        for rows in self.parts(tokens):
            read = rows if self.read is None else rows[:, self.read[0]]
            some = slice(0, 0 if found else _SOME)
            if not np.isfinite(rows).all() or not np.array_equal(self.scored(read[some]), self.head(rows[some])):
                return None
            found.append(read)
        return _joined(found)

    def scored(self, deciding: np.ndarray) -> np.ndarray:
        """Scores (n, tokens) of what `deciding` gives."""
        return self.head(deciding) if self.read is None else self.read[1](deciding)


@dataclass(frozen=True, eq=False)
class Met:
    """The rows of a batch: equal rows have one number and one score, because a head reads one position at a time.

    row: (positions,), the number of each position's row. known: rows with smaller numbers were given out before.
    new: scores of the others in order, some at a time: the reference's, and those of each model.
    again: scores (n, tokens) of a model at these positions, once more.
    """

    row: np.ndarray
    known: int
    new: Iterator[tuple[np.ndarray, tuple[np.ndarray, ...]]]
    again: Callable[[int, np.ndarray], np.ndarray]


def at_every_position(models: Sequence[Scores], reference: Scores, tokens: np.ndarray) -> Met:
    """The scores of models and of their reference, all of them: every position is a row of its own."""
    flat = lambda scores: scores.reshape(tokens.size, -1)
    expected, found = flat(reference(tokens)), tuple(flat(model(tokens)) for model in models)
    return Met(np.arange(tokens.size), 0, iter([(expected, found)]), lambda i, where: found[i][where])


class DistinctRows:
    """The same, but positions where the reference and all models have equal rows are scored once, in all batches.

    Rows of all positions are held against each other bit for bit. Where a model cannot say what its head reads, every
    position is scored by the whole head.
    """

    def __init__(self, models: Sequence[Split], reference: Split):
        self.models, self.reference, self._numbered = models, reference, Numbered()

    def meet(self, tokens: np.ndarray) -> Met:
        """The rows of token ids (batch, length)."""
        ours = []
        for model in self.models:
            deciding = model.deciding(tokens)
            if deciding is None:
                self._numbered = Numbered()
                return at_every_position(self.models, self.reference, tokens)
            ours.append(deciding)
        theirs = _joined(list(self.reference.parts(tokens)))
        row, known, new = self._numbered.of(theirs, *ours)
        again = lambda i, where: self.models[i].scored(ours[i][where])
        return Met(row, known, self._scored(theirs, ours, new), again)

    def _scored(self, theirs: np.ndarray, ours: Sequence[np.ndarray], new: np.ndarray) -> Iterator:
        size = max(_SOME, _SCORES_AT_ONCE // self.reference.head(theirs[:1]).shape[1])
        for start in range(0, len(new), size):
            now = new[start : start + size]
            found = tuple(model.scored(rows[now]) for model, rows in zip(self.models, ours, strict=True))
            yield self.reference.head(theirs[now]), found


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """The rows of all parts, without a copy where there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
