"""What the kernel takes as given of float formats and of exp, silu, softplus (docs/proofs.md, what it rests on)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


class Unproved(Exception):
    """The statement could not be proved: one sentence with the place and the number at fault."""


ON, OFF = 20, -104  # silu(x) = softplus(x) = x above ON; silu(x) = -0 and softplus(x) = 0 at OFF and below
KEPT, ERASED = Fraction(1, 1 << 26), 104  # exp(-x) is 1 for 0 <= x <= KEPT, and 0 for x >= ERASED
NO_DECAY, MOST_A_LOG = -104.0, 88.0  # exp(A_log) is 0 up to the one, and finite up to the other
MOST_STEPS = 1 << 40  # of 0 or 1, that a scan may count beyond float32


@dataclass(frozen=True)
class Format:
    """Every multiple of 2^e of at most `units` such units is a number of the format, within two limits (lemma of sums;
    Formats.ieee_keeps). least: the exponent of the smallest unit that no backend flushes to 0. largest: no overflow.
    excess: of a count that outgrows the format, so much more than the truth is held at most, as a part of the truth.
    """

    name: str
    units: int
    least: int
    largest: int
    excess: Fraction

    def in_range(self, reach: Fraction, unit: int, place: str) -> None:
        """Multiples of 2^unit up to `reach` neither overflow nor underflow."""
        if reach > self.largest:
            raise Unproved(f"{place} can reach {float(reach):.3g}, and {self.name} ends at {float(self.largest):.3g}")
        if reach and unit < self.least:
            raise Unproved(f"{place} needs multiples of 2^{unit}, and {self.name} keeps those of 2^{self.least}")

    def exact(self, reach: Fraction, unit: int, place: str) -> None:
        """Multiples of 2^unit up to `reach` are floats (Sums.sums_in_any_order)."""
        if reach > self.units * Fraction(2) ** unit:
            told = f"{float(reach):.6g} in units of 2^{unit}, beyond what {self.name} adds exactly"
            raise Unproved(f"{place} can reach {told}")
        self.in_range(reach, unit, place)


FLOAT32 = Format("float32", 1 << 24, -126, 1 << 127, Fraction(17, 15))  # Counts.counts_at_most
_BOTH = Fraction(7, 6)  # where each part is rounded to float32, and then to the format (Counts.narrow_counts_at_most)
NARROW = Format("bfloat16", 1 << 8, -126, 1 << 127, _BOTH), Format("float16", 1 << 11, -24, 65504, _BOTH)
FORMATS = {form.name: form for form in (FLOAT32, *NARROW)}


def exponent(x: Fraction) -> int:
    """The largest e with x a multiple of 2^e, for a dyadic x other than 0."""
    if not x or x.denominator & (x.denominator - 1):
        raise Unproved(f"{x} is no multiple of a power of two")
    return (x.numerator & -x.numerator).bit_length() - x.denominator.bit_length()


def is_power(x: Fraction) -> bool:
    """Whether |x| is a power of two."""
    return x != 0 and abs(x) == Fraction(2) ** exponent(x)


def whole_number(x: Fraction) -> int:
    if x.denominator != 1:
        raise Unproved(f"{x} stands where a whole number is needed")
    return int(x)


def dyadic(x: float) -> Fraction:
    return Fraction(float(x))


def decay(a_log: float) -> tuple[Fraction, Fraction]:
    """Bounds on |A| = exp(A_log) as float32 computes it. float64 is right to 2^-52, float32 to a few of its units."""
    if not a_log <= MOST_A_LOG:
        raise Unproved(f"A_log is {a_log:g}, and exp of more than {MOST_A_LOG:g} overflows")
    if a_log <= NO_DECAY or a_log == 0:
        return Fraction(a_log == 0), Fraction(a_log == 0)
    found, slack = Fraction(math.exp(a_log)), Fraction(1, 1 << 16)
    if a_log <= -87:  # about there float32 ends, or has few digits left
        return Fraction(0), found + Fraction(1, 1 << 126)
    return found * (1 - slack), found * (1 + slack)


def exponents(values: np.ndarray) -> np.ndarray:
    """`exponent` of each float64 that is not 0."""
    mantissa, power = np.frexp(values)
    digits = (mantissa * 2.0**53).astype(np.int64)
    return np.frexp((digits & -digits).astype(np.float64))[1] - 1 + power - 53
