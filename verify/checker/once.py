"""Writes that stop themselves: x̂ falls with what a memory says was written before (lemma F)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

from verify.checker.bounds import bounds, largest, values_of
from verify.checker.tables import Ramp
from verify.checker.values import ZERO, Root, Value, World, constant, multiple, normalised
from verify.checker.windows import TooLarge, ends_of, is_window, join, letters_of, reach

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
    for scale, w, columns, gate in _memories(world, memory):
        least = _least_positive(world, gate)
        step = _least_step(world, w, columns, column) if bounds(world, w)[0] >= 0 else None
        flags = tuple(v for v in (w, gate) if not v.constant)
        if step is not None and least is not None and _only_where(world, drives, flags):
            return scale * step * least
    return None


def _memories(world: World, root: Root) -> Iterator[tuple[Fraction, Value, tuple, Value]]:
    """(scale, w, columns, gate) where the root is scale · gate · Σ_n C_n Σ B_n w; a running sum behind a gate is of one
    column.
    """
    if root.kind == "memory":
        yield 1 / root.parts[0], *root.parts[1:], constant(1)
    for held, gate in permutations(root.parts[1:]) if root.kind == "product" else ():
        size, summed = multiple(world, held)
        if summed is not None and summed.kind == "memory":
            yield root.parts[0] * size / summed.parts[0], *summed.parts[1:], gate
        if summed is None or summed.kind != "sum":
            continue
        times, driven = multiple(world, summed.parts[1])
        if driven is not None and driven.kind == "product":
            for w, b in permutations(driven.parts[1:]):
                yield root.parts[0] * size / summed.parts[0] * times * driven.parts[0], w, ((b, gate),), constant(1)


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


def _least_step(world: World, w: Value, columns: tuple, column: Value) -> Fraction | None:
    """γβ·κ_min²·w_min for the column of the memory that is written and read like this one."""
    least_w = _least_positive(world, w)
    if least_w is None or column.constant:
        return None
    shape = normalised(column)[1]
    kappa = _least_positive(world, column)
    for b, c in columns:
        if b.constant or c.constant or kappa is None:
            continue
        (beta, b_shape), (gamma, c_shape) = normalised(b), normalised(c)
        if b_shape.key == c_shape.key == shape.key and bounds(world, b)[0] >= 0 and bounds(world, c)[0] >= 0:
            return beta * gamma * (kappa / normalised(column)[0]) ** 2 * least_w
    return None


def _least_positive(world: World, value: Value) -> Fraction | None:
    values = values_of(world, value)
    positive = [v for v in values or () if v > 0]
    return min(positive) if values is not None and positive and min(values) >= 0 else None
