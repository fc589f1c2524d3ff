"""Filters of cosines and sines: h_j = c1·cos(2π·a1·j/(U+1)) + c2·sin(2π·a2·j/(U+1)), j = 0 … U.

This is how we restore the filter of paper D (Section 2, Appendix A), whose formula is lost in the text that we read.

A running sum is c1 = 1, a1 = 0. A delay of k over P = U + 1 places is a discrete Fourier transform: with w_0 = 1/P,
w_{P/2} = 1/P (P even) and w_a = 2/P elsewhere,

    [j = k] = Σ_a w_a cos(2πa(j − k)/P) = Σ_a w_a [cos(2πak/P) cos(2πaj/P) + sin(2πak/P) sin(2πaj/P)],

so ⌊P/2⌋ + 1 channels do one delay, and P channels (the sine of a = 0 and of a = P/2 is 0) do all delays of a lane.
Over U = 1 one channel does: sin(πj/2) = [j = 1]. Far fewer never do: the Hankel matrix of a delay of k has rank k.

Numbers are kept as a weight times the cosine of a fraction of a turn, so that what they add up to can be shown exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import cos, tau

ZERO, ONE, QUARTER = Fraction(0), Fraction(1), Fraction(1, 4)


@dataclass(frozen=True)
class Wave:
    """weight · cos(2π·turn)."""

    weight: Fraction = ZERO
    turn: Fraction = ZERO

    def __float__(self) -> float:
        return float(self.weight) * cosine(self.turn)


def cosine(turn: Fraction) -> float:
    """cos(2π·turn): the rational values 0, ±1/2 and ±1 to the last bit, and symmetric."""
    turn %= 1
    if turn > Fraction(1, 2):
        turn = 1 - turn
    if turn > QUARTER:
        return -cosine(Fraction(1, 2) - turn)
    known = {ZERO: 1.0, QUARTER: 0.0, Fraction(1, 6): 0.5}
    return known[turn] if turn in known else cos(tau * float(turn))


def sine(turn: Fraction) -> float:
    """sin(2π·turn)."""
    return cosine(turn - QUARTER)


@dataclass(frozen=True)
class Filter:
    """h_j = c1·cos(2π·a1·j/P) + c2·sin(2π·a2·j/P) over P = U + 1 places."""

    c1: Wave = Wave()
    a1: Fraction = ZERO
    c2: Wave = Wave()
    a2: Fraction = ZERO

    def at(self, j: int, places: int) -> float:
        """h_j."""
        return float(self.c1) * cosine(self.a1 * j / places) + float(self.c2) * sine(self.a2 * j / places)


NOTHING = Filter()
SUM = Filter(c1=Wave(ONE))


def delay_of_one() -> Filter:
    """[j = 1] over two places."""
    return Filter(c2=Wave(ONE), a2=Fraction(1, 2))


def weight(a: int, places: int) -> Fraction:
    """w_a."""
    return Fraction(1 if a == 0 or 2 * a == places else 2, places)


def delay(k: int, places: int) -> list[Filter]:
    """⌊P/2⌋ + 1 filters that add up to [j = k]: w_a·cos(2πa(j − k)/P)."""
    return [
        Filter(Wave(weight(a, places), Fraction(a * k, places)), Fraction(a), _sine(a, k, places), Fraction(a))
        for a in range(places // 2 + 1)
    ]


def all_delays(places: int) -> list[Filter]:
    """P filters whose combinations are all delays over P places: `delay_weights` says which."""
    cosines = [Filter(c1=Wave(ONE), a1=Fraction(a)) for a in range(places // 2 + 1)]
    sines = [Filter(c2=Wave(ONE), a2=Fraction(a)) for a in range(1, (places + 1) // 2)]
    return cosines + sines


def delay_weights(k: int, places: int) -> list[Wave]:
    """What each of `all_delays` weighs in [j = k]."""
    cosines = [Wave(weight(a, places), Fraction(a * k, places)) for a in range(places // 2 + 1)]
    return cosines + [_sine(a, k, places) for a in range(1, (places + 1) // 2)]


def _sine(a: int, k: int, places: int) -> Wave:
    """w_a·sin(2πak/P)."""
    return Wave(weight(a, places), Fraction(a * k, places) - QUARTER)
