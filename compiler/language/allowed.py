"""Which numbers a declared type of numbers allows, as intervals whose ends a float format holds."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf, isfinite

import numpy as np

from compiler.language.arguments import number
from compiler.language.types import OPEN, Int, Real

Interval = tuple[float, float]  # (least, largest), both allowed


def allowed(type: Int | Real, dtype: type[np.floating], most: float = inf, open: int = OPEN) -> list[Interval]:
    """The numbers of this format that a type allows: closed intervals in order, none where no such number is allowed.

    Between −gap and gap that is 0 alone, as an interval of its own. most: the largest size. open: how far an open bound
    lies beyond the other bound and the gap; it is at most 2^62 in size.
    """
    lo, hi = (None if bound is None else Fraction(number(bound, "a bound")) for bound in (type.lo, type.hi))
    gap = Fraction(number(getattr(type, "gap", 0), "a gap"))
    zero, end = Fraction(0), Fraction(OPEN)
    low = max(-end, min(hi or zero, zero) - gap - open) if lo is None else lo
    high = min(end, max(lo or zero, zero) + gap + open) if hi is None else hi
    if isfinite(most):
        low, high = max(low, -Fraction(most)), min(high, Fraction(most))
    parts = [(low, min(high, -gap)), (max(low, zero), min(high, zero)), (max(low, gap), high)]
    found = [_within(*part, type.integral, dtype) for part in (parts if gap else [(low, high)])]
    return [(least, largest) for least, largest in found if least <= largest]


def _within(low: Fraction, high: Fraction, integral: bool, dtype: type[np.floating]) -> Interval:
    """The least and the largest number of the format from low to high; the least is larger where there is none."""
    if integral:
        low, high = Fraction(ceil(low)), Fraction(floor(high))
    return _at_least(low, dtype), 0.0 - _at_least(-high, dtype)  # 0 has no sign


def _at_least(bound: Fraction, dtype: type[np.floating]) -> float:
    """The least number of the format that is no less than the bound; infinity where there is none."""
    largest = float(np.finfo(dtype).max)
    if abs(bound) > largest:
        return inf if bound > 0 else -largest
    near = dtype(float(bound))
    return float(near if Fraction(float(near)) >= bound else np.nextafter(near, dtype(inf))) + 0.0


def nearest(values: np.ndarray, intervals: list[Interval]) -> np.ndarray:
    """For each value the nearest one that the intervals allow; of two as near, the lower one."""
    choices = np.stack([np.clip(values, *interval) for interval in intervals])
    return np.take_along_axis(choices, np.abs(choices - values).argmin(axis=0)[None], axis=0)[0]
