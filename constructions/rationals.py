"""Rational numbers as users write them, read before anything large is formed of them."""

from __future__ import annotations

import re
from fractions import Fraction

LARGEST_BITS = 4_096  # of a numerator or denominator
_MOST_DIGITS = 2_000  # more than have as many bits
_WRITTEN = re.compile(r"[-+0-9_./eE\s]*", re.ASCII)  # Fraction reads the digits of other scripts as well
_EXPONENT = re.compile(r"[eE]([-+]?[0-9_]+)\s*$")


def rational(text: str) -> Fraction:
    """The number that a text such as 3, 0.25, 1e-3 or 1/3 stands for, exactly.

    OverflowError where numerator or denominator has more than 4,096 bits, found before a power of 10 is formed;
    ValueError for what is no number.
    """
    if not _WRITTEN.fullmatch(text):
        raise ValueError(f"{text!r:.60} is no rational number")
    exponent = _EXPONENT.search(text)
    digits = exponent[1].lstrip("+-").replace("_", "").lstrip("0") if exponent else ""
    if len(text) > _MOST_DIGITS or len(digits) > 4 or int(digits or 0) > LARGEST_BITS:
        raise OverflowError(_beyond(text))
    try:
        exact = Fraction(text)
    except ZeroDivisionError:
        raise ValueError(f"{text!r} divides by 0") from None
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > LARGEST_BITS:
        raise OverflowError(_beyond(text))
    return exact


def _beyond(text: str) -> str:
    short = text if len(text) <= 60 else text[:57] + "..."
    return f"{short!r} has more than {LARGEST_BITS} bits as a fraction; write smaller numbers."
