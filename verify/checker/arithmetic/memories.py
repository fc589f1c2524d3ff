"""What is written and read by keys, and the bounds that hold at every length (lemma of memories)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.columns import most_held
from verify.checker.arithmetic.running import running_sum
from verify.checker.arithmetic.sums import representable
from verify.checker.arithmetic.totals import majorants, over_time
from verify.checker.formats import exponent
from verify.checker.values.bent import product
from verify.checker.values.bounds import bounds, largest, latched, tight, upright
from verify.checker.values.exact import above, no_underflow
from verify.checker.values.tables import Ramp, ramp_sum
from verify.checker.values.values import ZERO, Key, Root, Value, World, combine, constant, kept, of_root, scaled

_MOST_TOGETHER = 64  # columns
Columns = tuple[tuple[Value, Value], ...]  # B and C of each


def memory(world: World, drive: Value, columns: list[tuple[Value, Value]], what: str | None) -> Value:
    """Σ_n C_n(t) Σ_{s ≤ t} B_n(s) drive(s): every column bounded by its total, the read by its worst letters
    (lemma of memories). what: where it is computed, and must be exact; None where it is another way to say what is.
    """
    if drive.constant and not drive.const:
        return drive
    scale, shape = upright(world, drive)
    moved, columns = _balanced(columns)
    alike, b_size, c_size = _common_scale(world, tuple(columns))
    held = _held(world, shape, alike)
    for unit_b, most in held.tops.items() if what else ():
        for by in moved:
            unit_h = unit_b + drive.unit + exponent(b_size) + by
            reach = abs(scale) * b_size * most * Fraction(2) ** by
            representable(world, reach, unit_h, f"{what}: a column of its state")
    scale, unit = scale * b_size * c_size, Fraction(2) ** held.unit
    if what:
        representable(world, abs(scale) * held.read, exponent(scale) + held.unit, f"{what}: what it reads")
    top = int(held.read / unit)
    facts = (0 if held.positive else -top, top, None)
    root = world.root("memory", facts, (unit, shape, alike))
    return of_root(root, scale * unit)


def joined(world: World, value: Value) -> Value:
    """The value with the memories of one operand as one memory of all their columns (lemma of memories)."""
    groups: dict[str, list[tuple[Key, Ramp]]] = {}
    for key, ramp in value.ramps.items():
        root = world.roots[key[0]]
        if root.kind == "memory" and ramp.linear and ramp.slopes and not key[1]:
            groups.setdefault(root.parts[1].key, []).append((key, ramp))
    terms = [(Fraction(1), value)]
    for members in groups.values():
        if len(members) > 1:
            roots = [(world.roots[number], ramp.slopes[0]) for (number, _), ramp in members]
            columns = [(b, scaled(c, slope / r.parts[0])) for r, slope in roots for b, c in r.parts[2]]
            terms += [(-slope, of_root(r, Fraction(1))) for r, slope in roots]
            terms += [(Fraction(1), memory(world, roots[0][0].parts[1], columns, None))]
    result = combine(terms)
    result.upto = value.upto
    return result


def columns_apart(world: World, root: Root, slope: Fraction) -> list[tuple[Fraction, tuple[Value, ...]]]:
    """slope · a memory as a sum of weight · (what a column holds) · (its query)."""
    unit, shape, columns = root.parts
    drives = [(product(world, shape, b), c) for b, c in columns if not c.zero]
    return [(slope / unit, (running_sum(world, drive, "a column"), c)) for drive, c in drives]


@dataclass(frozen=True, eq=False)
class Held:
    """Of a memory. tops: by the unit of columns, the most that one of them holds; read: a bound on |what is read|, in
    multiples of 2^unit; positive: whether nothing in it is ever negative.
    """

    tops: dict[int, Fraction]
    read: Fraction
    unit: int
    positive: bool


@kept
def _held(world: World, shape: Value, columns: Columns) -> Held:
    writes, queries = [b for b, _ in columns], [c for _, c in columns]
    most: dict[int, Fraction] = {}
    tops = [most_held(world, b, shape) for b in writes]
    for b, top in zip(writes, tops, strict=True):
        most[b.unit] = max(top, most.get(b.unit, ZERO))
    read = min(read_bound(world, queries, tops), _read_together(world, shape, writes, queries))
    unit = shape.unit + min(most) + min((c.unit for c in queries if not c.zero), default=0)
    return Held(most, read, unit, all(bounds(world, v)[0] >= 0 for v in (shape, *writes, *queries)))


def _balanced(columns: list[tuple[Value, Value]]) -> tuple[list[int], list[tuple[Value, Value]]]:
    """(the exponents of 2 by which columns are larger than here, the columns with B of one unit).

    What B has more, C has less: where all products have one unit, a power of two goes from one to the other.
    """
    units = {b.unit + c.unit for b, c in columns if not (b.zero or c.zero)}
    live = [b.unit for b, c in columns if not (b.zero or c.zero)]
    if len(units) != 1 or len(set(live)) == 1:
        return [0], columns
    shifts = [0 if b.zero or c.zero else b.unit - max(live) for b, c in columns]
    factors = [Fraction(2) ** shift for shift in shifts]
    moved = [(scaled(b, 1 / f), scaled(c, f)) for (b, c), f in zip(columns, factors, strict=True)]
    return sorted(set(shifts)), moved


@kept
def _common_scale(world: World, columns: Columns) -> tuple[Columns, Fraction, Fraction]:
    """The columns divided by powers of two, the same for proportional columns, and these powers."""
    b_size, c_size = (
        Fraction(2) ** max((v.unit for v in side if not v.zero), default=0) for side in zip(*columns, strict=True)
    )
    return tuple((scaled(b, 1 / b_size), scaled(c, 1 / c_size)) for b, c in columns), b_size, c_size


def read_bound(world: World, queries: list[Value], tops: list[Fraction]) -> Fraction:
    """A bound on Σ_n |C_n| · top_n: letter by letter at each lag."""
    total = ZERO
    letters: dict[tuple, np.ndarray] = {}
    starts: dict[tuple, list[Fraction]] = {}
    lines: dict[tuple, list[tuple[Fraction, Ramp]]] = {}
    for query, top in zip(queries, tops, strict=True):
        flag, seen, before = latched(world, query)
        since, query = (None, query) if before else (flag, seen)
        if _of_one_integer(world, query):
            ((place, ramp),) = query.ramps.items()
            sign = 1 if bounds(world, query)[1] > 0 else -1
            lines.setdefault((since, place), []).append((top, ramp.affine(Fraction(sign), sign * query.const)))
            continue
        m = majorants(world, query)[0]
        total += m.const * top
        for lag, table in m.letters.items():
            rounded_up, dense = above(top), letters.setdefault((since, lag), np.zeros(world.language.tokens))
            with no_underflow():
                if table.base:
                    dense += table.dense() * rounded_up
                else:
                    dense[table.ids] += table.vals * rounded_up
            old = starts.setdefault((since, lag), [ZERO] * lag)
            starts[since, lag] = [a + b * top for a, b in zip(old, table.start, strict=True)]
    for place, dense in letters.items():
        rounded = 1 + Fraction(1, 1 << 20)  # in each of the products and sums, of fewer than 2^32, a share of 2^-53
        total += max([Fraction(float(dense.max())) * rounded, *starts[place]])
    return total + sum((ramp_sum(group).hi for group in lines.values()), ZERO)


def _read_together(world: World, drive: Value, writes: list[Value], queries: list[Value]) -> Fraction:
    """A bound on Σ_n |C_n| · Σ_t |B_n · drive|: what all columns take together, times the largest query."""
    few = len(writes) <= _MOST_TOGETHER
    sizes = [_size(world, b) if few else constant(largest(world, b)) for b in writes]
    together = tight(world, combine([(Fraction(1), b) for b in sizes]))[1]
    return max(largest(world, c) for c in queries) * together * over_time(world, drive)


def _size(world: World, value: Value) -> Value:
    """A value that is at least |value|: itself where it has one sign."""
    lo, hi = bounds(world, value)
    return scaled(value, Fraction(1 if lo >= 0 else -1)) if lo >= 0 or hi <= 0 else constant(max(-lo, hi))


def _of_one_integer(world: World, query: Value) -> bool:
    """Whether a query is a function of one integer, of one sign, not rectified from letters directly."""
    if len(query.terms) > 1 or not query.ramps or bounds(world, query)[0] < 0 < bounds(world, query)[1]:
        return False
    root = world.roots[next(iter(query.ramps))[0]]
    return root.kind != "form" or not root.parts[0].tables
