"""Writes that stop themselves: x̂ falls with what a memory says was written before (lemma F)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

from verify.checker.bounds import bounds, largest, values_of
from verify.checker.mass import zero_where
from verify.checker.tables import Ramp
from verify.checker.values import ZERO, Component, Key, Root, Value, World, multiple, normalised

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
    for scale, w, columns in _memories(world, memory):
        step = _least_step(world, w, columns, column) if bounds(world, w)[0] >= 0 else None
        if step is not None and (w.constant or zero_where(world, drives, Value(-w.const, _negated(w)), ZERO)):
            return scale * step
    return None


def _memories(world: World, root: Root) -> Iterator[tuple[Fraction, Value, tuple]]:
    """(scale, w, columns) where the root is scale · Σ_n C_n Σ B_n w; a running sum behind a gate is of one column."""
    if root.kind == "memory":
        yield 1 / root.parts[0], *root.parts[1:]
    for total, query in permutations(root.parts[1:]) if root.kind == "product" else ():
        size, summed = multiple(world, total)
        if summed is None or summed.kind != "sum":
            continue
        times, driven = multiple(world, summed.parts[1])
        if driven is not None and driven.kind == "product":
            for w, b in permutations(driven.parts[1:]):
                yield root.parts[0] * size / summed.parts[0] * times * driven.parts[0], w, ((b, query),)


def _negated(value: Value) -> dict[Key, Component]:
    return {k: c.affine(Fraction(-1), ZERO) for k, c in value.terms.items()}


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
