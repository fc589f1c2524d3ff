"""Float formats and the few facts about them that the lemmas use; exact numbers throughout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np


class Rejected(Exception):
    """The statement could not be proved: one sentence with the place and the number at fault.

    about, world: the values that an operation of the weights reads, and the world they are of, where these are known.
    placed: whether the stream of the circuit at fault is named.
    """

    about: tuple = ()
    world: Any = None
    placed: bool = False

    def at(self, stream: str) -> Rejected:
        """The same, of this stream; one that was named before, nearer to the fault, stays."""
        if not self.placed:
            self.args, self.placed = (f"{stream}: {self}",), True
        return self

    def of(self, world: Any, *values: Any) -> Rejected:
        """The same, of these values; what was said before, nearer to the fault, stays."""
        if self.world is None:
            self.about, self.world = values, world
        return self


@dataclass(frozen=True)
class Format:
    """significand p: every multiple of 2^e of at most 2^p units is a float, if it lies within the two limits.

    least: the exponent of the smallest unit that no backend flushes to 0. largest: a bound below every overflow.
    """

    name: str
    significand: int
    least: int
    largest: Fraction

    @property
    def units(self) -> int:
        return 1 << self.significand


def at_least(x: Fraction) -> str:
    """A number that is at most x, in six digits."""
    down = Context(prec=6, rounding=ROUND_FLOOR)
    return f"{float(down.divide(Decimal(x.numerator), Decimal(x.denominator))):g}"


FORMATS = {
    "float32": Format("float32", 24, -126, Fraction(2) ** 127),
    "bfloat16": Format("bfloat16", 8, -126, Fraction(2) ** 127),
    "float16": Format("float16", 11, -24, Fraction(65504)),
}

EXACT = Format("exact arithmetic", 4096, -(1 << 16), Fraction(2) ** 8192)  # for the circuit as written

SMALL = 9  # numbers of an array that Python goes over in less time than NumPy starts
ON = Fraction(20)  # silu(x) = x and softplus(x) = x for x above this (E2, E4)
OFF = Fraction(-104)  # silu(x) = -0 and softplus(x) = 0 for x at or below this
KEPT = Fraction(1, 1 << 26)  # exp(-x) = 1 for 0 <= x <= this (E9)
ERASED = Fraction(104)  # exp(-x) = 0 for x >= this
NO_DECAY = -104.0  # exp(A_log) underflows to 0 at or below this, so A = -0
UNDERFLOWS = -87.0  # exp(A_log) is a normal float32 above this
MOST_A_LOG = 88.0  # exp(A_log) is finite up to here


def exponent(x: Fraction | int | float) -> int:
    """The largest e with x a multiple of 2^e, for a dyadic x other than 0; ValueError for other fractions."""
    x = x if isinstance(x, Fraction) else Fraction(x)  # which would copy it
    if not x or x.denominator & (x.denominator - 1):
        raise ValueError(f"{x} has no exponent")
    if x.denominator > 1:
        return 1 - x.denominator.bit_length()
    return (x.numerator & -x.numerator).bit_length() - 1


def is_power(x: Fraction) -> bool:
    """Whether |x| is a power of two."""
    return x != 0 and Fraction(2) ** exponent(x) == abs(x)


def array_exponent(values: np.ndarray) -> int | None:
    """The largest e with every value of the array a multiple of 2^e; None if all are 0."""
    values = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(values) <= SMALL and all(map(math.isfinite, numbers := values.tolist())):
        ratios = [x.as_integer_ratio() for x in numbers if x]
        return min(((top & -top).bit_length() - bottom.bit_length() for top, bottom in ratios), default=None)
    if np.abs(values).max(initial=0.0) < 2.0**53:
        whole = values.astype(np.int64)
        if (whole == values).all():
            bits = int(np.bitwise_or.reduce(whole))
            return (bits & -bits).bit_length() - 1 if bits else None
    values = values[values != 0]
    if not values.size:
        return None
    mantissa, power = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    low = (whole & -whole).astype(np.float64)
    return int((np.frexp(low)[1] - 1 + power - 53).min())


def decay(a_log: float) -> tuple[Fraction, Fraction]:
    """Bounds below and above on |A| = exp(A_log) as float32 computes it; (0, 0) where it is exactly 0, (1, 1) at 0.

    Double precision is right to 2^-52 and float32 to 2^-17; 2^-16 covers both (Activations.bounds_on_the_rate). Where
    float32 underflows it has few digits left, or none.
    """
    if not a_log <= MOST_A_LOG:
        raise Rejected(f"A_log is {a_log:g}, and exp of more than {MOST_A_LOG:g} overflows")
    if a_log <= NO_DECAY:
        return Fraction(0), Fraction(0)
    if a_log == 0:
        return Fraction(1), Fraction(1)
    a, slack = Fraction(math.exp(a_log)), Fraction(1, 1 << 16)
    if a_log <= UNDERFLOWS:
        return Fraction(0), a + Fraction(1, 1 << 126)
    return a * (1 - slack), a * (1 + slack)
