"""Sums of columns that decide for all: what vanishes on few sums of lanes, or of queries, vanishes on all (lemma of
sums that decide).
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from verify.checker.values.exact import number, times, times_number

_MOST_DENOMINATOR = 1 << 16  # of all weights together
_DENOMINATOR = 1 << 10
_FEW = 2  # entries for each column
_LEFT = 1e-8  # of a column: more than that is no sum of those before


def relations(columns: np.ndarray) -> dict[int, dict[int, Fraction]]:
    """For some columns P the rows of whole numbers M, by column, with c · columns = columns[:, P] @ M.

    So where M @ x = 0, columns @ x = 0: only these sums of lanes are to be shown 0, one for each column in P.
    """
    found: dict[int, dict[int, Fraction]] = {}
    span = _Span(columns)
    for c in range(columns.shape[1]):
        weights = span.weights(c)
        if weights is None or not _is_sum(columns, c, weights):
            found[c] = {c: Fraction(1)}
            continue
        for pivot, w in weights.items():
            found[pivot][c] = w
    common = {pivot: lcm(*(w.denominator for w in row.values())) for pivot, row in found.items()}
    return {pivot: {c: w * common[pivot] for c, w in row.items()} for pivot, row in found.items()}


def deciding(columns: np.ndarray) -> list[tuple[int, dict[int, Fraction]]]:
    """Sums of lanes M with columns @ x = 0 where M @ x = 0; each with a row of the columns that is made of it.

    The rows themselves where they have few entries: relations may have as many each as there are columns.
    """
    if np.count_nonzero(columns) <= _FEW * columns.shape[1]:
        places = [(r, np.flatnonzero(row).tolist()) for r, row in enumerate(columns)]
        return [(r, {c: Fraction(columns[r, c]) for c in at}) for r, at in places if at]
    return [(int(np.flatnonzero(columns[:, pivot])[0]), row) for pivot, row in relations(columns).items()]


class _Span:
    """Columns that are no sums of those before, in floats: made orthonormal, with the matrix that makes them so.

    What it finds is checked exactly. A column that it takes for a new one is one more to be shown 0, so that no more
    is claimed. Each column takes time with the square of those that are kept.
    """

    def __init__(self, columns: np.ndarray):
        self.columns = columns
        self.lengths = np.linalg.norm(columns, axis=0)
        self.kept: list[int] = []
        most = min(columns.shape)
        self.basis, self.inverse = np.zeros((columns.shape[0], most)), np.zeros((most, most))

    def weights(self, c: int) -> dict[int, Fraction] | None:
        """The weights, of small denominators, of kept columns that may add up to column c; None: it is kept itself."""
        size, length = len(self.kept), float(self.lengths[c])
        if not 0 < length < np.inf:
            return {} if length == 0 else None
        held, rest, along = self.basis[:, :size], self.columns[:, c] / length, np.zeros(size)
        for _ in range(2):  # once more for what rounding left
            step = held.T @ rest
            rest, along = rest - held @ step, along + step
        left = float(np.linalg.norm(rest))
        if left > _LEFT and size < self.basis.shape[1]:
            self._keep(c, rest / left, along, left)
            return None
        shares = (self.inverse[:size, :size] @ along) * length / self.lengths[self.kept]
        near = np.round(shares)
        near = np.where(np.abs(shares - near) < _LEFT, near, shares)
        large = np.flatnonzero(np.abs(near) > 0.5 / _DENOMINATOR)
        found = {self.kept[i]: Fraction(near[i]).limit_denominator(_DENOMINATOR) for i in large.tolist()}
        return {pivot: w for pivot, w in found.items() if w}

    def _keep(self, c: int, direction: np.ndarray, along: np.ndarray, left: float) -> None:
        size = len(self.kept)
        self.inverse[:size, size] = -(self.inverse[:size, :size] @ along) / left
        self.inverse[size, size] = 1 / left
        self.basis[:, size] = direction
        self.kept.append(c)


def _is_sum(columns: np.ndarray, c: int, weights: dict[int, Fraction]) -> bool:
    """Whether a column is exactly the sum of others with these weights."""
    common = lcm(*(w.denominator for w in weights.values()))
    if common > _MOST_DENOMINATOR:
        return False
    whole = np.array([number(w * common) for w in weights.values()]).reshape(-1, 1)
    return bool((times(columns[:, list(weights)], whole)[:, 0] == times_number(columns[:, c], common)).all())
