"""States as values: what a decay keeps or erases, and what the columns of a channel hold together (lemmas of decay
and of other memories' columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verify.checker.arithmetic.memories import memory, read_bound
from verify.checker.arithmetic.running import counted, running_sum
from verify.checker.arithmetic.sums import check_range, exact_product, exact_sum, in_range, representable
from verify.checker.arithmetic.totals import zero_where
from verify.checker.formats import ERASED, FORMATS, KEPT, ON, Rejected
from verify.checker.values.bent import product
from verify.checker.values.bounds import bounds, largest, values_of
from verify.checker.values.latches import latch
from verify.checker.values.values import ZERO, Value, World, combine, constant, divided, scaled

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


def state_output(world: World, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
    """Σ_n C_n h_n for h ← exp(−Δ|A|) h + Δ B x̂, as a value; Rejected where no lemma covers it."""
    try:
        return _state_output(world, step, x, columns, what)
    except Rejected as reason:
        raise reason.of(world, x, step.value, *(v for b, c, _ in columns for v in (b, c))) from None


def _state_output(world: World, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
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
        representable(world, reach, step.value.unit + b.unit + x.unit, f"{what}: Δ·B·x̂")
    if len({a for _, _, a in columns}) > 1:
        return _direct_sum(world, step, x, columns, what)
    return _one_group(world, _kind(world, step, x, columns[0][2], what), step, x, columns, what)


def _direct_sum(world: World, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
    """Columns of several decays (lemma of other memories' columns): those of each decay by themselves, without what
    cancels.
    """
    columns, mirrored = _without_mirrors(step, columns)
    groups: dict[tuple[Fraction, Fraction], list[Column]] = {}
    for column in columns:
        groups.setdefault(column[2], []).append(column)
    parts = []
    for a, group in groups.items():
        parts.append((Fraction(1), _one_group(world, _kind(world, step, x, a, what), step, x, group, what)))
    total = exact_sum(world, parts, f"{what}: C·h")
    if mirrored:
        size = step.least if step.loose and parts else step.top  # what is loose is counted: x is 0 where it is huge
        tops = [size * largest(world, b) * largest(world, x) for b, _, _ in mirrored]
        most = read_bound(world, [c for _, c, _ in mirrored], tops)
        unit = step.value.unit + x.unit + min(b.unit + c.unit for b, c, _ in mirrored)
        most += sum((largest(world, part) for _, part in parts), ZERO)
        representable(world, most, min([unit, *(part.unit for _, part in parts)]), f"{what}: C·h")
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


def _one_group(world: World, kind: str, step: Step, x: Value, columns: Sequence[Column], what: str) -> Value:
    """Columns of one decay."""
    if len(columns) == 1:
        b, c, _ = columns[0]
        state = _state(world, kind, step, exact_product(world, x, b, f"{what}: B·x̂"), what)
        return exact_product(world, state, c, f"{what}: C·h")
    if kind == "erased" and step.value.constant:
        drive = scaled(x, step.value.const)
        held = [exact_product(world, drive, b, what) for b, _, _ in columns]
        _check_apart(held, world, columns, what)
        rows = [exact_product(world, h, c, what) for h, (_, c, _) in zip(held, columns, strict=True)]
        return exact_sum(world, [(Fraction(1), r) for r in rows], f"{what}: C·h")
    if kind != "kept" or step.loose:
        raise Rejected(f"{what}: no lemma covers several columns of a state that is {kind}")
    return memory(world, product(world, x, step.value), [(b, c) for b, c, _ in columns], what)


def _check_apart(held: Sequence[Value], world: World, columns: Sequence[Column], what: str) -> None:
    """The chunks of Mamba-2 form Σ C·h of C and h at different positions, before an exp of 0 takes it away."""
    reach = sum((largest(world, h) * largest(world, c) for h, (_, c, _) in zip(held, columns, strict=True)), ZERO)
    in_range(FORMATS["float32"], reach, FORMATS["float32"].least, f"{what}: C·h of an earlier position")


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
