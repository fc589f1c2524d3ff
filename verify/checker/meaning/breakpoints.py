"""Functions of integers: a ramp taken apart, one for each breakpoint, and factors of one integer joined to one."""

from __future__ import annotations

from fractions import Fraction

from verify.checker.values.bent import product
from verify.checker.values.tables import Ramp
from verify.checker.values.values import ZERO, Root, Value, World, level_of

_MOST_BREAKPOINTS = 64


def taken_apart(
    world: World, root: Root, lag: int, ramp: Ramp, slope: Fraction, backward: bool, whole: bool
) -> tuple[Value, list[Ramp]]:
    """(level, ramps) whose sum the ramp is: one linear and 0 where its root is, the others with one breakpoint each, so
    that equal functions of a root fall into the same ones; all of them 0 before the start.

    slope: before the first breakpoint, seen from where the root is largest if `backward`.
    whole: all breakpoints in one ramp.
    """
    first = -1 if backward else 0
    base = ramp.ys[first] - slope * ramp.xs[first]
    breakpoints = list(zip(ramp.xs[1:], ramp.slopes, ramp.slopes[1:], strict=False))
    level = level_of(world, base, lag, ramp.start)
    if whole or len(breakpoints) > _MOST_BREAKPOINTS:
        found = Ramp(ramp.xs, [y - base for y in ramp.ys], (ZERO,) * lag)
        return level, [] if found.zero else [found]
    ends = [root.lo, root.hi]
    ramps = [Ramp(ends, [slope * x for x in ends])] if slope else []
    for at, before, after in breakpoints:
        xs = sorted({root.lo, at, root.hi})
        away = [at - x if first else x - at for x in xs]
        ramps.append(Ramp(xs, [(after - before) * max(d, 0) for d in away]))
    return level, ramps


def joined_factors(world: World, factors: tuple[Value, ...]) -> tuple[Value, ...]:
    """The factors, those that are functions of the same integer as one."""
    kept: list[Value] = []
    for f in factors:
        same = next((i for i, k in enumerate(kept) if len(k.ramps) == 1 and k.terms.keys() == f.terms.keys()), None)
        both = None if same is None else product(world, kept[same], f)
        if same is not None and both is not None and both.terms.keys() <= f.terms.keys():
            kept[same] = both
        else:
            kept.append(f)
    return tuple(kept)
