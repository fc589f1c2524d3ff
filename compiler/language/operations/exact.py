"""Exact weights, and how a matrix acts on arrays."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import lcm, prod

import numpy as np
from scipy import sparse

from compiler.language.arguments import Exact
from compiler.language.types import Bool, Int, OneHot, Real, Type

Array = np.ndarray
RANGE = Fraction(2) ** 256  # beyond, and below its inverse, products of bounds could leave the range of float64
_MOST_DIGITS = 24
_LONGEST_NUMBER = 24  # characters
_IN_CACHE = 1 << 16  # float64 numbers
_MOST_DENSE = 1 << 22  # numbers of a matrix that is made dense
_DENSE = 8  # a matrix with more than one entry in so many takes less time as a dense one


def exact_number(value: Exact) -> float:
    """The float64 equal to a rational; ValueError when there is none (exactness E12)."""
    if not is_dyadic(value):
        raise ValueError(no_weight(value))
    return float(value)


def no_weight(value: Exact) -> str:
    """Why a number that no float64 holds is no weight."""
    return f"weight {_all_of(Fraction(value))} {_unheld(Fraction(value))}"


def is_dyadic(value: Exact) -> bool:
    """Whether a float64 holds the number exactly."""
    try:
        return Fraction(float(value)) == Fraction(value)
    except OverflowError:
        return False


def is_summable(value: Exact) -> bool:
    """Whether a float64 holds the number exactly, and products of its bounds keep within the range of float64."""
    return is_dyadic(value) and (not value or 1 / RANGE <= abs(Fraction(value)) <= RANGE)


def not_summable(what: str, values: tuple[Fraction, ...]) -> list[str]:
    """The complaint about the first of the numbers that no float holds or sums; [] where there is none."""
    bad = next((v for v in values if not is_summable(v)), None)
    if bad is None or not is_dyadic(bad):
        return not_dyadic(what, values)
    beyond = "exceeds 2^256" if abs(bad) > 1 else "is finer than 2^−256"
    return [f"{what} {number_text(bad)} {beyond}, and no float sums such numbers exactly"]


def not_dyadic(what: str, values: tuple[Fraction, ...]) -> list[str]:
    """The complaint about the first of the numbers that no float holds; [] where there is none."""
    bad = next((v for v in values if not is_dyadic(v)), None)
    return [] if bad is None else [f"{what} {_all_of(bad)} {_unheld(bad)}"]


def _all_of(value: Fraction) -> str:
    """The number, with so many digits that it is not told as one that a float64 holds."""
    text = number_text(value)
    if "." in text or "/" in text or not _is_another(text, value):
        return text
    with localcontext(prec=_MOST_DIGITS):
        return f"{Decimal(value.numerator) / Decimal(value.denominator)}"


def _is_another(text: str, value: Fraction) -> bool:
    try:
        return Fraction(text) != value
    except ValueError:  # beyond ±2^1023
        return False


def _unheld(value: Fraction) -> str:
    if value.denominator & (value.denominator - 1):
        return "is no dyadic rational, so no float holds it exactly; use k/2^n"
    if (value.numerator // (value.numerator & -value.numerator)).bit_length() <= 53:
        return "is outside the range of float64, so none holds it exactly; use k/2^n with n of at most 1074"
    return "has more than 53 bits, so no float64 holds it exactly; use k/2^n with k of at most 53 bits"


def number_text(value: Fraction) -> str:
    """The number as it is, or about that where this would be a line of digits."""
    text = str(value)
    if len(text) <= _LONGEST_NUMBER:
        return text
    return f"{float(value):g}" if abs(value) < Fraction(2) ** 1023 else "beyond ±2^1023"


def exact_matrix(matrix: Array | sparse.sparray) -> sparse.csr_array:
    """A matrix of dyadic rationals as sparse float64, every entry exact."""
    if not sparse.issparse(matrix) and np.asarray(matrix).dtype == object:
        matrix = np.vectorize(exact_number, otypes=[float])(matrix)
    result = sparse.csr_array(matrix, dtype=np.float64)
    _check_unrounded(np.asarray(matrix.data if sparse.issparse(matrix) else matrix))
    result.sum_duplicates()
    result.eliminate_zeros()
    if not np.isfinite(result.data).all():
        raise ValueError("a matrix holds an infinity or a NaN, and weights must be numbers")
    return result


def _check_unrounded(given: Array) -> None:
    """ValueError where the numbers given may be wider than float64, so that they were rounded on their way."""
    if given.dtype == np.float64 or given.dtype.itemsize < 8 or not given.size:
        return
    largest = max(abs(int(given.max())), abs(int(given.min()))) if given.dtype.kind in "iu" else np.inf
    if largest > 2**53:
        raise ValueError(
            f"a matrix of {given.dtype} holds numbers up to {largest}, and weights are exact up to 2^53; give Fractions"
        )


@lru_cache(maxsize=1 << 16)
def scaled_identity(width: int, factor: float = 1.0) -> sparse.csr_array:
    """factor · 1 (width × width), one shared matrix for each; not to be changed in place."""
    places = np.arange(width + 1)
    return exact_matrix(sparse.csr_array((np.full(width, factor), places[:-1], places), shape=(width, width)))


@lru_cache(maxsize=1 << 12)
def copies(width: int, factor: float = 1.0) -> sparse.csr_array:
    """The (width × 1) matrix that copies factor · a single lane to every lane, shared as well."""
    return exact_matrix(np.full((width, 1), factor))


def with_width(type: Type, width: int) -> Type | None:
    """The type of so many of the lanes of a stream of this type; None where that depends on which."""
    if isinstance(type, (Bool, OneHot)):
        return Bool(width)
    if isinstance(type, (Int, Real)) and type.kinds:
        return None
    return Int(width=width) if type.integral else Real(width=width)


def apply(matrix: sparse.csr_array, x: Array) -> Array:
    """matrix · x over the last axis: (batch, time, w_in) to (batch, time, w_out), exactly."""
    if x.dtype != object:
        weights = matrix.data.astype(x.dtype, copy=False)
        if matrix.shape == (1, 1) and len(weights):
            return x if weights[0] == 1 else x * weights[0]
        if len(weights) == matrix.shape[0] and (np.diff(matrix.indptr) == 1).all():  # each row has one: there is no sum
            picked = _picked(x, matrix.indices)
            return picked if (weights == 1).all() else picked * weights
        parts = weights, matrix.indices, matrix.indptr
        typed = matrix if weights is matrix.data else sparse.csr_array(parts, shape=matrix.shape)
        return _multiplied(typed, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], matrix.shape[0])
    weights, below = _exact_weights(matrix.data), 1
    whole, whole_weights = _numerators(x), _numerators(weights)
    if whole and whole_weights:  # sums of integers take a fraction of the time of sums of Fractions
        (x, denominator), (weights, scale) = whole, whole_weights
        below = denominator * scale
    out = np.zeros((*x.shape[:-1], matrix.shape[0]), dtype=object)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)).tolist()
    for i, j, weight in zip(rows, matrix.indices.tolist(), weights.tolist(), strict=True):
        out[..., i] += x[..., j] if weight == 1 else weight * x[..., j]
    return out if below == 1 else _divided(out, below)


def add(matrix: sparse.csr_array, x: Array, total: Array) -> None:
    """Add matrix · x to a total: of its rows that hold anything, for streams side by side have one row each."""
    if 2 * len(matrix.data) > matrix.shape[0]:
        total += apply(matrix, x)
        return
    count = np.diff(matrix.indptr)
    rows = np.flatnonzero(count)
    ends = np.zeros(len(rows) + 1, matrix.indptr.dtype)
    count[rows].cumsum(out=ends[1:])
    filled = sparse.csr_array((matrix.data, matrix.indices, ends), shape=(len(rows), matrix.shape[1]))
    total[..., rows] += apply(filled, x)


def _exact_weights(data: Array) -> Array:
    return np.array([int(w) if w.is_integer() else Fraction(w) for w in data.tolist()], dtype=object)


def _numerators(numbers: Array) -> tuple[Array, int] | None:
    """Integers and the power of two below all of them; None where there is none, or for what only acts as numbers."""
    flat = numbers.ravel().tolist()
    kinds = set(map(type, flat))
    if not kinds <= {int, Fraction}:
        return None
    if Fraction not in kinds:
        return numbers, 1
    below = lcm(*{v.denominator for v in flat})
    if below & (below - 1):
        return None
    whole = np.empty(len(flat), dtype=object)
    whole[:] = [v.numerator * (below // v.denominator) for v in flat]
    return whole.reshape(numbers.shape), below


def _divided(numbers: Array, below: int) -> Array:
    """numbers / below: integers where it divides them, else Fractions."""
    return np.frompyfunc(lambda v: Fraction(v, below) if v % below else v // below, 1, 1)(numbers)


def _picked(x: Array, lanes: np.ndarray) -> Array:
    """These lanes of x, without a copy where they are all of them in order."""
    return x if np.array_equal(lanes, np.arange(x.shape[-1])) else x[..., lanes]


def _multiplied(matrix: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    """matrix · row for every row. Sums are exact in any order, so that a matrix without many zeros is taken as dense.

    Others in blocks: SciPy's result is transposed, which is turned while it is in the cache.
    """
    if _DENSE * matrix.nnz > prod(matrix.shape) and prod(matrix.shape) < _MOST_DENSE:
        return rows @ matrix.toarray().T
    out = np.empty((len(rows), matrix.shape[0]), rows.dtype)
    block = max(1, _IN_CACHE // max(1, *matrix.shape))
    for start in range(0, len(rows), block):
        out[start : start + block] = (matrix @ rows[start : start + block].T).T
    return out


def shifted(x: Array, k: int) -> Array:
    out = np.zeros_like(x)
    if k < x.shape[1]:
        out[:, k:] = x[:, : x.shape[1] - k]
    return out
