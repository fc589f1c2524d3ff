"""What one number of a state holds: a running sum, a latch, a count since a reset (lemmas of running sums, of
latches and of counts since).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np

from verify.checker.arithmetic.columns import most_held
from verify.checker.arithmetic.mass import mass
from verify.checker.arithmetic.sums import check_range, representable
from verify.checker.formats import Rejected
from verify.checker.values.bounds import along, bounds, upright, values_of
from verify.checker.values.values import (
    Along,
    Root,
    Value,
    World,
    combine,
    constant,
    multiple,
    normalised,
    of_root,
)


def running_sum(world: World, drive: Value, what: str) -> Value:
    """Σ over the past (lemma of running sums): bounded by the mass. A count (increments 0 and 1 unit) may outgrow the
    format: then it is known up to the format's integers, and at most 9/8 of the truth beyond (by the order of a scan,
    trusted base).
    """
    if drive.constant and not drive.const:
        return drive
    scale, shape = upright(world, drive)
    lo, hi = bounds(world, shape)
    unit = Fraction(2) ** shape.unit
    top, exact = int(_added_up(world, shape) / unit), None
    if top > world.format.units:
        if lo < 0 or hi > unit:
            raise Rejected(
                f"{what}: its running sum can reach {top} units, and {world.format.name} adds "
                f"exactly up to {world.format.units}"
            )
        exact, top = world.format.units, top + top // 8
    check_range(world, abs(scale) * unit * top, drive.unit, f"{what}: its running sum")
    facts = (-top if lo < 0 else 0, top, None)
    root = world.root("sum", facts, (unit, shape), exact, _summed(world, shape, exact))
    value = of_root(root, scale * unit)
    value.upto = exact
    return value


def _added_up(world: World, drive: Value) -> Fraction:
    """A bound on Σ_t |drive(t)|, which may stop itself."""
    found = [mass(world, drive)]
    scale, root = multiple(world, drive)
    if root is not None and root.kind == "product":
        for x, b in permutations(root.parts[1:]):
            size, shape = upright(world, x)
            found.append(abs(scale * size) * root.parts[0] * most_held(world, b, shape))
    return min(found)


def _summed(world: World, shape: Value, exact: int | None) -> Along | None:
    """A running sum in units of the shape, at each edge."""
    unit = float(Fraction(2) ** shape.unit)
    return None if exact is not None else world.language.graph.added(along(world, shape) / unit)


def latch(world: World, value: Value, flag: Value) -> Value:
    """The value at the last position where the flag was 1, 0 before (lemma of latches)."""
    if value.zero or (flag.constant and flag.const == 1):
        return value
    scale, shape = (value.const, constant(1)) if value.constant else normalised(value)
    unit = Fraction(2) ** shape.unit
    lo, hi = bounds(world, shape)
    found = values_of(world, shape)
    values = None if found is None else tuple(sorted({0} | {int(v / unit) for v in found}))
    facts = (min(0, int(lo / unit)), max(0, int(hi / unit)), values)
    new, when = along(world, shape) / float(unit), along(world, flag)
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
        facts, since = (0, summed.hi, None), _since(world, drive, flag)
        counted = world.root("count", facts, (summed.parts[0], drive, flag), along=since)
        terms = [(Fraction(1), of_root(summed, Fraction(1))), (-unit / slope, of_root(latched, Fraction(1)))]
        world.zeros[latched.id, 0] = (summed.id, 0), combine([*terms, (Fraction(-1), of_root(counted, Fraction(1)))])


def counted(world: World, drive: Value, reset: Value, what: str) -> Value:
    """What was driven since the last reset, where that is 1: at most the mass of it. Elsewhere it is less than 1."""
    scale, shape = upright(world, drive)
    unit = Fraction(2) ** shape.unit
    top, here = int(mass(world, shape) / unit), _since(world, shape, reset)
    if here is not None:
        top = min(top, int(np.abs(here).max()))
    representable(world, unit * abs(scale) * top, drive.unit, f"{what}: its count")
    lo = -top if bounds(world, shape)[0] < 0 else 0
    root = world.root("count", (lo, top, None), (unit, shape, reset), along=here)
    return of_root(root, scale * unit)


def _since(world: World, shape: Value, reset: Value) -> Along | None:
    """A count of what is never negative since a reset, in units of the shape, at each edge."""
    here, when = along(world, shape), along(world, reset)
    if here[0].min() < 0:
        return None
    added = here / float(Fraction(2) ** shape.unit)
    never, certain = when[1] <= 0, when[0] >= 1

    def after(before: np.ndarray) -> np.ndarray:
        return np.stack([np.where(never, before[0] + added[0], 0.0), np.where(certain, 0.0, before[1] + added[1])])

    return world.language.graph.followed(after)
