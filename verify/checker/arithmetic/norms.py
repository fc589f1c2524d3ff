"""RMSNorm as the identity (lemma of norms): constants so large that everything else vanishes beside them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from verify.checker.arithmetic.sums import check_range, exact_sum
from verify.checker.formats import Rejected, exponent, is_power
from verify.checker.values.bounds import bounds, largest, tight
from verify.checker.values.values import Value, World

_MOST_BALLAST = 4


def normed(world: World, lanes: Sequence[Value], weight: np.ndarray, epsilon: float, what: str) -> list[Value]:
    """weight · x / sqrt(mean(x²) + ε) of every lane, proved to be weight · x / K exactly for a power of two K."""
    level = level_of(world, lanes, epsilon, what)
    result = []
    for i, (lane, w) in enumerate(zip(lanes, weight.tolist(), strict=True)):
        if not lane.zero:
            place = f"{what}, lane {i}"
            check_range(world, largest(world, lane) / level, lane.unit - exponent(level), place)
            result.append(exact_sum(world, [(Fraction(w) / level, lane)], place))
        else:
            result.append(lane)
    return result


def level_of(world: World, lanes: Sequence[Value], epsilon: float, what: str) -> Fraction:
    """K with mean(x²) = K² as far as the format can see."""
    width = len(lanes)
    if width & (width - 1):
        raise Rejected(f"{what}: its width is {width}, no power of two, so that a mean rounds")
    fixed = sorted((abs(lane.const) for lane in lanes if lane.constant and lane.const), reverse=True)
    others = [lane for lane in lanes if not lane.constant]
    for bound in (bounds, tight):
        sizes = [max(map(abs, bound(world, lane))) for lane in others]
        everything = sum((x**2 for x in (*fixed, *sizes)), Fraction(0))
        level = _ballast(world, fixed, everything, width, epsilon)
        if level is not None:
            if everything * _rounded_up(width) > Fraction(2) ** 127:
                raise Rejected(f"{what}: its sum of squares can overflow")
            return level
    raise Rejected(
        f"{what}: no constants (up to {float(max(fixed, default=0)):.4g}) absorb the squares of the other lanes "
        f"(up to {float(max(sizes, default=0)):.4g} in one)"
    )


def _ballast(world: World, fixed: list[Fraction], everything: Fraction, width: int, epsilon: float) -> Fraction | None:
    """The K of the first constants whose squares are K² · width and absorb the rest of `everything`."""
    for count in range(1, min(_MOST_BALLAST, len(fixed)) + 1):
        squares = [x**2 for x in fixed[:count]]
        total = sum(squares, Fraction(0))
        if is_power(total / width):
            level = Fraction(2) ** (exponent(total / width) // 2)
            if level**2 * width == total and _absorbed(world, squares, everything - total, width, level, epsilon):
                return level
    return None


def _absorbed(
    world: World, ballast: list[Fraction], rest: Fraction, width: int, level: Fraction, epsilon: float
) -> bool:
    """Whether rounding hides `rest` and ε: in float32 beside every partial sum of the ballast, else in the quotient."""
    if any(not is_power(b) for b in ballast):
        return False
    slack = _rounded_up(width)
    if world.format.name == "float32":
        partial = [sum(c, Fraction(0)) for n in range(1, len(ballast) + 1) for c in combinations(ballast, n)]
        hidden = all(rest * slack < half_step(p) for p in partial)
        return hidden and Fraction(epsilon) * (1 + Fraction(1, 1 << 20)) < half_step(level**2)
    relative = (rest * slack / width + Fraction(epsilon)) / level**2 / 2 + Fraction(width + 8, 1 << 24)
    return relative < Fraction(1, 2 << world.format.significand)


def _rounded_up(width: int) -> Fraction:
    """By how much more, at most, a float32 sum of so many squares comes out, in any order: (1 + 2^-24)^(width + 1)."""
    return 1 + Fraction(width, 1 << 20)


def half_step(x: Fraction) -> Fraction:
    """Half the distance from a float32 number to the next one."""
    top = Fraction(2) ** ((x.numerator // x.denominator).bit_length() - 1) if x >= 1 else Fraction(2) ** -126
    return top / (1 << 24)
