"""How much each column of a memory can hold: Σ_t |b_n(t) · x(t)| for all columns b_n and one drive x (lemma W).

A memory of a thousand keys has a thousand columns that are alike. So the functions of a letter that bound them are
stacked, and each edge of the language is looked at once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from heapq import heappop, heappush
from math import prod

import numpy as np

from verify.checker.bounds import along, bounds, corners, given, largest
from verify.checker.language import Language
from verify.checker.mass import given_letter, majorants, mass, over_edges, zero_where
from verify.checker.once import written
from verify.checker.tables import Table
from verify.checker.values import ZERO, Root, Value, World, above, combine, constant, kept

_SLACK = 1 + 2.0**-20  # float64 sums and products of numbers ≥ 0 are never too small by more
_MOST_ENTRIES = 1 << 24
_MOST_HALVED = 256  # ranges of counts


@dataclass(frozen=True, eq=False)
class Stack:
    """Functions of one letter, ≥ 0 and mostly 0, at one lag: entry i says that function row[i] is vals[i] at ids[i].

    edges: for each edge the entries whose letters it takes, in order, and whose functions count there.
    """

    height: int
    ids: np.ndarray
    vals: np.ndarray
    row: np.ndarray
    edges: list[np.ndarray]

    @classmethod
    def of(cls, language: Language, tables: Sequence[Table], live: Sequence[np.ndarray]) -> Stack:
        """live: for each function the edges at which it counts."""
        ids = np.concatenate([t.ids for t in tables])
        row = np.repeat(np.arange(len(tables)), [len(t.ids) for t in tables])
        vals = np.concatenate([t.vals for t in tables])
        counts = np.stack(live, axis=1)
        taken = [np.flatnonzero(e.letters[ids] & on[row]) for e, on in zip(language.edges, counts, strict=True)]
        return cls(len(tables), ids, vals, row, taken)

    def masses(self, language: Language, given: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Lemma M for every row, each entry times what its letter leaves or its edge, if that is less: (height,)."""
        total, most = np.zeros(self.height), np.zeros(self.height)
        for edge, taken, factor in zip(language.edges, self.edges, left.tolist(), strict=True):
            if not len(taken) or not factor:
                continue
            here, row = self.vals[taken] * np.minimum(given[taken], factor), self.row[taken]
            first = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
            largest_here = np.maximum.reduceat(here, first)
            bound = largest_here * (float(language.length) if edge.repeats else 1.0)
            if edge.distinct:
                bound = np.minimum(bound, np.add.reduceat(here, first))
            total[row[first]] += bound
            most[row[first]] = np.maximum(most[row[first]], largest_here)
        return np.minimum(total, most * float(language.length))


@dataclass(frozen=True, eq=False)
class Bounds:
    """For many columns: sums of functions of one letter each that are at least |b_n|.

    stacks: by lag, each function once. sums: (column, what its functions are before the start together, (lag, row)s).
    """

    stacks: dict[int, Stack]
    sums: list[tuple[int, Fraction, list[tuple[int, int]]]]


@kept
def _bounds_of(world: World, columns: tuple[Value, ...]) -> Bounds:
    found: dict[int, dict[tuple, tuple[int, Table, np.ndarray]]] = {}
    sums, entries = [], 0
    for n, b in enumerate(columns):
        size = _sizes(world, b)
        for m in majorants(world, b):
            if m.const or any(t.base for t in m.letters.values()):
                continue
            counts = {lag: _later(world, size, lag) > 0 for lag in m.letters}
            names = {lag: (t.key, counts[lag].tobytes()) for lag, t in m.letters.items()}
            entries += sum(len(t.ids) for lag, t in m.letters.items() if names[lag] not in found.get(lag, ()))
            if entries > _MOST_ENTRIES:
                break
            at = []
            for lag, table in m.letters.items():
                known = found.setdefault(lag, {})
                at.append((lag, known.setdefault(names[lag], (len(known), table, counts[lag]))[0]))
            sums.append((n, sum((s for t in m.letters.values() for s in t.start), ZERO), at))
    stacks = {}
    for lag, known in found.items():
        _, tables, live = zip(*known.values(), strict=True)
        stacks[lag] = Stack.of(world.language, tables, live)
    return Bounds(stacks, sums)


def most_held(world: World, columns: list[Value], x: Value) -> list[Fraction]:
    """A bound on what each column b_n holds, Σ_t |b_n(t) · x(t)|, where what is written may stop itself (lemma F)."""
    tops, stopped = masses_of_products(world, columns, x), [written(world, x, b) for b in columns]
    return [top if most is None else min(top, most) for top, most in zip(tops, stopped, strict=True)]


def masses_of_products(world: World, columns: list[Value], x: Value) -> list[Fraction]:
    """A bound on Σ_t |b_n(t) · x(t)| for each column b_n: where it is large because of a letter, x is what that letter
    leaves it.
    """
    top, mass_x = largest(world, x), mass(world, x)
    best = [min(mass(world, b) * top, largest(world, b) * mass_x) for b in columns]
    for n, bound in enumerate(_by_letters(world, columns, x).tolist()):
        best[n] = min(best[n], Fraction(bound)) if bound < np.inf else best[n]
    for n, b in enumerate(columns):
        counted = _by_count(world, b, x)
        best[n] = best[n] if counted is None else min(best[n], counted)
    here = corners(np.stack([along(world, b) for b in columns], axis=1), along(world, x)[:, None])
    return [min(bound, over_edges(world, here[:, n])) for n, bound in enumerate(best)]


def _by_letters(world: World, columns: list[Value], x: Value) -> np.ndarray:
    """Lemma W for a product: (columns,), ∞ where there is no such bound."""
    known = _bounds_of(world, tuple(columns))
    top, seen, left, masses = above(largest(world, x)), given_letter(world, x), _sizes(world, x), {}
    for lag, stack in known.stacks.items():
        given = seen[lag][stack.ids] if lag in seen else np.full(len(stack.ids), top)
        masses[lag] = stack.masses(world.language, given, np.minimum(_later(world, left, lag), top))
    best = np.full(len(columns), np.inf)
    for n, start, at in known.sums:
        total = sum((float(masses[lag][row]) for lag, row in at), above(start) * top) * _SLACK
        best[n] = min(best[n], total)
    return best


def _sizes(world: World, value: Value) -> np.ndarray:
    """A bound on |value| at each edge."""
    return np.abs(along(world, value)).max(axis=0)


def _later(world: World, sizes: np.ndarray, lag: int) -> np.ndarray:
    """For each edge: the largest of `sizes` at the edges that a walk can take `lag` steps later; 0 where it ends."""
    return reduce(lambda found, _: world.language.graph.following(found), range(lag), sizes)


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
