"""Arrays of whole numbers, exact: in 64 bits where these hold every result, of Python's integers elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from verify.kernel.floats import Unproved, exponents

Array = np.ndarray
_FITS = 1 << 62
_MOST_LONG = 1 << 22  # that are gone through one by one


def integers(numbers: Sequence[int]) -> Array:
    big = max(map(abs, numbers), default=0) >= _FITS
    return np.array([int(x) for x in numbers], object if big else np.int64)


def alike(*arrays: Array) -> list[Array]:
    """All of 64 bits, or all of Python's integers."""
    kinds = {a.dtype for a in arrays}
    return list(arrays) if len(kinds) == 1 else [a.astype(object) for a in arrays]


def size(a: Array) -> int:
    return abs(int(a.item())) if a.size == 1 else max(-int(np.minimum.reduce(a, None)), int(np.maximum.reduce(a, None)))


def multiply(a: Array, b: Array) -> Array:
    """Exact: of Python's integers where 64 bits might not do."""
    if a.dtype == b.dtype == np.int64 and size(a) * size(b) < _FITS:
        return a * b
    return a.astype(object) * b.astype(object)


def add(a: Array, b: Array) -> Array:
    if a.dtype == b.dtype == np.int64 and size(a) + size(b) < _FITS:
        return a + b
    return a.astype(object) + b.astype(object)


def each(check: Callable[[int], None], numbers: Array) -> None:
    """Of numbers that 64 bits hold there is nothing to check."""
    if numbers.dtype == object:
        for x in numbers.reshape(-1).tolist():
            check(x)


def fold(choose: Callable, ends: Sequence[Array]) -> Array:
    found = ends[0]
    for end in ends[1:]:
        found = choose(*alike(found, end))
    return found


def whole(numbers: Array) -> tuple[Array, int]:
    """Floats, fractions or whole numbers times the least natural number that makes them whole, and that number."""
    if numbers.dtype == np.int64:
        return numbers, 1
    if numbers.dtype == np.float64:
        unit = min(0, int(exponents(numbers[numbers != 0]).min(initial=0)))
        if np.abs(numbers).max(initial=0) < 2.0 ** (62 + unit):
            return np.ldexp(numbers, -unit).astype(np.int64), 1 << -unit
    if numbers.size > _MOST_LONG:
        raise Unproved(f"{numbers.size} numbers that 64 bits do not hold, and the kernel reads at most {_MOST_LONG}")
    exact = [Fraction(x) for x in numbers.reshape(-1).tolist()]
    below = lcm(*(x.denominator for x in exact))
    return integers([int(x * below) for x in exact]).reshape(numbers.shape), below


def kinds(rows: Sequence[Array]) -> tuple[Array, Array]:
    """(the first column of each kind, the kind of each column) of columns of whole numbers: those of one kind are
    equal. Kinds are in lexical order."""
    first, kind = np.zeros(1, np.int64), np.zeros(len(rows[0]), np.int64)
    for row in rows:
        numbers, which = _ranked(row - row.min())
        first, kind = _ranked(kind * len(numbers) + which)
    return first, kind


def _ranked(numbers: Array) -> tuple[Array, Array]:
    """(where each number is first, in their order, the rank of each) of naturals; small ones need no sorting."""
    if numbers.max() >= 1 << 20:
        return np.unique(numbers, return_index=True, return_inverse=True)[1:]
    held = np.bincount(numbers) > 0
    first = np.zeros(len(held), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several the last one written stays
    return first[held], (np.cumsum(held) - 1)[numbers]


def products(a: Array, b: Array) -> Array:
    """The matrix product, exact: in floats where these hold what is added up on the way in any order, as it is below
    2^24, or 2^53."""
    most = size(a) * size(b) * a.shape[1] if a.dtype == b.dtype == np.int64 and a.size and b.size else _FITS
    if most < 1 << 53:
        form = np.float32 if most < 1 << 24 else np.float64
        return a.astype(form) @ b.astype(form)
    if most >= _FITS and a.shape[0] * b.size > 1 << 26:
        raise Unproved(f"products of {a.shape[0]} × {b.size} numbers that 64 bits do not hold")
    return a @ b if most < _FITS else a.astype(object).dot(b.astype(object))


def of_floats(found: Array) -> Array:
    """Whole numbers that may be floats, as such of 64 bits or Python's."""
    return found.astype(np.int64) if found.dtype.kind == "f" else found


def matmul(a: Array, b: Array) -> Array:
    return of_floats(products(a, b))
