"""Sums that do not round.

A float with a b-bit significand holds every multiple of 2^e up to 2^(b + e). So a sum of products
whose terms are multiples of 2^e, and whose absolute values add up to at most 2^(b + e), is exact
in every order of summation, with or without fused multiply-adds (exact-arithmetic E11).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.certificates.certificate import Refused

FLOAT32, FLOAT64 = 24, 53
LEAST = -126  # below stand subnormal float32 numbers, which a device may take for 0
_NONE = 2**20  # exponent of 0, a multiple of everything


def exponent(x: np.ndarray) -> np.ndarray:
    """The largest e for which each number is a multiple of 2^e; a huge one for 0."""
    mantissa, power = np.frexp(np.abs(x))
    whole = np.ldexp(mantissa, FLOAT64).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, _NONE, power - FLOAT64 + lowest)


@dataclass(frozen=True, eq=False)
class Lattice:
    """Numbers known by their bounds: |x_i| ≤ bound_i, x_i a multiple of 2^exponent_i."""

    bound: np.ndarray
    exponent: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Lattice:
        """What holds for every row of numbers: (n, width) → width numbers."""
        return cls(np.abs(rows).max(axis=0, initial=0), exponent(rows).min(axis=0, initial=_NONE))

    def times(self, other: Lattice) -> Lattice:
        """Elementwise products."""
        return Lattice(self.bound * other.bound, self.exponent + other.exponent)

    def plus(self, other: Lattice) -> Lattice:
        """Elementwise sums."""
        return Lattice(self.bound + other.bound, np.minimum(self.exponent, other.exponent))

    def through(self, matrix: np.ndarray) -> Lattice:
        """matrix · x, for a dense (m, width) matrix."""
        used = (matrix != 0) & (self.bound > 0)
        steps = np.where(used, exponent(matrix) + self.exponent, _NONE)
        return Lattice(np.abs(matrix) @ self.bound, steps.min(axis=1, initial=_NONE))

    def exact(self, what: str, bits: int = FLOAT32) -> Lattice:
        """This lattice, after checking that a float with so many bits holds it."""
        live = self.bound != 0
        steps = np.zeros(self.bound.shape)
        steps[live] = np.ldexp(self.bound[live], -self.exponent[live])
        if (self.exponent[live] < LEAST).any():
            raise Refused(f"{what} counts in units of 2^{self.exponent[live].min()}, which a float flushes to 0")
        if not (steps <= 2.0**bits).all():
            at = np.unravel_index(int(steps.argmax()), steps.shape)
            place = ", ".join(map(str, at))
            raise Refused(
                f"{what} [{place}] can reach {steps[at]:.4g} lattice steps, and sums of {bits}-bit floats are "
                f"exact up to 2^{bits} only"
            )
        return self


def product(matrix: np.ndarray, rows: np.ndarray, what: str, bits: int = FLOAT32) -> np.ndarray:
    """rows · matrixᵀ, (n, width) and (m, width) → (n, m), refused if a float with so many bits might round it."""
    Lattice.of(rows).through(matrix).exact(what, bits)
    return rows @ matrix.T
