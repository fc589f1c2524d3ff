"""The domain of a stream, lane by lane, in float64 rounded outward.

Bounds are float64 arrays. Where the numbers that meet are multiples of a common power of two and stay
within 2^53 of it, float64 arithmetic on them is exact; elsewhere every result is widened by more than
float64 can have rounded. So a bound is never too small, and it is sharp wherever sharpness decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np

from compiler.lattice.units import array_units, float_unit

_FEW = 16  # numbers, which are looked at sooner one by one
EXACT = 2.0**53 * (1 - 2.0**-20)  # the factor covers the rounding of what is compared with it


@dataclass(frozen=True, eq=False)
class Domain:
    """Lane i holds multiples of units[i] in [low[i], high[i]].

    Arrays (width,); a sum over lanes, and its scalar summaries.

    units:  powers of two; 0: no lattice (reals, computed with roundings also where their bounds are 0); infinity: the
            lane is always 0, and exactly so.
    l1:     bound on Σ over lanes of |value| at one position.
    totals: bound on Σ over positions of |value|, for each lane.
    """

    units: np.ndarray
    low: np.ndarray
    high: np.ndarray
    l1: Fraction
    totals: np.ndarray

    @cached_property
    def bounds(self) -> np.ndarray:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @cached_property
    def grain(self) -> float:
        """The largest power of two of which every finite bound and total is a multiple."""
        return min(least_unit(self.low), least_unit(self.high), least_unit(self.totals))

    @cached_property
    def content(self) -> bytes:
        """The same for equal lanes."""
        return b"".join(part.tobytes() for part in (self.units, self.low, self.high, self.totals))

    def __copy__(self) -> Domain:
        _ = self.alike, self.step, self.steps, self.lo, self.hi  # found once for all copies
        copy = object.__new__(Domain)
        vars(copy).update(vars(self))
        return copy

    @cached_property
    def alike(self) -> tuple[int, int, bytes]:
        """The same for domains that say the same."""
        return self.l1.numerator, self.l1.denominator, self.content

    @cached_property
    def step(self) -> Fraction:
        """The unit of the whole stream: 0 where a lane is real, 1 where all are 0."""
        least = self.units.min(initial=np.inf)
        return Fraction(1) if np.isinf(least) else Fraction(float(least))

    @cached_property
    def lo(self) -> Fraction:
        return Fraction(float(self.low.min()) if self.low.size else 0.0)

    @cached_property
    def hi(self) -> Fraction:
        return Fraction(float(self.high.max()) if self.high.size else 0.0)

    @cached_property
    def total(self) -> Fraction:
        return Fraction(float(self.totals.max(initial=0)))

    @cached_property
    def bound(self) -> Fraction:
        return Fraction(float(self.bounds.max(initial=0)))

    @cached_property
    def steps(self) -> Fraction:
        """The largest bound in units of its own lane: what must stay below 2^24 for float32 sums to be exact."""
        return in_units(self.bounds, self.units)

    @property
    def is_flag(self) -> bool:
        return self.step >= 1 and self.lo >= 0 and self.hi <= 1


def in_units(sizes: np.ndarray, units: np.ndarray) -> Fraction:
    """The largest size counted in its unit; lanes without a lattice and lanes that are 0 count as 0."""
    counted = np.flatnonzero((units > 0) & np.isfinite(units))
    if not len(counted):
        return Fraction(0)
    with np.errstate(over="ignore"):
        most = counted[np.argmax(sizes[counted] / units[counted])]
    return Fraction(float(sizes[most])) / Fraction(float(units[most]))  # the quotient may leave the range of float64


def least_unit(values: np.ndarray) -> float:
    """The largest power of two of which all the values are multiples, infinity where all are 0."""
    if values.size > _FEW:
        return float(array_units(values).min(initial=np.inf))
    return min((float_unit(value) for value in values.ravel().tolist() if value), default=inf)


def up(value: Fraction) -> float:
    """The least float64 that is not below a number."""
    near = value.numerator / value.denominator  # rounded to the nearest
    numerator, denominator = near.as_integer_ratio()
    above = numerator * value.denominator >= value.numerator * denominator
    return near if above else float(np.nextafter(near, np.inf))


def down(value: Fraction) -> float:
    """The largest float64 that is not above a number."""
    return -up(-value)


def raised(sums: np.ndarray, unit: float, terms: int) -> np.ndarray:
    """Computed sums of at most so many terms ≥ 0, each a product of two floats and a multiple of the unit: no smaller
    than the true ones.
    """
    if sums.max(initial=0) <= EXACT * unit:
        return sums
    return sums * (1 + (terms + 4) * 2.0**-52)


def outward(
    low: np.ndarray, high: np.ndarray, reach: np.ndarray, unit: float, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Computed ends of intervals, widened by what may have been rounded.

    reach: the sums of the terms' absolute values.
    """
    if reach.max(initial=0) <= EXACT * unit:
        return low, high
    lost = reach * ((terms + 4) * 2.0**-52)
    return low - lost, high + lost


def times(values: np.ndarray, factor: Fraction) -> np.ndarray:
    """factor · values, both at least 0, rounded up."""
    scale = up(factor)
    return raised(values * scale, least_unit(values) * least_unit(np.array([scale])), 1)


def summed(values: np.ndarray) -> Fraction:
    """The sum of numbers of at least 0, rounded up."""
    return Fraction(float(raised(np.array([values.sum()]), least_unit(values), len(values))[0]))


def power_of_two(bound: Fraction) -> Fraction:
    """The least power of two that is at least the bound (1 for a bound of 0)."""
    if not bound:
        return Fraction(1)
    power = Fraction(2) ** (bound.numerator.bit_length() - bound.denominator.bit_length())
    return power if power >= bound else 2 * power


def with_zero(d: Domain) -> Domain:
    """With the zeros before the start."""
    return replace(d, low=np.minimum(d.low, 0), high=np.maximum(d.high, 0))


def products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of units, where a lane without a lattice stays without one."""
    return np.where((a == 0) | (b == 0), 0.0, np.where(a == 0, 1.0, a) * np.where(b == 0, 1.0, b))
