"""Units: the largest power of two of which numbers are multiples.

A float holds every multiple of 2^e below 2^(e+p), p its significand, and sums of such
multiples are exact there. Multiples of 1000 are exact below 2^p·8, not below 2^p·1000: so
everything that is compared with 2^p is counted in powers of two, never in a lattice's own step.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isfinite

import numpy as np


def unit_of(*numbers: Fraction) -> Fraction:
    """The largest power of two of which all the dyadic numbers are multiples (0 for no nonzero one)."""
    return min((_unit(Fraction(n)) for n in numbers if n), default=Fraction(0))


def _unit(number: Fraction) -> Fraction:
    numerator, denominator = number.numerator, number.denominator
    if denominator & (denominator - 1):
        raise ValueError(f"{number} is no dyadic rational, so it is a multiple of no power of two")
    return Fraction(numerator & -numerator, denominator)


def float_unit(value: float) -> float:
    """The largest power of two that divides a float64 other than 0; 0 where it is no number."""
    if not isfinite(value):
        return 0.0
    numerator, denominator = value.as_integer_ratio()
    return float(numerator & -numerator) if denominator == 1 else 1 / denominator


def array_units(values: np.ndarray) -> np.ndarray:
    """For each float64 the largest power of two that divides it, infinity for 0."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    units = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(whole == 0, np.inf, units)


def array_unit(values: np.ndarray) -> Fraction:
    """The largest power of two of which all the floats are multiples (0 for no nonzero one)."""
    least = array_units(values).min(initial=np.inf)
    return Fraction(0) if np.isinf(least) else Fraction(float(least))


def array_divisor(values: np.ndarray) -> Fraction:
    """The largest number of which all the floats are integer multiples (0 for no nonzero one)."""
    sizes = np.abs(values)
    if sizes.size and (sizes == sizes.flat[0]).all():
        return Fraction(float(sizes.flat[0]))
    unit = array_unit(values)
    return gcd(*(int(Fraction(float(v)) / unit) for v in np.unique(values))) * unit if unit else unit
