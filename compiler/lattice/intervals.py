"""Intervals of exact numbers: what a stream can hold at one step of a path, lane by lane."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf

Interval = tuple  # (least, largest): int, Fraction or an infinity
Value = tuple  # an interval for each lane


def exact(value: float) -> int | Fraction:
    return int(value) if float(value).is_integer() else Fraction(float(value))


def hull(a: Interval, b: Interval) -> Interval:
    """The least interval that holds both."""
    return min(a[0], b[0]), max(a[1], b[1])


def grown(sums: Value, added: Value, counted: int) -> Value:
    """Sums of numbers ≥ 0, of which only "`counted` or more" is kept beyond `counted`."""
    totals = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(sums, added, strict=True)]
    return tuple((min(floor(lo), counted), inf if hi > counted else hi) for lo, hi in totals)
