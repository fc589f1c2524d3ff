"""Products and sums of weight matrices without rounding.

Weights are folded into each other before they become tensors, and a float64 that rounds there makes
another circuit: (k·2^60 + k) − k·2^60. Each result here is exact: by float64 where every partial sum
keeps within 2^53 units (the usual case, asked beforehand), else by Fractions; an entry that no
float64 holds is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.language.arguments import Number
from compiler.lattice.units import array_units

EXACT = 2.0**53
_SLACK = 1 - 2.0**-20  # covers the rounding of the bounds themselves


class InexactWeight(ArithmeticError):
    """A folded weight that no float64 holds. what: how messages tell of it."""

    def __init__(self, weight: Fraction, what: str = "its weights fold"):
        self.weight = weight
        shown = str(weight) if abs(weight.numerator) < 10**30 > weight.denominator else f"about {_about(weight)}"
        super().__init__(f"{what} to {shown}, which no float64 holds exactly; use k/2^n with small k")


def _about(weight: Fraction) -> str:
    exponent = weight.numerator.bit_length() - weight.denominator.bit_length()
    return f"{'−' if weight < 0 else ''}2^{exponent}"


def exact_float(weight: Fraction) -> float:
    """The float64 equal to a number; InexactWeight where there is none."""
    try:
        held = float(weight)
    except OverflowError as error:
        raise InexactWeight(weight) from error
    if Fraction(held) != weight:
        raise InexactWeight(weight)
    return held


def exact_rows(rows: Iterable[Iterable[Number]]) -> sparse.csr_array:
    """The matrix of these numbers; InexactWeight where a float64 does not hold one."""
    return _tidy(sparse.csr_array([[exact_float(Fraction(v)) for v in row] for row in rows]))


def product(a: sparse.csr_array, b: sparse.csr_array) -> sparse.csr_array:
    """a · b."""
    shape = (a.shape[0], b.shape[1])
    if not a.nnz or not b.nnz:
        return sparse.csr_array(shape)
    reach = float(np.bincount(row_numbers(a), np.abs(a.data)).max()) * float(np.abs(b.data).max())
    if _exact(reach, float(array_units(a.data).min()) * float(array_units(b.data).min())):
        return _tidy(a @ b)
    right = defaultdict(list)
    for row, column, weight in _entries(b):
        right[row].append((column, weight))
    return _collected(((i, k, v * w) for i, j, v in _entries(a) for k, w in right[j]), shape)


def total(matrices: Sequence[sparse.csr_array]) -> sparse.csr_array:
    """The sum of matrices of one shape (at least one)."""
    if len(matrices) == 1:
        return matrices[0]
    parts = [m for m in matrices if m.nnz]
    reach = sum(float(np.abs(m.data).max()) for m in parts)
    if not parts or _exact(reach, min(array_units(m.data).min() for m in parts)):
        return _tidy(sum(parts[1:], start=parts[0]) if parts else sparse.csr_array(matrices[0].shape))
    return _collected((entry for m in parts for entry in _entries(m)), matrices[0].shape)


def scaled(matrix: sparse.csr_array, factor: Fraction) -> sparse.csr_array:
    """factor · matrix."""
    if factor == 1 or not matrix.nnz:
        return matrix
    if not factor:
        return sparse.csr_array(matrix.shape)
    unit = Fraction(factor.numerator & -factor.numerator, factor.denominator)
    size = abs(factor)
    if size < 2**500 and _exact(
        float(np.abs(matrix.data).max()) * float(size), float(array_units(matrix.data).min()) * float(unit)
    ):
        return sparse.csr_array((matrix.data * float(factor), matrix.indices, matrix.indptr), shape=matrix.shape)
    return _collected(((i, j, factor * weight) for i, j, weight in _entries(matrix)), matrix.shape)


def gathered(row: np.ndarray, column: np.ndarray, weight: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """The matrix of (row, column, weight) triples, those of one place summed."""
    if not len(weight):
        return sparse.csr_array(shape)
    flat = np.asarray(row, dtype=np.int64) * shape[1] + column
    place, at, counts = np.unique(flat, return_inverse=True, return_counts=True)
    most = counts.max()
    if most == 1 or _exact(float(np.abs(weight).max()) * float(most), array_units(weight).min()):
        return _laid_out(place, np.bincount(at, weight), shape)
    triples = zip(row.tolist(), column.tolist(), map(Fraction, weight.tolist()), strict=True)
    return _collected(triples, shape)


def on_columns(parts: Iterable[tuple[sparse.csr_array, np.ndarray]], shape: tuple[int, int]) -> sparse.csr_array:
    """Σ over parts (matrix, at) of the matrix with column j put at at[j], left out where that is −1."""
    rows, columns, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for matrix, at in parts:
        column = at[matrix.indices]
        held = column >= 0
        rows.append(row_numbers(matrix)[held])
        columns.append(column[held])
        weights.append(matrix.data[held])
    return gathered(np.concatenate(rows), np.concatenate(columns), np.concatenate(weights), shape)


def _laid_out(place: np.ndarray, weight: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """The matrix with these weights at row · width + column, ascending; without those that are 0."""
    place, weight = place[weight != 0], weight[weight != 0]
    ends = np.searchsorted(place, np.arange(shape[0] + 1) * shape[1])
    return sparse.csr_array((weight, place % max(1, shape[1]), ends), shape=shape)


def _exact(reach: float, unit: float) -> bool:
    """Whether sums of multiples of the unit that keep within the reach are exact in float64, in any order."""
    return bool(2.0**-900 < unit < 2.0**900 and reach <= EXACT * _SLACK * unit)


def row_numbers(matrix: sparse.csr_array) -> np.ndarray:
    """The row of every entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _entries(matrix: sparse.csr_array) -> Iterable[tuple[int, int, Fraction]]:
    weights = map(Fraction, matrix.data.tolist())
    return zip(row_numbers(matrix).tolist(), matrix.indices.tolist(), weights, strict=True)


def _collected(triples: Iterable[tuple[int, int, Fraction]], shape: tuple[int, int]) -> sparse.csr_array:
    sums: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for i, j, weight in triples:
        sums[i, j] += weight
    places = np.array(list(sums), dtype=np.int64).reshape(-1, 2).T
    held = np.array([exact_float(weight) for weight in sums.values()])
    return _tidy(sparse.csr_array((held, (places[0], places[1])), shape=shape))


def _tidy(matrix: sparse.sparray) -> sparse.csr_array:
    if not isinstance(matrix, sparse.csr_array):
        matrix = sparse.csr_array(matrix)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
