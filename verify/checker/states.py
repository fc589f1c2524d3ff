"""States as values: what is kept, erased or read by keys, and the bounds that hold at every length (lemmas K, L, N and
Y).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import permutations

import numpy as np

from verify.checker.bent import product
from verify.checker.bounds import along, bounds, largest, tight, values_of
from verify.checker.columns import masses_of_products
from verify.checker.formats import ERASED, KEPT, ON, Rejected, exponent
from verify.checker.mass import mass, sorted_majorants, zero_where
from verify.checker.once import written
from verify.checker.sums import check_range, exact_sum
from verify.checker.tables import Ramp, digest, ramp_sum
from verify.checker.values import (
    ZERO,
    Along,
    Root,
    Value,
    World,
    above,
    combine,
    constant,
    divided,
    multiple,
    normalised,
    of_root,
    scaled,
)
from verify.checker.windows import TooLarge, is_window, pieces, reach, times

_MOST_TOGETHER = 64  # columns

Column = tuple[Value, Value, tuple[Fraction, Fraction]]  # B, C and the bounds on |A|


@dataclass(frozen=True, eq=False)
class Step:
    """Δ of a channel: its value, and its positive values (None: anything above 20). loose: huge ones may be rounded."""

    value: Value
    positive: tuple[Fraction, ...] | None
    top: Fraction
    loose: bool = False

    @property
    def least(self) -> Fraction:
        return min(self.positive) if self.positive else ON

    def keeps(self, a: tuple[Fraction, Fraction]) -> bool:
        return self.top * a[1] <= KEPT

    def erases(self, a: tuple[Fraction, Fraction]) -> bool:
        return self.least * a[0] >= ERASED


def step_of(world: World, value: Value, loose: bool = False) -> Step:
    found = values_of(world, value)
    positive = None if found is None else tuple(v for v in found if v > 0)
    return Step(value, positive, bounds(world, value)[1], loose)


def exact_product(world: World, a: Value, b: Value, what: str) -> Value:
    """a · b, proved to be computed exactly."""
    if a.constant or b.constant:
        return exact_sum(world, [(b.const, a) if b.constant else (a.const, b)], what)
    if a.upto is not None or b.upto is not None:
        raise Rejected(f"{what} multiplies a count that outgrows {world.format.name}")
    reach = largest(world, a) * largest(world, b)
    _representable(world, reach, a.unit + b.unit, what)
    return product(world, a, b)


def _representable(world: World, reach: Fraction, unit: int, what: str) -> None:
    if reach > world.format.units * Fraction(2) ** unit:
        raise Rejected(
            f"{what} can reach {float(reach):.6g} in units of 2^{unit}, beyond what {world.format.name} holds exactly"
        )
    check_range(world, reach, unit, what)


def state_output(world: World, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
    """Σ_n C_n h_n for h ← exp(−Δ|A|) h + Δ B x̂, as a value; Rejected where no lemma covers it."""
    if step.value.constant and not step.value.const:
        return constant(0)
    columns = [c for c in columns if c[0].key != constant(0).key]
    if not columns or (x.constant and not x.const):
        return constant(0)
    for b, _, _ in columns:
        reach = step.top * largest(world, b) * largest(world, x)
        if step.loose:
            check_range(world, reach, world.format.least, f"{what}: Δ·B·x̂")
            reach = step.least * largest(world, b) * largest(world, x)
        _representable(world, reach, step.value.unit + b.unit + x.unit, f"{what}: Δ·B·x̂")
    if len({a for _, _, a in columns}) > 1:
        return _direct_sum(world, step, x, columns, what)
    return _one_group(world, _kind(world, step, x, columns[0][2], what), step, x, columns, what)


def _direct_sum(world: World, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
    """Columns of several decays (lemma O): those of each decay by themselves, without what is 0 or cancels."""
    columns, mirrored = _without_mirrors(step, columns)
    groups: dict[tuple[Fraction, Fraction], list[Column]] = {}
    for column in columns:
        groups.setdefault(column[2], []).append(column)
    parts = []
    for a, group in groups.items():
        kind = _kind(world, step, x, a, what)
        if kind == "erased" and step.value.constant:
            group = [(b, c, a) for b, c, a in group if not _never_meet(world, x, b, c)]
        if group:
            parts.append((Fraction(1), _one_group(world, kind, step, x, group, what)))
    total = exact_sum(world, parts, f"{what}: C·h")
    if mirrored:
        size = step.least if step.loose and parts else step.top  # what is loose is counted: x is 0 where it is huge
        tops = [size * largest(world, b) * largest(world, x) for b, _, _ in mirrored]
        most = _read_bound(world, [c for _, c, _ in mirrored], tops)
        unit = step.value.unit + x.unit + min(b.unit + c.unit for b, c, _ in mirrored)
        most += sum((largest(world, part) for _, part in parts), ZERO)
        _representable(world, most, min([unit, *(part.unit for _, part in parts)]), f"{what}: C·h")
    return total


def _without_mirrors(step: Step, columns: Sequence[Column]) -> tuple[list[Column], list[Column]]:
    """(the columns that no other one cancels, one of each pair with equal B and decay and opposite C).

    Each step must erase: then a column holds its last write, of which the bounds are known.
    """
    left: dict[tuple, list[Column]] = {}
    pairs = []
    for b, c, a in columns:
        opposite = left.get((b.key, scaled(c, Fraction(-1)).key, a))
        if opposite and step.least * a[0] * (1 - Fraction(1, 1 << 7)) >= ERASED:
            pairs.append(opposite.pop())
        else:
            left.setdefault((b.key, c.key, a), []).append((b, c, a))
    return [column for alike in left.values() for column in alike], pairs


def _never_meet(world: World, *factors: Value) -> bool:
    """Whether a product is 0 at every position: at each edge of the input language a factor is 0 (lemma E), or it is a
    function of the last few letters that is 0 throughout.
    """
    here = [ends for value in factors if (ends := along(world, value)) is not None]
    if here and np.logical_or.reduce([(ends == 0).all(axis=0) for ends in here]).all():
        return True
    if not all(is_window(world, value) for value in factors):
        return False
    depth = max(reach(world, value) for value in factors)
    try:
        met = reduce(times, [pieces(world, value, depth) for value in factors])
    except TooLarge:
        return False
    return not any(part.table.any() for part in met)


def _one_group(world: World, kind: str, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
    """Columns of one decay."""
    if len(columns) == 1:
        b, c, _ = columns[0]
        state = _state(world, kind, step, exact_product(world, x, b, f"{what}: B·x̂"), what)
        return exact_product(world, state, c, f"{what}: C·h")
    if kind == "erased" and step.value.constant:
        drive = scaled(x, step.value.const)
        rows = [(exact_product(world, exact_product(world, drive, b, what), c, what)) for b, c, _ in columns]
        return exact_sum(world, [(Fraction(1), r) for r in rows], f"{what}: C·h")
    if kind != "kept" or step.loose:
        raise Rejected(f"{what}: no lemma covers several columns of a state that is {kind}")
    return memory(world, product(world, x, step.value), [(b, c) for b, c, _ in columns], what)


def _kind(world: World, step: Step, x: Value, a: tuple[Fraction, Fraction], what: str) -> str:
    if step.keeps(a) and not step.loose:
        return "kept"
    if step.erases(a) and not step.loose:
        return "erased"
    if step.positive:
        big = [v for v in step.positive if v * a[0] * (1 - Fraction(1, 1 << 7)) >= ERASED]
        small = [v for v in step.positive if v * a[1] <= KEPT]
        if (
            big
            and len(big) + len(small) == len(step.positive)
            and len(small) == 1
            and bounds(world, step.value)[0] > 0  # where Δ is 0, nothing is counted
            and zero_where(world, x, step.value, min(big))
        ):
            return "counted"
    raise Rejected(f"{what}: its state fades (Δ up to {float(step.top):g}, |A| up to {float(a[1]):g})")


def _state(world: World, kind: str, step: Step, driven: Value, what: str) -> Value:
    """The state of one column driven by Δ · driven."""
    if driven.upto is not None:
        raise Rejected(f"{what}: its state stores a count that outgrows {world.format.name}")
    flat = step.value.constant
    if kind == "kept":
        return running_sum(world, product(world, driven, step.value), what)
    if kind == "erased" and flat:
        return scaled(driven, step.value.const)
    if kind == "erased":
        if step.positive is None or len(step.positive) != 1:
            raise Rejected(f"{what}: it is written with steps of several sizes")
        (on,) = step.positive
        return latch(world, scaled(driven, on), divided(step.value, on))
    small, (lo, hi) = min(step.positive or ()), bounds(world, step.value)
    reset = divided(combine([(Fraction(1), step.value)], -lo), hi - lo)
    return counted(world, scaled(driven, small), reset, what)


def running_sum(world: World, drive: Value, what: str) -> Value:
    """Σ over the past (lemma N): bounded by the mass. A count (increments 0 and 1 unit) may outgrow the format: then it
    is known up to the format's integers, and at most 9/8 of the truth beyond (by the order of a scan, trusted base)."""
    if drive.constant and not drive.const:
        return drive
    scale, shape = _upright(world, drive)
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
    """A bound on Σ_t |drive(t)|; a product may stop itself."""
    scale, root = multiple(world, drive)
    if root is None or root.kind != "product":
        return mass(world, drive)
    stopped = [written(world, x, b) for x, b in permutations(root.parts[1:])]
    return min([mass(world, drive), *(abs(scale) * root.parts[0] * s for s in stopped if s is not None)])


def _upright(world: World, drive: Value) -> tuple[Fraction, Value]:
    """(scale, shape) with drive = scale · shape: the same shape for proportional drives, ≥ 0 where it has one sign."""
    if drive.constant:
        return drive.const, constant(1)
    scale, shape = normalised(drive)
    return (scale, shape) if bounds(world, shape)[1] > 0 else (-scale, scaled(shape, Fraction(-1)))


def _summed(world: World, shape: Value, exact: int | None) -> Along:
    """A running sum in units of the shape, at each edge."""
    graph, here = world.language.graph, along(world, shape)
    if graph is None or here is None or exact is not None:
        return None
    return graph.added(here / float(Fraction(2) ** shape.unit))


def latch(world: World, value: Value, flag: Value) -> Value:
    """The value at the last position where the flag was 1, 0 before (lemma L)."""
    if value.zero or (flag.constant and flag.const == 1):
        return value
    scale, shape = (value.const, constant(1)) if value.constant else normalised(value)
    unit = Fraction(2) ** shape.unit
    lo, hi = bounds(world, shape)
    found = values_of(world, shape)
    values = None if found is None else tuple(sorted({0} | {int(v / unit) for v in found}))
    facts = (min(0, int(lo / unit)), max(0, int(hi / unit)), values)
    graph, here, when = world.language.graph, along(world, shape), along(world, flag)
    kept = None
    if graph is not None and here is not None and when is not None:
        new = here / float(unit)
        hull = lambda old: np.stack([np.minimum(old[0], new[0]), np.maximum(old[1], new[1])])
        kept = graph.followed(lambda old: np.where(when[0] >= 1, new, np.where(when[1] < 1, old, hull(old))))
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
    scale, shape = _upright(world, drive)
    unit = Fraction(2) ** shape.unit
    top, here = int(mass(world, shape) / unit), _since(world, shape, reset)
    if here is not None:
        top = min(top, int(np.abs(here).max()))
    _representable(world, unit * abs(scale) * top, drive.unit, f"{what}: its count")
    lo = -top if bounds(world, shape)[0] < 0 else 0
    root = world.root("count", (lo, top, None), (unit, shape, reset), along=here)
    return of_root(root, scale * unit)


def _since(world: World, shape: Value, reset: Value) -> Along:
    """A count of what is never negative since a reset, in units of the shape, at each edge."""
    graph, here, when = world.language.graph, along(world, shape), along(world, reset)
    if graph is None or here is None or when is None or here[0].min() < 0:
        return None
    added = here / float(Fraction(2) ** shape.unit)
    never, certain = when[1] <= 0, when[0] >= 1

    def after(before: np.ndarray) -> np.ndarray:
        return np.stack([np.where(never, before[0] + added[0], 0.0), np.where(certain, 0.0, before[1] + added[1])])

    return graph.followed(after)


def memory(world: World, drive: Value, columns: list[tuple[Value, Value]], what: str) -> Value:
    """Σ_n C_n(t) Σ_{s ≤ t} B_n(s) drive(s): every column bounded by its mass, the read by its worst letters
    (lemma Y).
    """
    if drive.constant and not drive.const:
        return drive
    scale, shape = _upright(world, drive)
    as_given = digest([(b.key, c.key) for b, c in columns])
    columns, b_size, c_size = world.fact("scaled columns", as_given, lambda: _common_scale(columns))
    name = world.fact("name of columns", as_given, lambda: digest([(b.key, c.key) for b, c in columns]))
    held: Held = world.fact("held", shape.key + name, lambda: _held(world, shape, columns))
    for unit_b, most in held.tops.items():
        unit_h = unit_b + drive.unit + exponent(b_size)
        _representable(world, abs(scale) * b_size * most, unit_h, f"{what}: a column of its state")
    scale, unit = scale * b_size * c_size, Fraction(2) ** held.unit
    _representable(world, abs(scale) * held.read, exponent(scale) + held.unit, f"{what}: what it reads")
    top = int(held.read / unit)
    facts = (0 if held.positive else -top, top, None)
    here = None if held.along is None else held.along / float(unit)
    root = world.root("memory", facts, (unit, shape, tuple(columns)), along=here)
    return of_root(root, scale * unit)


@dataclass(frozen=True, eq=False)
class Held:
    """Of a memory. tops: by the unit of columns, the most that one of them holds; read: a bound on |what is read|, at
    each edge in `along`, in multiples of 2^unit; positive: whether nothing in it is ever negative.
    """

    tops: dict[int, Fraction]
    read: Fraction
    unit: int
    along: Along
    positive: bool


def _held(world: World, shape: Value, columns: list[tuple[Value, Value]]) -> Held:
    writes, queries = [b for b, _ in columns], [c for _, c in columns]
    most: dict[int, Fraction] = {}
    tops = masses_of_products(world, writes, shape)
    for n, b in enumerate(writes):
        stopped = written(world, shape, b)
        tops[n] = tops[n] if stopped is None else min(tops[n], stopped)
        most[b.unit] = max(tops[n], most.get(b.unit, ZERO))
    at, read = _read_along(world, queries, tops), _read_bound(world, queries, tops)
    read = min(read, _read_together(world, shape, writes, queries))
    read = read if at is None else min(read, Fraction(float(at[1].max())))
    unit = shape.unit + min(most) + min((c.unit for c in queries if not c.zero), default=0)
    return Held(most, read, unit, at, all(bounds(world, v)[0] >= 0 for v in (shape, *writes, *queries)))


def _common_scale(columns: list[tuple[Value, Value]]) -> tuple[list[tuple[Value, Value]], Fraction, Fraction]:
    """The columns divided by powers of two, the same for proportional columns, and these powers."""
    b_size, c_size = (
        Fraction(2) ** max((v.unit for v in side if not v.zero), default=0) for side in zip(*columns, strict=True)
    )
    return [(scaled(b, 1 / b_size), scaled(c, 1 / c_size)) for b, c in columns], b_size, c_size


def _read_bound(world: World, queries: list[Value], tops: list[Fraction]) -> Fraction:
    """A bound on Σ_n |C_n| · top_n: letter by letter at each lag."""
    total = ZERO
    letters: dict[tuple, np.ndarray] = {}
    starts: dict[tuple, list[Fraction]] = {}
    lines: dict[tuple, list[tuple[Fraction, Ramp]]] = {}
    for query, top in zip(queries, tops, strict=True):
        since, query, top = _latched(world, query, top)
        if _of_one_integer(world, query):
            ((place, ramp),) = query.ramps.items()
            sign = 1 if bounds(world, query)[1] > 0 else -1
            lines.setdefault((since, place), []).append((top, ramp.affine(Fraction(sign), sign * query.const)))
            continue
        m = sorted_majorants(world, query)[0]
        total += m.const * top
        for lag, table in m.letters.items():
            rounded_up = float(top * (1 + Fraction(1, 1 << 40)))
            dense = letters.setdefault((since, lag), np.zeros(world.language.tokens))
            if table.base:
                dense += table.dense() * rounded_up
            else:
                dense[table.ids] += table.vals * rounded_up
            old = starts.setdefault((since, lag), [ZERO] * lag)
            starts[since, lag] = [a + b * top for a, b in zip(old, table.start, strict=True)]
    for place, dense in letters.items():
        total += max([Fraction(float(dense.max())) * (1 + Fraction(1, 1 << 20)), *starts[place]])
    return total + sum((ramp_sum(group).hi for group in lines.values()), ZERO)


def _read_together(world: World, drive: Value, writes: list[Value], queries: list[Value]) -> Fraction:
    """A bound on Σ_n |C_n| · Σ_t |B_n · drive|: what all columns take together, times the largest query."""
    few = len(writes) <= _MOST_TOGETHER
    sizes = [_size(world, b) if few else constant(largest(world, b)) for b in writes]
    together = tight(world, combine([(Fraction(1), b) for b in sizes]))[1]
    return max(largest(world, c) for c in queries) * together * mass(world, drive)


def _size(world: World, value: Value) -> Value:
    """A value that is at least |value|: itself where it has one sign."""
    lo, hi = bounds(world, value)
    return scaled(value, Fraction(1 if lo >= 0 else -1)) if lo >= 0 or hi <= 0 else constant(max(-lo, hi))


def _of_one_integer(world: World, query: Value) -> bool:
    """Whether a query is a function of one integer, of one sign, that letters do not bend directly."""
    if len(query.terms) > 1 or not query.ramps or bounds(world, query)[0] < 0 < bounds(world, query)[1]:
        return False
    root = world.roots[next(iter(query.ramps))[0]]
    return root.kind != "form" or not root.parts[0].tables


def _read_along(world: World, queries: list[Value], tops: list[Fraction]) -> Along:
    """Bounds of a read at each edge."""
    if world.language.graph is None:
        return None
    total = np.zeros(len(world.language.edges))
    for query, top in zip(queries, tops, strict=True):
        here = along(world, query)
        total += 0.0 if here is None else np.abs(here).max(axis=0) * above(top)
    total *= 1 + 2.0**-40 * ((total != np.floor(total)) | (total >= 2.0**52)) * len(queries)
    return np.stack([-total, total])


def _latched(world: World, query: Value, top: Fraction) -> tuple[tuple | None, Value, Fraction]:
    """A query that is a latch: (its flag, what it stores, the factor): latches of one flag are of one position."""
    slope, latched = multiple(world, query)
    if latched is None or latched.kind != "latch":
        return None, query, top
    unit, shape, flag = latched.parts
    return flag.key, shape, top * abs(slope) / unit
