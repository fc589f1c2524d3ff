"""What flags leave of other values: bent sums that they switch, and factors that they multiply (lemmas of two values
and of what paths leave).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

from verify.checker.values.bent import applied, product, relu
from verify.checker.values.bounds import along, bounds, bounds_where, values_of
from verify.checker.values.tables import Ramp
from verify.checker.values.values import (
    ZERO,
    Component,
    Key,
    Root,
    Value,
    World,
    combine,
    constant,
    divided,
    normal,
    of_root,
)
from verify.checker.values.windows import is_window

ONE = Fraction(1)
_MOST_CASES = 16


def switched(world: World, part: Value, others: Value, ramp: Ramp, paths: bool) -> Value | None:
    """φ(u + v) with a part v of few values, at one of which φ(u + v) does not depend on the others, u: products.

    paths: whether u counts at the edges only where v can have that value, and a window v may have several values.
    """
    values = values_of(world, part)
    if values is None or not 2 <= len(values) <= (_MOST_CASES if paths and is_window(world, part) else 2):
        return None
    levels: dict[Fraction, Fraction] = {}
    for v in values:
        lo, hi = (end + v for end in (bounds_where(world, others, part, v) if paths else bounds(world, others)))
        found = {y for x, y in zip(ramp.xs[1:-1], ramp.ys[1:-1], strict=True) if lo < x < hi}
        found |= {ramp.at(lo), ramp.at(hi)}
        levels |= {v: found.pop()} if len(found) == 1 else {}
    if not levels:
        return None
    off = next(iter(levels))
    terms = []
    for v in values:
        bent = applied(world, ramp, combine([(ONE, others)], v)) if v not in levels else constant(levels[v])
        if v != off:
            terms.append((ONE, product(world, combine([(ONE, bent)], -levels[off]), _is(world, part, values, v, off))))
    return combine(terms, levels[off])


def _is(world: World, value: Value, values: tuple[Fraction, ...], v: Fraction, off: Fraction) -> Value:
    """[the value is v], v one of its values; off: another one."""
    if len(values) == 2:
        return divided(combine([(ONE, value)], -off), v - off)
    unit = Fraction(2) ** value.unit
    breakpoints = ((ONE, unit), (Fraction(-2), ZERO), (ONE, -unit))
    return combine([(w / unit, relu(world, combine([(ONE, value)], at - v))) for w, at in breakpoints])


def behind_one_flag(world: World, shape: Value) -> Iterator[tuple[Value, Value]]:
    """(v, the rest of the shape) with v all that one flag is a factor of, as one product with it."""
    for place, component in shape.ramps.items():
        own = Value(ZERO, {place: component})
        weight, flag = own.normalised
        if values_of(world, flag) != (Fraction(0), ONE):
            continue
        held, factor = [(ONE, own)], [(weight, constant(1))]
        for (number, lag), ramp in shape.ramps.items():
            root = world.roots[number]
            left = _beside(flag, root) if ramp.linear and not lag else None
            if left is not None:
                held.append((ramp.slopes[0], of_root(root, ONE)))
                factor.append((ramp.slopes[0], left))
        if len(held) > 1:
            yield product(world, combine(factor), flag), combine([(ONE, shape), *((-w, v) for w, v in held)])


def _beside(flag: Value, root: Root) -> Value | None:
    """What the root is the product of with the flag."""
    if root.kind != "product":
        return None
    scale, a, b = root.parts
    return next((combine([(scale, y)]) for x, y in ((a, b), (b, a)) if x.key == flag.key), None)


def straightened(world: World, a: Value, b: Value) -> tuple[Value, Value]:
    """Two factors with the same product: functions of integers go straight on from where these can be while the other
    factor, a flag, is not 0.
    """
    a = _straight_behind(world, a, b)
    return a, _straight_behind(world, b, a)


def _straight_behind(world: World, value: Value, flag: Value) -> Value:
    """The value, changed only where the flag, of roots of two values, is 0: at edges where it cannot be else
    (edges).
    """
    by = along(world, flag)
    if any(_wide(world.roots[number]) for number, _ in flag.ramps):
        return value
    live = by.any(axis=0)
    terms: dict[Key, Component] = dict(value.terms)
    for (number, lag), ramp in value.ramps.items():
        root = world.roots[number]
        if live.any() and not lag and _wide(root):
            lo, hi = floor(root.along[0][live].min()), ceil(root.along[1][live].max())
            terms[number, lag] = ramp.straight(max(lo, root.lo), min(hi, root.hi))
    return normal(terms, value.const)


def _wide(root: Root) -> bool:
    return root.hi - root.lo > 1
