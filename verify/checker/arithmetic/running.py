"""What one number of a state holds: a running sum (lemma of running sums), a count (lemma of counts since)."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np

from verify.checker.arithmetic.columns import most_held
from verify.checker.arithmetic.sums import check_range, representable
from verify.checker.arithmetic.totals import over_time
from verify.checker.formats import Rejected
from verify.checker.values.bounds import along, bounds, upright
from verify.checker.values.exact import in_units
from verify.checker.values.latches import since
from verify.checker.values.values import (
    Along,
    Value,
    World,
    multiple,
    of_root,
)


def running_sum(world: World, drive: Value, what: str) -> Value:
    """Σ over the past (lemma of running sums): bounded by the total. A count (increments 0 and 1 unit) may outgrow the
    format: then it is known up to the format's integers. Beyond, it is at most 32/15 of the truth, and 9/8 of what it
    is if every position counts (by the order of a scan, trusted base; Counts.counts_at_most, Counts.more_counts_more).
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
        exact, top = world.format.units, min(32 * top // 15 + 1, max(top, world.language.length) * 9 // 8)
    check_range(world, abs(scale) * unit * top, drive.unit, f"{what}: its running sum")
    facts = (-top if lo < 0 else 0, top, None)
    root = world.root("sum", facts, (unit, shape), exact, _summed(world, shape, exact))
    value = of_root(root, scale * unit)
    value.upto = exact
    return value


def _added_up(world: World, drive: Value) -> Fraction:
    """A bound on Σ_t |drive(t)|, which may stop itself."""
    found = [over_time(world, drive)]
    scale, root = multiple(world, drive)
    if root is not None and root.kind == "product":
        for x, b in permutations(root.parts[1:]):
            size, shape = upright(world, x)
            found.append(abs(scale * size) * root.parts[0] * most_held(world, b, shape))
    return min(found)


def _summed(world: World, shape: Value, exact: int | None) -> Along | None:
    """A running sum in units of the shape, at each edge."""
    return None if exact is not None else world.language.graph.added(in_units(along(world, shape), shape.unit))


def counted(world: World, drive: Value, reset: Value, what: str) -> Value:
    """What was driven since the last reset, where that is 1: at most the total of it. Elsewhere it is less than 1."""
    scale, shape = upright(world, drive)
    unit = Fraction(2) ** shape.unit
    top, here = int(over_time(world, shape) / unit), since(world, shape, reset)
    if here is not None:
        top = min(top, int(np.abs(here).max()))
    representable(world, unit * abs(scale) * top, drive.unit, f"{what}: its count")
    lo = -top if bounds(world, shape)[0] < 0 else 0
    root = world.root("count", (lo, top, None), (unit, shape, reset), along=here)
    return of_root(root, scale * unit)
