"""Decisions about real numbers: continuous, hence with an error that can be bounded.

A comparison of real numbers jumps, and no block with an error gets a jump right everywhere (Lemma 5 of paper B, stated
for all a and b, fails near a = b). So each word here has a *gap* and is linear within it; elsewhere it is the decision,
and the module gives it within `Compiled.error_bound`. All are made of rectifiers: |relu(x) − silu(S·x)/S| ≤ 0.2785/S.
The ramps end at 1 − relu(1 − relu(u)), which is 1 to the last bit wherever u ≥ 1 + 104/S: past the gap nothing is left
to round.
"""

from __future__ import annotations

from fractions import Fraction

from compiler.language.arguments import Number, number
from compiler.language.stream import Stream, both, given_stream


def exceeds(a: Stream | Number, b: Stream | Number, gap: Number) -> Stream:
    """[a > b] wherever a ≤ b or a − b ≥ gap: 0 where a ≤ b, 1 where a ≥ b + g, linear between. Two blocks.

    gap: above 0; g is the largest power of two that is at most the gap, for weights are dyadic.
    """
    a, b = both(a, b)
    return _up_to_one(((a - b) / _power_within(gap)).relu())


def differs(a: Stream | Number, b: Stream | Number, gap: Number) -> Stream:
    """[a ≠ b] wherever a = b or |a − b| ≥ gap: 0 where a = b, 1 where |a − b| ≥ g, linear between. Two blocks.

    gap: above 0; g is the largest power of two that is at most the gap, for weights are dyadic.
    """
    a, b = both(a, b)
    return _up_to_one(abs((a - b) / _power_within(gap)))


def choose(t: Stream, yes: Stream | Number, no: Stream | Number, gap: Number) -> Stream:
    """`yes` where t ≥ g, `no` where t ≤ −g, between them in proportion (paper B, Lemma 4). Three blocks.

    gap: above 0; g is the largest power of two that is at most the gap, for weights are dyadic.
    """
    given_stream(t, "the number that choose looks at")
    yes, no = both(yes, no)
    width = _power_within(gap)
    return no + _up_to_one(((t + width) / (2 * width)).relu()) * (yes - no)


def _up_to_one(x: Stream) -> Stream:
    """min(x, 1) of a rectified number, such that 1 is exact."""
    return 1 - (1 - x).relu()


def _power_within(gap: Number) -> Fraction:
    """The largest power of two that is at most the gap; ValueError for a gap that is not above 0."""
    exact = Fraction(number(gap, "gap"))
    if exact <= 0:
        raise ValueError(f"gap is {gap}, and comparisons of real numbers need one above 0, such as 1/1024")
    power = Fraction(2) ** (exact.numerator.bit_length() - exact.denominator.bit_length())
    return power if power <= exact else power / 2
