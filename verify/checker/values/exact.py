"""Arithmetic of float64 arrays that hold exact numbers: what might round is refused."""

from __future__ import annotations

import numpy as np

from verify.checker.formats import Rejected, array_exponent


def held(result: np.ndarray, size: np.ndarray, unit: int) -> np.ndarray:
    """The result, if numbers of this size are exact in units of 2^unit."""
    if not size.max(initial=0.0) < 2.0 ** (52 + unit):
        raise Rejected("a proof needs more than the 53 bits that the checker carries")
    return result


def times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b."""
    return held(a @ b, np.abs(a) @ np.abs(b), (array_exponent(a) or 0) + (array_exponent(b) or 0))


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise."""
    return held(a * b, np.abs(a * b), (array_exponent(a) or 0) + (array_exponent(b) or 0))


def times_number(a: np.ndarray, x: float) -> np.ndarray:
    return product(a, np.array(float(x)))


def plus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    units = [e for e in (array_exponent(a), array_exponent(b)) if e is not None]
    size = np.array(np.abs(a).max(initial=0.0) + np.abs(b).max(initial=0.0))
    return held(a + b, size, min(units, default=0))
