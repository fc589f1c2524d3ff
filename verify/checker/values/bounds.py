"""What a value can be: its least and largest number, at each edge of the input language too, or all its values."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from math import ceil, floor, lcm

import numpy as np

from verify.checker.values.exact import above, below, in_units, product_sides, sum_sides
from verify.checker.values.tables import MOST_VALUES, Ramp, Table
from verify.checker.values.values import (
    TOKEN,
    ZERO,
    Along,
    Component,
    Root,
    Value,
    World,
    combine,
    constant,
    kept,
    later,
    multiple,
    of_root,
    scaled,
    tighter,
)

_APART = "a running sum as those that it adds up"
_MOST_PIECES, _MOST_BREAKPOINTS = 4, 6  # that lemma of pieces looks at


@kept
def bounds(world: World, value: Value) -> tuple[Fraction, Fraction]:
    """(lo, hi) over all sequences and positions. Exclusive gates count once: see `_gated_bounds`."""
    found = [_bounds(world, v) for v in (value, *rewritten(world, value))]
    return max(lo for lo, _ in found), min(hi for _, hi in found)


def rewritten(world: World, value: Value) -> list[Value]:
    """The value with each c · (sum − latch of it) as what is counted since, and with each sum that is a form as it."""
    found = list(_folded(world, value))
    together = _summed_at_once(world, value) if world.together else None
    found += [] if together is None else [together]
    for (root, lag), ramp in value.ramps.items():
        total, zero = world.zeros.get((root, 0), ((0, 0), None))
        if zero is None:
            continue
        a, b = (v.slopes[0] if v and v.linear and v.slopes else ZERO for v in (value.ramps.get((total[0], lag)), ramp))
        per = -zero.ramps[root, 0].slopes[0]
        if a * b * per < 0:
            past = later(world, zero, lag)
            found.append(combine([(Fraction(1), value), (-min(a, -b / per, key=abs), past)]))
    return found


@kept
def _summed_at_once(world: World, value: Value) -> Value | None:
    """The value with its running sums as the running sum of all that they add (lemma of running sums), where that is
    bounded closer:
    what one adds another takes away. None where it is not.
    """
    places = [k for k, c in value.ramps.items() if not k[1] and c.linear and world.roots[k[0]].kind == "sum"]
    roots = [(world.roots[number], value.ramps[number, 0].slopes[0]) for number, _ in places]
    if len(roots) < 2 or any(root.exact is not None for root, _ in roots):
        return None
    scale, shape = upright(world, combine([(slope / root.parts[0], root.parts[1]) for root, slope in roots]))
    here = world.language.graph.added(in_units(along(world, shape), shape.unit))
    reach = sum((abs(slope) * (root.hi - root.lo) for root, slope in roots), ZERO)
    if (
        here is None
        or not scale
        or abs(scale) * Fraction(2) ** shape.unit * Fraction(here[1].max() - here[0].min()) >= reach
    ):
        return None
    unit = Fraction(2) ** shape.unit
    root = world.root("sum", (floor(here[0].min()), ceil(here[1].max()), None), (unit, shape), along=here)
    apart = combine([(slope / (scale * unit), of_root(old, Fraction(1))) for old, slope in roots])
    world.facts.setdefault((_APART, root.id), apart)
    return combine([(Fraction(1), value), (-scale * unit, apart), (scale * unit, of_root(root, Fraction(1)))])


def upright(world: World, value: Value) -> tuple[Fraction, Value]:
    """(scale, shape) with value = scale · shape: the same shape for proportional values, ≥ 0 where it has one sign."""
    if value.constant:
        return value.const, constant(1)
    scale, shape = value.normalised
    return (scale, shape) if bounds(world, shape)[1] > 0 else (-scale, scaled(shape, Fraction(-1)))


def _folded(world: World, value: Value) -> Iterator[Value]:
    """The value with c · (the sum that a form is), beside a function of it, as such a function (lemma of forms)."""
    parts: dict[tuple, Value] = {}
    for number, lag in value.ramps:
        form = world.roots[number]
        for shape in _shapes(world, form) if form.kind == "form" and not lag else ():
            if shape.terms.keys() <= value.terms.keys():
                places = tuple(shape.terms)
                part = parts.setdefault(places, Value(ZERO, {place: value.terms[place] for place in places}))
                (scale, own), (per, alone) = part.normalised, shape.normalised
                if own.key == alone.key:
                    weight = scale / per
                    yield combine([(Fraction(1), value), (-weight, shape), (weight, of_root(form, Fraction(1)))])


def _shapes(world: World, form: Root) -> Iterator[Value]:
    """The sum that a form is, and the same with running sums that were added up apart."""
    (shape,) = form.parts
    yield shape
    whole = [
        (r.slopes[0], number) for (number, lag), r in shape.ramps.items() if (_APART, number) in world.facts and not lag
    ]
    if whole:
        parts = [(w, world.facts[_APART, n], of_root(world.roots[n], Fraction(1))) for w, n in whole]
        yield combine([(Fraction(1), shape), *((w, v) for w, v, _ in parts), *((-w, v) for w, _, v in parts)])


def _bounds(world: World, value: Value) -> tuple[Fraction, Fraction]:
    found = [_bounds_at(world, value, t) for t in _moments(value)]
    return min(lo for lo, _ in found), max(hi for _, hi in found)


def _moments(value: Value) -> range:
    """The first positions, at which some component sees none, and one for all later ones."""
    return range(1, max((lag for _, lag in value.terms), default=0) + 2)


def _bounds_at(world: World, value: Value, t: int) -> tuple[Fraction, Fraction]:
    """At position t: components that see what stood before are what they are there (lemma of the start)."""
    lo = hi = value.const
    gated: dict[tuple, list[tuple[Root, Ramp]]] = {}
    for key, component in value.terms.items():
        gate = _gate(world, world.roots[key[0]], component, key[1]) if isinstance(component, Ramp) else None
        if key[1] >= t:
            lo, hi = lo + component.start[key[1] - t], hi + component.start[key[1] - t]
        elif gate and isinstance(component, Ramp):
            gated.setdefault(gate, []).append((world.roots[key[0]], component))
        else:
            lo, hi = lo + component.inside[0], hi + component.inside[1]
    for parts in gated.values():
        low, high = _gated_bounds(world, parts)
        lo, hi = lo + low, hi + high
    return lo, hi


@kept
def along(world: World, value: Value) -> Along:
    """Bounds at each edge of the input language (lemma of edges)."""
    return reduce(tighter, (_along(world, v) for v in (value, *rewritten(world, value))))


def _along(world: World, value: Value) -> Along:
    found = np.repeat([[below(value.const)], [above(value.const)]], len(world.language.edges), axis=1)
    for (root, lag), component in value.terms.items():
        here = _component_along(world, component, root)
        for _ in range(lag):
            here = world.language.graph.before(here, (below(min(component.start)), above(max(component.start))))
        low, high = sum_sides(found, here)
        found = low if low is high else np.stack([low[0], high[1]])
    return found


def _component_along(world: World, component: Component, root: int) -> Along:
    if isinstance(component, Table):
        return world.language.graph.of_letters(component.dense())
    ends, at = world.roots[root].ends
    found = [component.between(lo, hi) for lo, hi in ends]
    return np.array([[below(lo), above(hi)] for lo, hi in found]).T[:, at]


def bounds_where(world: World, value: Value, flag: Value, level: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of a value at the positions where `flag` is `level`: at the edges where it can be (lemma of edges)."""
    (lo, hi), here, by = bounds(world, value), along(world, value), along(world, flag)
    can = (by[0] <= above(level)) & (below(level) <= by[1])
    lows, highs = here[0][can], here[1][can]
    return (max(lo, Fraction(lows.min())), min(hi, Fraction(highs.max()))) if can.any() else (lo, hi)


def corners(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Bounds of a product at each edge, rounded outwards."""
    low, high = product_sides(np.stack([a[0], a[0], a[1], a[1]]), np.stack([b[0], b[1], b[0], b[1]]))
    return np.stack([low.min(axis=0), high.max(axis=0)])


@kept
def latched(world: World, value: Value) -> tuple[str | None, Value, Fraction]:
    """(flag, f, c): the value is f of when the flag was last 1, and c before, by latches of one flag; else no flag."""
    slope, root = multiple(world, value)
    inner = combine([(slope, root.parts[0])]) if root is not None and root.kind == "form" else value
    flags, stored, level = set(), [], inner.const
    for (number, lag), part in inner.terms.items():
        held = world.roots[number] if number != TOKEN and not lag else None
        if held is None or held.kind != "latch" or not isinstance(part, Ramp) or not part.linear:
            return None, value, ZERO
        unit, shape, flag = held.parts
        flags.add(flag.key)
        stored.append((part.slopes[0] / unit, shape))
        level += part.ys[0] - part.slopes[0] * part.xs[0]
    found = combine(stored, level)
    return (flags.pop(), found, level) if len(flags) == 1 and found.terms else (None, value, ZERO)


def _gate(world: World, root: Root, component: Ramp, lag: int) -> tuple | None:
    """The one root that the gate of a linear product is a function of, if there is one, and where it is seen."""
    if root.kind != "product" or not component.linear:
        return None
    since, gate, _ = latched(world, root.parts[2])
    return (since, *next(iter(gate.terms)), lag) if len(gate.terms) == 1 else None


def _gated_bounds(world: World, parts: list[tuple[Root, Ramp]]) -> tuple[Fraction, Fraction]:
    """Bounds of a sum of products x · g whose gates g are functions of one root: its worst element counts.

    A component is slope · (root − root.lo) + what it is there, and the root is x · g · (the first of its parts). Gates
    over an integer are looked at where one breakpoints: between, what bounds the sum is convex.
    """
    latches = [latched(world, root.parts[2]) for root, _ in parts]
    gates = [next(iter(gate.terms.values())).affine(Fraction(1), gate.const) for _, gate, _ in latches]
    points = sorted({x for g in gates if isinstance(g, Ramp) for x in g.xs})
    rest = [ZERO, ZERO]  # where every gate has its base value
    elements: dict[int, tuple[Fraction, Fraction]] = {}  # what others add to that
    starts: list[list[list[Fraction]]] = []
    for (root, ramp), gate, (since, _, before) in zip(parts, gates, latches, strict=True):
        scale, operand, _ = root.parts
        slope = ramp.slopes[0] if ramp.slopes else ZERO
        ends = [slope * scale * b for b in bounds(world, operand)]

        def reach(g: Fraction, ends=ends, offset=slope * ramp.xs[0] - ramp.ys[0]) -> list[Fraction]:
            return [min(e * g for e in ends) - offset, max(e * g for e in ends) - offset]

        first, others = _elements(gate, points)
        base = reach(first)
        rest = [a + b for a, b in zip(rest, base, strict=True)]
        for g, where in others:
            low, high = (a - b for a, b in zip(reach(g), base, strict=True))
            for element in where:
                old = elements.get(element, (ZERO, ZERO))
                elements[element] = old[0] + low, old[1] + high
        starts.append([reach(g) for g in (*gate.start, *([before] if since else []))])
    lows = [rest[0] + min([m[0] for m in elements.values()], default=ZERO)] + [rest[0]]
    highs = [rest[1] + max([m[1] for m in elements.values()], default=ZERO)] + [rest[1]]
    for at_start in zip(*starts, strict=True):
        lows.append(sum((r[0] for r in at_start), ZERO))
        highs.append(sum((r[1] for r in at_start), ZERO))
    alone = [sum((ramp.inside[end] for _, ramp in parts), ZERO) for end in (0, 1)]
    return max(min(lows), alone[0]), min(max(highs), alone[1])


def _elements(gate: Component, points: list[int]) -> tuple[Fraction, list[tuple[Fraction, list[int]]]]:
    """A value of the gate, and its others, each with the elements of its root (letters, some integers) that have it."""
    if isinstance(gate, Table):
        own, which = np.unique(gate.vals, return_inverse=True)
        alike = np.split(gate.ids[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1])
        return Fraction(gate.base), [(Fraction(v), ids.tolist()) for v, ids in zip(own.tolist(), alike, strict=False)]
    found = [(x, gate.at(x)) for x in points]
    return gate.ys[0], [(y, [x]) for x, y in found if y != gate.ys[0]]


@kept
def tight(world: World, value: Value) -> tuple[Fraction, Fraction]:
    """Bounds that count what the last breakpoints leave: see `_tight`. They cost more than `bounds`."""
    return _tight(world, value, _MOST_BREAKPOINTS)


def _tight(world: World, value: Value, depth: int) -> tuple[Fraction, Fraction]:
    """Bounds, of the value and of what it is at each piece of its last breakpoint (lemma of pieces)."""
    (lo, hi), here = bounds(world, value), along(world, value)
    lo, hi = max(lo, Fraction(here[0].min())), min(hi, Fraction(here[1].max()))
    breakpoints = [(k, c) for k, c in value.ramps.items() if not k[1] and world.roots[k[0]].kind == "form" and _side(c)]
    if not breakpoints or not depth:
        return lo, hi
    key, ramp = max(breakpoints, key=lambda entry: entry[0])
    rest = combine([(Fraction(1), value), (-Fraction(1), Value(ZERO, {key: ramp}))])
    (shape,), side = world.roots[key[0]].parts, _side(ramp)
    lines = [(slope, y - slope * x) for slope, x, y in zip(ramp.slopes, ramp.xs, ramp.ys, strict=False)]
    found = [_tight(world, combine([(Fraction(1), rest), (w, shape)], at), depth - 1) for w, at in lines]
    return max(lo, (side * max(side * f[0] for f in found))), min(hi, (side * max(side * f[1] for f in found)))


def _side(ramp: Ramp) -> int:
    """1 if the ramp is the largest of its lines, -1 if it is the least of them, 0 if neither or if they are many."""
    steps = [b - a for a, b in zip(ramp.slopes, ramp.slopes[1:], strict=False)]
    if not 1 <= len(ramp.slopes) <= _MOST_PIECES or not (all(s > 0 for s in steps) or all(s < 0 for s in steps)):
        return 0
    return 1 if not steps or steps[0] > 0 else -1


def given(world: World, value: Value, known: dict[int, tuple[int, int]]) -> tuple[Fraction, Fraction]:
    """Bounds at positions where some roots, by their ids, are within known bounds."""
    lo = hi = value.const
    for (number, lag), component in value.terms.items():
        ends = component.lo, component.hi
        if isinstance(component, Ramp) and not lag:
            root = world.roots[number]
            if number in known:
                ends = component.between(*known[number])
            elif root.kind == "form":
                least, most = given(world, root.parts[0], known)
                ends = component.between(floor(least), ceil(most))
            elif root.kind == "product":
                scale, a, b = root.parts
                found = [scale * x * y for x in given(world, a, known) for y in given(world, b, known)]
                ends = component.between(floor(min(found)), ceil(max(found)))
        lo, hi = lo + ends[0], hi + ends[1]
    return lo, hi


def largest(world: World, value: Value) -> Fraction:
    """A bound on |value|."""
    lo, hi = bounds(world, value)
    return max(abs(lo), abs(hi))


def _sums_of_members(sets: list[tuple[Fraction, ...] | None]) -> tuple[Fraction, ...] | None:
    """Every sum of one member of each set; None if a set is unknown or there are too many."""
    known = [values for values in sets if values is not None]
    if len(known) < len(sets):
        return None
    common = lcm(*(v.denominator for values in known for v in values))
    total = {0}  # in units of 1 / common: integers are added sooner than Fractions
    for values in known:
        if len(total) * len(values) > 16 * MOST_VALUES:
            return None
        whole = [v.numerator * (common // v.denominator) for v in values]
        total = {a + b for a in total for b in whole}
        if len(total) > MOST_VALUES:
            return None
    return tuple(Fraction(n, common) for n in sorted(total))


@kept
def values_of(world: World, value: Value) -> tuple[Fraction, ...] | None:
    """A finite set that holds every value, or None."""
    found = [_values_at(world, value, t) for t in _moments(value)]
    every = {v for some in found for v in some or ()}
    return None if None in found or len(every) > MOST_VALUES else tuple(sorted(every))


def _values_at(world: World, value: Value, t: int) -> tuple[Fraction, ...] | None:
    sets: list[tuple[Fraction, ...] | None] = [(value.const,)]
    for (root, lag), component in value.terms.items():
        known = world.roots[root].values if isinstance(component, Ramp) else None
        if lag >= t:
            sets.append((component.start[lag - t],))
        elif known is not None and isinstance(component, Ramp):
            sets.append(tuple({component.at(x) for x in known}))
        else:
            sets.append(component.values)
    return _sums_of_members(sets)
