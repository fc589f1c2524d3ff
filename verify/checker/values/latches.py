"""What a latch holds (lemma of latches), and several of one flag; what was counted since (lemma of counts since)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify.checker.values.bounds import along, bounds, values_of
from verify.checker.values.exact import in_units
from verify.checker.values.tables import Ramp
from verify.checker.values.values import (
    ZERO,
    Along,
    Key,
    Root,
    Value,
    World,
    combine,
    constant,
    kept,
    later,
    level_of,
    multiple,
    of_root,
)


def latch(world: World, value: Value, flag: Value) -> Value:
    """The value at the last position where the flag was 1, 0 before (lemma of latches)."""
    if value.zero or (flag.constant and flag.const == 1):
        return value
    scale, shape = (value.const, constant(1)) if value.constant else value.normalised
    unit = Fraction(2) ** shape.unit
    lo, hi = bounds(world, shape)
    found = values_of(world, shape)
    values = None if found is None else tuple(sorted({0} | {int(v / unit) for v in found}))
    facts = (min(0, int(lo / unit)), max(0, int(hi / unit)), values)
    new, when = in_units(along(world, shape), shape.unit), along(world, flag)
    hull = lambda old: np.stack([np.minimum(old[0], new[0]), np.maximum(old[1], new[1])])
    after = lambda old: np.where(when[0] >= 1, new, np.where(when[1] < 1, old, hull(old)))
    kept = world.language.graph.followed(after)
    root = world.root("latch", facts, (unit, shape, flag), along=kept)
    _difference_of_sums(world, root)
    return of_root(root, scale * unit)


def _difference_of_sums(world: World, latched: Root) -> None:
    """A running sum of what is never negative, less what it was when the flag last held, counts since then."""
    unit, shape, flag = latched.parts
    slope, summed = multiple(world, shape)
    if (latched.id, 0) in world.zeros or summed is None or summed.kind != "sum" or summed.exact is not None:
        return
    drive = summed.parts[1]
    if bounds(world, drive)[0] >= 0:
        facts, here = (0, summed.hi, None), since(world, drive, flag)
        counted = world.root("count", facts, (summed.parts[0], drive, flag), along=here)
        terms = [(Fraction(1), of_root(summed, Fraction(1))), (-unit / slope, of_root(latched, Fraction(1)))]
        world.zeros[latched.id, 0] = (summed.id, 0), combine([*terms, (Fraction(-1), of_root(counted, Fraction(1)))])


@kept
def joined(world: World, value: Value) -> Value:
    """The value with its latches of one flag, equally far back, which store functions of one number, as one latch of
    what they store together (lemma of latches of one flag): states are linear.
    """
    found: dict[tuple[str, Key, int], list[tuple[Key, Ramp]]] = {}
    for key, part in value.ramps.items():
        root = world.roots[key[0]]
        if root.kind == "latch" and part.linear and part.slopes and len(root.parts[1].terms) == 1:
            (number,) = root.parts[1].terms
            found.setdefault((root.parts[2].key, number, key[1]), []).append((key, part))
    for parts in found.values():
        if len(parts) > 1:
            value = _as_one(world, value, parts)
    return value


def _as_one(world: World, value: Value, parts: list[tuple[Key, Ramp]]) -> Value:
    """The value with these latches, which share their flag and their lag, as one."""
    roots = [world.roots[number] for (number, _), _ in parts]
    lag = parts[0][0][1]
    stored = combine([(ramp.slopes[0] / r.parts[0], r.parts[1]) for (_, ramp), r in zip(parts, roots, strict=True)])
    apart = [(Fraction(-1), Value(ZERO, {key: ramp})) for key, ramp in parts]
    one = later(world, latch(world, stored, roots[0].parts[2]), lag)
    levels = [level_of(world, r.ys[0] - r.slopes[0] * r.xs[0], lag, r.start) for _, r in parts]
    return combine([(Fraction(1), value), *apart, *((Fraction(1), level) for level in [one, *levels])])


def since(world: World, shape: Value, reset: Value) -> Along | None:
    """A count of what is never negative since a reset, in units of the shape, at each edge."""
    here, when = along(world, shape), along(world, reset)
    if here[0].min() < 0:
        return None
    added = in_units(here, shape.unit)
    never, certain = when[1] <= 0, when[0] >= 1

    def after(before: np.ndarray) -> np.ndarray:
        return np.stack([np.where(never, before[0] + added[0], 0.0), np.where(certain, 0.0, before[1] + added[1])])

    return world.language.graph.followed(after)
