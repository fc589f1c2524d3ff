"""Sums over the rows and columns of a matrix, found once for each: what interval arithmetic needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.units import array_unit


@dataclass(frozen=True, eq=False)
class MatrixSums:
    """up, down, largest: for each row the sums of its positive and negative entries, and its largest |entry|.

    step: the unit of the entries (a power of two); row, column: the largest Σ |entry| over a row and over a column.
    """

    up: np.ndarray
    down: np.ndarray
    largest: np.ndarray
    step: Fraction
    row: Fraction
    column: Fraction

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> MatrixSums:
        height, data = matrix.shape[0], matrix.data
        size = np.abs(data)
        at = np.repeat(np.arange(height), np.diff(matrix.indptr))
        up = np.bincount(at, np.maximum(data, 0), height)
        down = np.bincount(at, np.minimum(data, 0), height)
        largest = np.zeros(height)
        np.maximum.at(largest, at, size)
        columns = np.bincount(matrix.indices, size, 1)
        return cls(
            up,
            down,
            largest,
            array_unit(data),
            Fraction(float((up - down).max(initial=0))),
            Fraction(float(columns.max(initial=0))),
        )


class MatrixSumsCache:
    """The sums of matrices that many operations share; a matrix is kept, so that its id stays its own."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[sparse.csr_array, MatrixSums]] = {}

    def __call__(self, matrix: sparse.csr_array) -> MatrixSums:
        if id(matrix) not in self._known:
            self._known[id(matrix)] = (matrix, MatrixSums.of(matrix))
        return self._known[id(matrix)][1]
