"""What interval arithmetic needs of a matrix, found once for each: the sums of its rows against bounds of lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b

import numpy as np
from scipy import sparse

from compiler.lattice.domain import Domain, least_unit, outward, raised
from compiler.lattice.units import array_units


@dataclass(frozen=True, eq=False)
class Sums:
    """Σ_j matrix[i, j] · lane j for the rows i of `at`, by the domain of the lanes; of any other row it is 0.

    low, high: between which it lies; up, down: what its positive and its negative terms can reach;
    units: its unit (0: none, infinity: always 0); totals: what its absolute value can sum to over positions;
    rising: the same of its positive part.
    """

    at: np.ndarray | slice
    low: np.ndarray
    high: np.ndarray
    up: np.ndarray
    down: np.ndarray
    units: np.ndarray
    totals: np.ndarray
    rising: np.ndarray


def added(parts: Sequence[Sums], of: Callable[[Sums], np.ndarray], height: int) -> np.ndarray:
    """Σ over parts of what each has of its rows: (height,)."""
    total = np.zeros(height)
    for part in parts:
        total[part.at] += of(part)
    return total


def least_units(parts: Sequence[Sums], height: int) -> np.ndarray:
    """The units of sums of parts: (height,)."""
    units = np.full(height, np.inf)
    for part in parts:
        units[part.at] = np.minimum(units[part.at], part.units)
    return units


class MatrixSums:
    """A matrix (rows × lanes) and what is known of its rows whatever the lanes hold."""

    def __init__(self, matrix: sparse.csr_array):
        if not matrix.data.all():
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        self.height = matrix.shape[0]
        self.columns = matrix.indices
        self.size = np.abs(matrix.data)
        self.positive = matrix.data > 0
        per_row = np.diff(matrix.indptr)
        self.terms = int(per_row.max(initial=0))
        self.at: np.ndarray | slice = slice(None)
        if _is_gappy(matrix):  # streams side by side have one row each
            self.at = np.flatnonzero(per_row)
            per_row = per_row[self.at]
        self.filled = len(per_row)
        self.rows = np.repeat(np.arange(self.filled, dtype=np.int32), per_row)
        units = array_units(matrix.data)
        self.grain = float(units.min(initial=np.inf))
        self.units = units if (units != self.grain).any() else np.array(self.grain)  # one for all entries, where equal
        self.largest = np.zeros(self.filled)
        np.maximum.at(self.largest, self.rows, self.size)
        sums = np.bincount(matrix.indices, self.size, 1)
        self._found: dict[tuple[bytes, float], Sums] = {}
        self.column = Fraction(float(raised(sums, self.grain, len(self.size)).max()))

    @property
    def spans(self) -> bool:
        """Whether its weights are so large or so small that products of them could leave the range of float64."""
        return bool(self.size.size) and (self.size.max() > 2.0**300 or self.grain < 2.0**-300)

    def of(self, domain: Domain, cap: float) -> Sums:
        """cap: a bound on Σ |lanes| of one position. Found once for equal lanes: passes ask again and again."""
        key = (domain.content, cap)
        if key not in self._found:
            self._found[key] = self._of(domain, cap)
        return self._found[key]

    def _of(self, domain: Domain, cap: float) -> Sums:
        at, size = self.columns, self.size
        low, high = np.minimum(domain.low, 0)[at], np.maximum(domain.high, 0)[at]
        gain = size * np.where(self.positive, high, -low)
        loss = size * np.where(self.positive, -low, high)
        unit, terms = self.grain * min(domain.grain, least_unit(np.array([cap]))), self.terms
        limit = raised(self.largest * cap, unit, 1)
        gains, losses = self._sum(gain), self._sum(loss)
        top = self._sum(size * np.where(self.positive, domain.high[at], -domain.low[at]))
        bottom = self._sum(size * np.where(self.positive, domain.low[at], -domain.high[at]))
        bottom, top = outward(bottom, top, gains + losses, unit, terms)
        units = np.full(self.filled, np.inf)
        np.minimum.at(units, self.rows, self.units * domain.units[at])
        totals = size * domain.totals[at]
        rising = totals * (self.positive | (low < 0))
        return Sums(
            self.at,
            np.maximum(bottom, -limit),
            np.minimum(top, limit),
            np.minimum(raised(gains, unit, terms), limit),
            np.minimum(raised(losses, unit, terms), limit),
            units,
            raised(self._sum(totals), unit, terms),
            raised(self._sum(rising), unit, terms),
        )

    def _sum(self, entries: np.ndarray) -> np.ndarray:
        return np.bincount(self.rows, entries, self.filled)


class MatrixSumsCache:
    """The sums of matrices that many operations share, equal ones once; a matrix is kept, so that its id stays its
    own.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[sparse.csr_array, MatrixSums]] = {}
        self._equal: dict[bytes, MatrixSums] = {}

    def __call__(self, matrix: sparse.csr_array) -> MatrixSums:
        if id(matrix) not in self._known:
            self._known[id(matrix)] = (matrix, self._of_equal(matrix))
        return self._known[id(matrix)][1]

    def _of_equal(self, matrix: sparse.csr_array) -> MatrixSums:
        content = _digest(matrix)
        if content not in self._equal:
            self._equal[content] = MatrixSums(matrix)
        return self._equal[content]


def _digest(matrix: sparse.csr_array) -> bytes:
    """The same for equal matrices; their numbers would be kept a second time."""
    found = blake2b(repr((matrix.shape, len(matrix.data))).encode())
    ends = matrix.indptr
    if _is_gappy(matrix):
        count = np.diff(ends)
        rows = np.flatnonzero(count)
        ends = np.concatenate([rows, count[rows]])
    for part in (ends, matrix.indices):
        found.update(part.astype(np.int64, copy=False).tobytes())
    found.update(matrix.data.tobytes())
    return found.digest()


def _is_gappy(matrix: sparse.csr_array) -> bool:
    """Whether most rows are empty."""
    return 2 * len(matrix.data) < matrix.shape[0]
