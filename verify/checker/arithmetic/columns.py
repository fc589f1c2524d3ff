"""How much a column of a memory can hold: Σ_t |b(t) · x(t)| for a column b and a drive x (lemma of memories)."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from heapq import heappop, heappush
from math import prod

import numpy as np

from verify.checker.arithmetic.once import written
from verify.checker.arithmetic.totals import over_edges, over_time, zero_where
from verify.checker.values.bounds import along, bounds, corners, given, largest
from verify.checker.values.values import ZERO, Root, Value, World, combine, constant, kept

_MOST_HALVED = 256  # ranges of counts


def most_held(world: World, b: Value, x: Value) -> Fraction:
    """A bound on what a column b holds, Σ_t |b(t) · x(t)|; what is written may stop itself (lemma of writes that
    stop themselves).
    """
    found = [over_time(world, b) * largest(world, x), largest(world, b) * over_time(world, x)]
    found.append(over_edges(world, corners(along(world, b), along(world, x))))
    return min([*found, *(bound for bound in (_by_count(world, b, x), written(world, x, b)) if bound is not None)])


def _sizes(world: World, value: Value) -> np.ndarray:
    """A bound on |value| at each edge."""
    return np.abs(along(world, value)).max(axis=0)


def _by_count(world: World, b: Value, x: Value) -> Fraction | None:
    """A bound on Σ_t b(t) · x(t) where b and x are bounded by counts that grow wherever b · x is not 0.

    They take each value at most once there: a count since a reset does so after each reset, and for each value of a sum
    that grows at the resets.
    """
    if bounds(world, x)[0] < 0:
        return None
    clocks = _counts(world, b)
    found = []
    for clock in clocks:
        if not (_grows(world, clock.parts[1], x) or _grows(world, clock.parts[1], b)):
            continue
        times = 1 if clock.kind == "sum" else _segments(world, clock.parts[2], x)
        sums = [s for s in clocks if s.kind == "sum" and times > 1 and _grows(world, s.parts[1], clock.parts[2])]
        for own, often in (((clock,), times), *(((clock, s), 1) for s in sums)):
            seen = {root.id for root in _counts(world, x)} & {root.id for root in own}
            top, y = (Fraction(1), x) if seen else (largest(world, x), constant(1))
            found.append(often * top * _over_all(world, b, y, own))
    return min(found, default=None)


@kept
def _over_all(world: World, b: Value, x: Value, counts: tuple[Root, ...]) -> Fraction:
    """A bound on Σ b · x over all values of these counts, each once: their ranges are halved where most is added."""
    known = {root.id: (root.lo, root.hi) for root in counts}
    most = lambda box: _at_most(world, b, box) * _at_most(world, x, box) * prod(hi - lo + 1 for lo, hi in box.values())
    boxes, total = [(-most(known), 0, known)], ZERO
    for i in range(_MOST_HALVED):
        size, _, box = heappop(boxes)
        number = max(box, key=lambda n: box[n][1] - box[n][0])
        (lo, hi), middle = box[number], sum(box[number]) // 2
        if not size:
            return total
        if lo == hi:
            total -= size
        else:
            for j, half in enumerate(((lo, middle), (middle + 1, hi))):
                heappush(boxes, (-most(box | {number: half}), 2 * i + j, box | {number: half}))
        if not boxes:
            return total
    return total - sum((size for size, _, _ in boxes), ZERO)


def _at_most(world: World, value: Value, known: dict[int, tuple[int, int]]) -> Fraction:
    """A bound on |value| at positions where some roots are within known bounds."""
    return min(largest(world, value), max(map(abs, given(world, value, known))))


def _counts(world: World, value: Value) -> list[Root]:
    """The running sums and the counts since a reset that a value is a function of, at this position."""
    found = []
    for root in (world.roots[number] for number, lag in value.ramps if not lag):
        inner = [p for p in root.parts if isinstance(p, Value)] if root.kind in ("form", "product") else []
        found += [root] if root.kind in ("sum", "count") else [r for p in inner for r in _counts(world, p)]
    return list({root.id: root for root in found}.values())


def _grows(world: World, drive: Value, x: Value) -> bool:
    """Whether the sum of a drive never falls, and grows wherever x is not 0."""
    least = bounds(world, drive)[0]
    if least or bounds(world, x)[0] < 0:
        return least > 0
    return zero_where(world, x, combine([(Fraction(-1), drive)]), ZERO)


def _segments(world: World, reset: Value, x: Value) -> Fraction:
    """How often a count begins anew and x may still come: once at the start, and at the resets that x can follow."""
    graph, live = world.language.graph, _sizes(world, x)
    left = reduce(lambda found, _: np.maximum(live, graph.following(found)), range(graph.states), live)
    return 1 + over_edges(world, along(world, reset) * (left > 0))
