"""A domain, cut to what a stream's type promises of itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.types import Bool, Int, OneHot, Type
from compiler.lattice.domain import Domain, down, summed, times, up

_RANGE = float(ops.RANGE)


def narrowing(type: Type) -> tuple:
    """All that a type says of bounds; () where that is nothing."""
    if isinstance(type, (Bool, OneHot)):
        return (type.__class__.__name__,)
    if isinstance(type, Int) and (type.lo is not None or type.hi is not None):
        return type.lo, type.hi
    return ()


def cut_to_type(domain: Domain, stream: Stream, max_length: int) -> Domain:
    """What the operation of a stream gives, within its type; CompileError where no float sums such numbers."""
    type, low, high, l1 = stream.type, domain.low, domain.high, domain.l1
    if isinstance(type, (Bool, OneHot)):
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    if isinstance(type, OneHot):
        l1 = min(l1, Fraction(1))
    elif isinstance(type, Int):
        low = low if type.lo is None else np.maximum(low, down(Fraction(min(type.lo, 0))))
        high = high if type.hi is None else np.minimum(high, up(Fraction(max(type.hi, 0))))
    if not domain.units.all():
        low, high = _real_ends(low, high, domain.units)
    bounds = np.maximum(np.abs(low), np.abs(high))
    units = np.where((bounds == 0) & (domain.units > 0), np.inf, domain.units)
    if not bounds.max(initial=0) <= _RANGE:
        raise CompileError([(stream, "its values could exceed 2^256, and no float sums such numbers exactly")])
    if (units[units > 0] < 1 / _RANGE).any():
        raise CompileError([(stream, "its values are finer than 2^−256, and no float sums such numbers exactly")])
    totals, l1 = np.minimum(domain.totals, times(bounds, Fraction(max_length))), min(l1, summed(bounds))
    if (real := (units == 0) & (bounds > 0)).any():
        totals, l1 = np.where(real, np.maximum(totals, 1 / _RANGE), totals), max(l1, 1 / ops.RANGE)
    return Domain(units, low, high, l1, totals)


def _real_ends(low: np.ndarray, high: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ends of real lanes that are nearer to 0 than 2^−256, outward to that or to 0: no product of three underflows."""
    least, real = 1 / _RANGE, units == 0
    low = np.where(real & (np.abs(low) < least), np.where(low < 0, -least, 0.0), low)
    return low, np.where(real & (np.abs(high) < least), np.where(high > 0, least, 0.0), high)
