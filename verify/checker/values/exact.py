"""Arithmetic of float64 arrays that hold exact numbers: what might round is refused. Bounds are rounded outwards.

Every number of circuit.json, of the weights, and every bound that is kept in float64 is added and multiplied here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np

from verify.checker.formats import SMALL, Rejected, array_exponent

LEAST, MOST = -1074, 1023  # float64 has no finer unit than 2^LEAST, and holds what is below 2^MOST
_WHOLE = 1 << 53  # below it every whole number is a float64
_NORMAL = 2.0**-1000  # below it some results have fewer bits than 53
_BITS = "a proof needs more than the 53 bits that the checker carries"
_SILENT = np.errstate(over="ignore", invalid="ignore")  # what overflows is refused, or a bound that bounds nothing
Sides = tuple[np.ndarray, np.ndarray]  # (at most, at least) the exact numbers


def holds(size: float, unit: int, bits: int = 53) -> bool:
    """Whether float64 holds every multiple of 2^unit below 2^(bits + unit), and the size is below that."""
    return unit >= LEAST and bool(size < math.ldexp(1.0, min(bits + unit, MOST)))


def within(result: np.ndarray, unit: int) -> bool:
    """Whether the results of one operation on multiples of 2^unit each are exact."""
    if result.size <= SMALL:
        return all(holds(abs(x), unit) for x in result.ravel().tolist())
    return holds(float(np.abs(result).max(initial=0.0)), unit)


def held(result: np.ndarray, size: np.ndarray, unit: int) -> np.ndarray:
    """The result, if numbers of this size, which may be rounded itself, are exact in units of 2^unit."""
    if not holds(float(size.max(initial=0.0)), unit, 52):
        raise Rejected(_BITS)
    return result


def product_unit(*factors: np.ndarray) -> int:
    """The unit of products of numbers of these arrays; 0 where they are all 0."""
    units = [array_exponent(factor) for factor in factors]
    return 0 if None in units else sum(e for e in units if e is not None)


@_SILENT
def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b."""
    return held(a @ b, np.abs(a) @ np.abs(b), product_unit(a, b))


@_SILENT
def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise."""
    found = a * b
    if not within(found, product_unit(a, b)):
        raise Rejected(_BITS)
    return found


def times_number(a: np.ndarray, x: float | Fraction) -> np.ndarray:
    return product(a, np.array(number(x)))


@_SILENT
def plus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    units = [e for e in (array_exponent(a), array_exponent(b)) if e is not None]
    size = np.array(np.abs(a).max(initial=0.0) + np.abs(b).max(initial=0.0))
    return held(a + b, size, min(units, default=0))


@contextmanager
def no_underflow() -> Iterator[None]:
    """Rejected where an operation underflows: what it rounds off is then no share of the result."""
    try:
        with np.errstate(under="raise"):
            yield
    except FloatingPointError as reason:
        raise Rejected("a bound is smaller than what float64 holds") from reason


def quotient(values: np.ndarray, divisor: Fraction) -> np.ndarray:
    """values / divisor, which is a divisor of each: the whole number has no more bits than the value."""
    by = number(divisor)
    if np.fmod(values, by).any():  # fmod never rounds
        raise Rejected(f"{divisor} is no divisor of a function of a token")
    return values / by


def is_float(x: Fraction | int | float) -> bool:
    """Whether float64 holds the number."""
    try:
        numerator, denominator = float(x).as_integer_ratio()
    except (OverflowError, ValueError):  # none so large, infinite, or no number
        return False
    return isinstance(x, float) or numerator * x.denominator == x.numerator * denominator


def number(x: Fraction | int | float) -> float:
    """The number as a float64; Rejected where that would round it."""
    if not is_float(x):
        shown = str(x)
        shown = shown if len(shown) < 60 else f"{shown[:24]} … {shown[-24:]}"
        raise Rejected(f"{shown} needs more than the 53 bits that the checker carries")
    return float(x)


def below(x: Fraction | int) -> float:
    """A float64 at most x: x itself where it is one."""
    return -above(-x)


def above(x: Fraction | int) -> float:
    """A float64 at least x: x itself where it is one."""
    if x.denominator == 1 and -_WHOLE < x.numerator < _WHOLE:
        return float(x.numerator)
    try:
        near = float(x)
    except OverflowError:
        return math.inf if x > 0 else -float(np.finfo(np.float64).max)
    numerator, denominator = near.as_integer_ratio()
    return near if numerator * x.denominator >= x.numerator * denominator else math.nextafter(near, math.inf)


@_SILENT
def sum_sides(a: np.ndarray, b: np.ndarray) -> Sides:
    """a + b, elementwise and rounded to either side; exact where float64 holds it."""
    found = a + b
    of_b = found - a
    left = (a - (found - of_b)) + (b - of_b)  # Knuth's error of a sum, which is exact; NaN where the sum overflows
    if not left.any():
        return found, found
    low, high = (np.nextafter(found, end) for end in (-np.inf, np.inf))
    return np.where(left >= 0, found, low), np.where(left <= 0, found, high)


@_SILENT
def product_sides(a: np.ndarray, b: np.ndarray) -> Sides:
    """a · b, elementwise and rounded to either side; exact where float64 holds it. An infinite bound is none, of
    numbers that are finite: 0 times these is 0.
    """
    found = np.where((a == 0) | (b == 0), 0.0, a * b)
    if np.abs(found).max(initial=0.0) < _WHOLE and (np.floor(a) == a).all() and (np.floor(b) == b).all():
        return found, found
    short = np.abs(_odd(a) * _odd(b)) < 2.0**53  # of odd whole numbers, however many bits their product has
    normal = (np.abs(found) >= _NORMAL) & (np.abs(found) < np.inf)
    sure = (a == 0) | (b == 0) | (short & normal)
    if sure.all():
        return found, found
    low, high = (np.nextafter(found, end) for end in (-np.inf, np.inf))
    return np.where(sure, found, low), np.where(sure, found, high)


def _odd(x: np.ndarray) -> np.ndarray:
    """The odd whole number that each finite one is a power of two times; 0 of 0."""
    mantissa, _ = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    return (whole // np.maximum(whole & -whole, 1)).astype(np.float64)


def in_units(bounds: np.ndarray, unit: int) -> np.ndarray:
    """(2, …) bounds of multiples of 2^unit, as whole numbers of units: what lies between two is on neither side."""
    low, high = (np.ldexp(side, -unit) for side in bounds)
    low = np.where(np.ldexp(low, unit) > bounds[0], np.nextafter(low, -np.inf), low)
    high = np.where(np.ldexp(high, unit) < bounds[1], np.nextafter(high, np.inf), high)
    return np.stack([np.ceil(low), np.floor(high)])
