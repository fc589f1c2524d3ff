"""Writes that stop themselves: x̂ falls with what a memory says was written before (lemma of writes that stop
themselves).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from verify.checker.values.bounds import bounds, largest, values_of
from verify.checker.values.tables import Ramp
from verify.checker.values.values import ZERO, Root, Value, World, constant, kept, multiple
from verify.checker.values.windows import TooLarge, ends_of, is_window, join, letters_of, reach

_MOST_WRITES = 64


def written(world: World, drive: Value, column: Value) -> Fraction | None:
    """A bound on Σ_t column(t) · |drive(t)|, or None where some part of the drive does not stop itself."""
    total, rest = ZERO, drive.const
    if drive.tables:
        return None
    for key, component in drive.ramps.items():
        root = world.roots[key[0]]
        if root.kind != "form" or key[1]:
            return None
        falling = any(s < 0 for s in component.slopes)
        sign = -1 if component.at(component.xs[-1]) < component.ys[0] else 1
        if falling and any(s > 0 for s in component.slopes):
            return None
        ramp = component.affine(Fraction(1), -component.lo)
        rest += component.lo
        part = _one(world, root, ramp, sign, column)
        if part is None:
            return None
        total += part
    return total if not rest else None


def _one(world: World, root: Root, ramp: Ramp, sign: int, column: Value) -> Fraction | None:
    """Of one rectified form φ(A − λ·W), φ monotone (rising for sign 1) and least 0.

    W = Σ_n C_n Σ_(s ≤ t) B_n w is at least γβκ(t)·Σ_(s ≤ t) κ(s) w(s), where κ is what column, B_n and C_n have in
    common. x̂ is 0 where w is. So where the drive and κ are positive for the j-th time, W ≥ j·γβ·κ_min²·w_min.
    """
    shape: Value = root.parts[0]
    drives = Value(ZERO, {(root.id, 0): ramp})
    for key, component in shape.ramps.items():
        memory = world.roots[key[0]]
        if key[1] or not component.linear or component.slopes[0] * sign >= 0 or memory.lo < 0:
            continue
        step = _grown(world, memory, drives, column)
        if step is None:
            continue
        fall = abs(component.slopes[0]) * step
        lo, hi = bounds(world, Value(ZERO, {k: c for k, c in shape.terms.items() if k != key}))
        top, total = (hi if sign > 0 else -lo), ZERO
        for j in range(1, _MOST_WRITES):
            x = sign * (top - j * fall)
            amount = ramp.at(int(min(max(x.__ceil__() if sign > 0 else x.__floor__(), ramp.xs[0]), ramp.xs[-1])))
            if not amount:
                return total * largest(world, column)
            total += amount
    return None


def _grown(world: World, memory: Root, drives: Value, column: Value) -> Fraction | None:
    """How much a memory has grown at least, where drive and column are positive, by each such position."""
    least_column = None if column.constant else _least_positive(world, column)
    if least_column is None:
        return None
    size, shape = column.normalised
    for held in _memories(world, memory):
        least, least_w = _least_positive(world, held.gate), _least_positive(world, held.w)
        if shape.key in held.twice and least is not None and least_w is not None:
            flags = tuple(v for v in (held.w, held.gate) if not v.constant)
            if _only_where(world, drives, flags):
                return held.scale * held.twice[shape.key] * (least_column / size) ** 2 * least_w * least
    return None


@dataclass(frozen=True)
class Memory:
    """scale · gate · Σ_n C_n Σ B_n w. twice: βγ of a column with B_n = β·κ ≥ 0, C_n = γ·κ ≥ 0, by the key of κ."""

    scale: Fraction
    w: Value
    twice: dict[str, Fraction]
    gate: Value


@kept
def _memories(world: World, root: Root) -> list[Memory]:
    """What the root is as a memory; a running sum behind a gate is of one column."""
    found: list[tuple[Fraction, Value, tuple, Value]] = []
    if root.kind == "memory":
        found.append((1 / root.parts[0], *root.parts[1:], constant(1)))
    for held, gate in permutations(root.parts[1:]) if root.kind == "product" else ():
        size, summed = multiple(world, held)
        if summed is not None and summed.kind == "memory":
            found.append((root.parts[0] * size / summed.parts[0], *summed.parts[1:], gate))
        if summed is None or summed.kind != "sum":
            continue
        times, driven = multiple(world, summed.parts[1])
        if driven is not None and driven.kind == "product":
            scale = root.parts[0] * size / summed.parts[0] * times * driven.parts[0]
            found += [(scale, w, ((b, gate),), constant(1)) for w, b in permutations(driven.parts[1:])]
    return [Memory(scale, w, _twice(world, columns), gate) for scale, w, columns, gate in found]


def _twice(world: World, columns: tuple[tuple[Value, Value], ...]) -> dict[str, Fraction]:
    """By the key of κ, βγ of the first column that is written with β·κ ≥ 0 and read with γ·κ ≥ 0."""
    found: dict[str, Fraction] = {}
    for b, c in columns:
        if not (b.constant or c.constant):
            (beta, b_shape), (gamma, c_shape) = b.normalised, c.normalised
            if b_shape.key == c_shape.key and bounds(world, b)[0] >= 0 and bounds(world, c)[0] >= 0:
                found.setdefault(b_shape.key, beta * gamma)
    return found


@kept
def _only_where(world: World, drive: Value, flags: tuple[Value, ...]) -> bool:
    """Whether a drive is never above 0 where one of these functions of letters is 0 or less."""
    if not all(is_window(world, flag) for flag in flags):
        return False
    depth = max(reach(world, value) for value in (drive, *flags))
    try:
        for t in (None, *range(1, depth + 1)):
            most = ends_of(world, drive, t)[1]
            for flag in flags:
                if join(most, letters_of(world, flag, t), lambda u, f: (u > 0) & (f <= 0)).table.any():
                    return False
    except TooLarge:
        return False
    return True


def _least_positive(world: World, value: Value) -> Fraction | None:
    values = values_of(world, value)
    positive = [v for v in values or () if v > 0]
    return min(positive) if values is not None and positive and min(values) >= 0 else None
