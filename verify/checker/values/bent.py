"""Rectified values and products: the operations on values that make new roots."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.values.bounds import along, bounds, corners, rewritten, values_of
from verify.checker.values.exact import in_units, number, within
from verify.checker.values.latches import joined
from verify.checker.values.tables import MOST_VALUES, Ramp, Table
from verify.checker.values.values import (
    TOKEN,
    ZERO,
    Component,
    Key,
    Root,
    Value,
    World,
    combine,
    constant,
    divided,
    divisor_of,
    normal,
    of_root,
    scaled,
)


def single(world: World, value: Value) -> tuple[Key, Component]:
    """The value as one component, its constant included; sums of several get a root of their own.

    A form is divided by the greatest common divisor of its numbers and given a sign, so that forms that differ by
    a factor and a constant share one root. What is a count (lemma of counts since) is a function of the count.
    """
    value = settled(world, min((*rewritten(world, value), joined(world, value), value), key=lambda v: len(v.terms)))
    if len(value.terms) == 1:
        ((key, component),) = value.terms.items()
        return key, component.affine(Fraction(1), value.const)
    if value.ramps and (back := min(lag for _, lag in value.terms)):
        (seen, lag), component = single(world, _seen_from(value, back))
        start = [value.const + sum(c.start[len(c.start) - back + j] for c in value.terms.values()) for j in range(back)]
        return (seen, lag + back), component.starting((*component.start, *start))
    if not value.terms:
        return (TOKEN, 0), Table(np.full(world.language.tokens, number(value.const)))
    bare = Value(ZERO, value.terms)
    divisor = divisor_of(bare)
    shape = divided(bare, divisor)
    root = world.met("form", (shape,)) or _form(world, shape)
    return (root.id, 0), Ramp(*_line(root, divisor, value.const))


def settled(world: World, value: Value) -> Value:
    """The same value, with one way to say what its components are before the sequence, where only their sum matters.
    Functions of integers, the widest first, take of it the nearest number that stands at a breakpoint of theirs; the
    rest is a function of the position (lemma of the start).
    """
    if len(value.terms) == 1 or not any(any(c.start) for c in value.terms.values()):
        return value
    last = max(lag for _, lag in value.terms)
    starts = [(ZERO,) * (last - lag) + c.start for (_, lag), c in value.terms.items()]
    left = [sum(seen, ZERO) for seen in zip(*starts, strict=True)]  # at the positions last … 1
    terms: dict[Key, Component] = {}
    for (root, lag), ramp in sorted(value.ramps.items(), key=_widest_first):
        seen = left[last - lag :]
        start = [_nearest(ramp.ys, x) for x in seen]
        left[last - lag :] = [x - y for x, y in zip(seen, start, strict=True)]
        terms[root, lag] = ramp.starting(tuple(start))
    for lag, table in value.tables.items():
        terms[TOKEN, lag] = table.starting((ZERO,) * lag)
    if any(left):
        rest = Value(ZERO, {(TOKEN, last): Table(np.zeros(world.language.tokens), tuple(left))})
        return combine([(Fraction(1), Value(value.const, terms)), (Fraction(1), rest)])
    return normal(terms, value.const)


def _widest_first(item: tuple[Key, Ramp]) -> tuple[Fraction, Key]:
    key, ramp = item
    return ramp.inside[0] - ramp.inside[1], key


def _nearest(numbers: tuple[Fraction, ...], x: Fraction) -> Fraction:
    return min(numbers, key=lambda y: (abs(y - x), y))


def _seen_from(value: Value, back: int) -> Value:
    """What stands `back` positions earlier, of which all components of the value are functions."""
    earlier = {(r, lag - back): c.starting(c.start[: lag - back]) for (r, lag), c in value.terms.items()}
    return normal(earlier, value.const)


def _form(world: World, shape: Value) -> Root:
    low, high = bounds(world, shape)
    values = values_of(world, shape)
    facts = (int(low), int(high), None if values is None else tuple(int(v) for v in values))
    return world.root("form", facts, (shape,), along=along(world, shape))


def _line(root: Root, scale: Fraction, shift: Fraction) -> tuple[list[int], list[Fraction]]:
    ends = sorted({root.lo, root.hi})
    return ends, [scale * x + shift for x in ends]


def relu(world: World, value: Value, alone: tuple[Key, Component] | None = None) -> Value:
    """max(value, 0). alone: the value as one component, where that is known."""
    if value.constant:
        return constant(max(value.const, ZERO))
    if len(value.terms) == 1:  # a constant beside a function of a letter may be far larger than a float holds both
        (only,) = value.terms.values()
        if isinstance(only, Table) and (only.hi + value.const <= 0 or only.lo + value.const >= 0):
            return constant(0) if only.hi + value.const <= 0 else value
    key, component = alone or single(world, value)
    return normal({key: component.relu()}, ZERO)


def applied(world: World, ramp: Ramp, x: Value) -> Value:
    """ramp(x): its first line, and what each breakpoint adds."""
    slopes = ramp.slopes or [ZERO]
    breakpoints = [(b - a, at) for at, a, b in zip(ramp.xs[1:], slopes, slopes[1:], strict=False)]
    bent = [(change, relu(world, combine([(Fraction(1), x)], Fraction(-at)))) for change, at in breakpoints]
    return combine([(slopes[0], x), *bent], ramp.ys[0] - slopes[0] * ramp.xs[0])


def product(world: World, a: Value, b: Value) -> Value:
    """a · b: exactly one component where both are functions of one root, else a root of its own, linear in a."""
    if b.constant or a.constant:
        return scaled(a, b.const) if b.constant else scaled(b, a.const)
    if a.terms.keys() == b.terms.keys():
        (key, f), (other, g) = single(world, a), single(world, b)
        if isinstance(f, Table) and isinstance(g, Table):
            return normal({key: _table_product(f, g)}, ZERO)
        if key == other and isinstance(f, Ramp) and isinstance(g, Ramp) and f.xs[-1] - f.xs[0] < MOST_VALUES // 8:
            xs = range(f.xs[0], f.xs[-1] + 1)
            start = tuple(x * y for x, y in zip(f.start, g.start, strict=True))
            return normal({key: Ramp(xs, [f.at(x) * g.at(x) for x in xs], start)}, ZERO)
    scale, a = a.normalised
    unit = Fraction(2) ** (a.unit + b.unit)
    root = world.met("product", (unit**-1, a, b)) or _product_root(world, a, b, unit)
    return of_root(root, unit * scale)


def _product_root(world: World, a: Value, b: Value, unit: Fraction) -> Root:
    ends = [x * y / unit for x in bounds(world, a) for y in bounds(world, b)]
    sets = values_of(world, a), values_of(world, b)
    values = None
    if sets[0] is not None and sets[1] is not None and len(sets[0]) * len(sets[1]) <= MOST_VALUES:
        values = tuple(sorted({int(x * y / unit) for x in sets[0] for y in sets[1]}))
    facts = (int(min(ends)), int(max(ends)), values)
    paths = in_units(corners(along(world, a), along(world, b)), a.unit + b.unit)
    return world.root("product", facts, (unit**-1, a, b), along=paths)


def _table_product(f: Table, g: Table) -> Table:
    with np.errstate(over="ignore"):
        dense = f.dense() * g.dense()
    if not within(dense, f.unit + g.unit):
        raise Rejected("a product of functions of a token needs more than the 53 bits that the checker carries")
    return Table(dense, tuple(x * y for x, y in zip(f.start, g.start, strict=True)))
