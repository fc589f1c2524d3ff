"""How much a non-negative number can add up to over a sequence (lemmas of totals and of windows)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np

from verify.checker.values.bent import single
from verify.checker.values.bounds import along, bounds, largest
from verify.checker.values.exact import above, below, sum_sides
from verify.checker.values.tables import Ramp, Table
from verify.checker.values.values import ZERO, Component, Key, Value, World, kept

Phi = Callable[[Fraction], Fraction]  # a non-decreasing function
Number = Callable[[Table], Fraction]


@dataclass(frozen=True, eq=False)
class Majorant:
    """|value| ≤ const + Σ over lags of a non-negative function of the letter there (Tables, starts included)."""

    const: Fraction
    letters: dict[int, Table]


@kept
def over_time(world: World, value: Value) -> Fraction:
    """A bound on Σ_t |value(t)| over all sequences of the language."""
    length, best = world.language.length, largest(world, value) * world.language.length
    for m in majorants(world, value):
        total = m.const * length
        for table in m.letters.values():
            total += world.language.total(table.dense()) + sum(table.start)
        best = min(best, total)
    return min(best, over_edges(world, along(world, value)))


def over_edges(world: World, here: np.ndarray) -> Fraction:
    """The total of what is within `here` at each edge, by how often a path takes an edge."""
    taken, repeats = np.abs(here).max(axis=0), world.language.graph.repeats
    return _exact_sum(taken[repeats]) * world.language.length + _exact_sum(taken[~repeats])


def _exact_sum(terms: np.ndarray) -> Fraction:
    """In Fractions: each distinct number once."""
    distinct, often = np.unique(terms, return_counts=True)
    return sum((Fraction(x) * n for x, n in zip(distinct.tolist(), often.tolist(), strict=True)), ZERO)


def _mapped(table: Table, phi: Phi, others: Fraction) -> np.ndarray:
    """φ(table + others) for each letter, rounded up."""
    values, which = table.classes()
    return np.array([above(phi(Fraction(v) + others)) for v in values.tolist()])[which]


def _monotone(ramp: Ramp) -> tuple[Phi | None, int]:
    """(φ, sign) with ramp(x) = φ(sign · x) for a non-decreasing φ; (None, 0) if there is none."""
    rising = all(s >= 0 for s in ramp.slopes)
    if not rising and any(s > 0 for s in ramp.slopes):
        return None, 0
    sign = 1 if rising else -1
    return (lambda x: ramp.at(min(max(int(sign * x), ramp.xs[0]), ramp.xs[-1]))), sign


@kept
def majorants(world: World, value: Value) -> list[Majorant]:
    """Upper bounds on |value| that are sums of functions of one letter each; at least one."""
    if len(value.terms) <= 1:
        return list(_of_component(world, *single(world, value)))
    total, rest = ZERO, value.const
    letters: dict[int, Table] = {}
    for key, component in value.terms.items():
        base = Fraction(component.base) if isinstance(component, Table) else ZERO
        rest += base
        part = next(_of_component(world, key, component.affine(Fraction(1), -base)))
        total += part.const
        for lag, table in part.letters.items():
            letters[lag] = _added(letters.get(lag), table)
    return [Majorant(total + abs(rest), letters)]


def _added(a: Table | None, b: Table) -> Table:
    """The sum, rounded up."""
    if a is None:
        return b
    return Table(sum_sides(a.dense(), b.dense())[1], tuple(x + y for x, y in zip(a.start, b.start, strict=True)))


def _of_component(world: World, key: Key, component: Component) -> Iterator[Majorant]:
    if isinstance(component, Table):
        base = Fraction(abs(component.base))
        dense = np.maximum(sum_sides(np.abs(component.dense()), np.array(-abs(component.base)))[1], 0.0)
        yield Majorant(base, {key[1]: Table(dense, tuple(max(abs(s) - base, ZERO) for s in component.start))})
        return
    component = component if component.hi > 0 else component.affine(Fraction(-1), ZERO)  # |value| is bounded
    root = world.roots[key[0]]
    if key[1] == 0 and root.kind == "form" and component.lo >= 0:
        yield from _of_form(root.parts[0], component)
    yield Majorant(max(abs(component.lo), abs(component.hi)), {})


def _of_form(shape: Value, ramp: Ramp) -> Iterator[Majorant]:
    """The lemma of windows: φ monotone, f = Σ f_j.

    Letter by letter: either f_j is at most its base b_j, or φ(f_j + Σ max of the others).

    So φ(f) ≤ Σ_j [f_j > b_j] φ(b_1 + … + b_(j−1) + f_j + max f_(j+1) + …) + φ(Σ b_j), in any order of the parts.
    """
    phi, sign = _monotone(ramp)
    if phi is None:
        return
    fixed = sum((c.hi if sign > 0 else -c.lo for c in shape.ramps.values()), ZERO)
    tables = {lag: c.affine(Fraction(sign), ZERO) for lag, c in shape.tables.items()}
    if not 1 <= len(tables) <= 3:
        return

    for order in permutations(tables):
        for base_of in (lambda t: Fraction(t.base), lambda t: t.lo):
            yield _split(order, tables, base_of, fixed, phi)


def _split(order: tuple[int, ...], tables: dict[int, Table], base_of: Number, fixed: Fraction, phi: Phi) -> Majorant:
    letters: dict[int, Table] = {}
    done = fixed
    for i, lag in enumerate(order):
        table, others = tables[lag], done + sum((tables[k].hi for k in order[i + 1 :]), ZERO)
        base = base_of(table)
        dense = _mapped(table, phi, others) * (table.dense() > below(base))
        letters[lag] = Table(dense, tuple(phi(s + others) if s > base else ZERO for s in table.start))
        done += base
    return Majorant(phi(done), letters)


def zero_where(world: World, value: Value, step: Value, least: Fraction) -> bool:
    """Whether the non-negative value is 0 at every position where `step` is at least `least`."""
    if value.constant or step.constant:
        return value.constant and not value.const
    (key, f), (at, d) = single(world, value), single(world, step)
    if key == at:
        return all(y == 0 for y, x in _pairs(world, key, f, d) if x >= least)
    if isinstance(f, Table) or key[1] or world.roots[key[0]].kind != "form":
        return False
    shape = world.roots[key[0]].parts[0]
    if at not in shape.terms or any(s < 0 for s in f.slopes) == any(s > 0 for s in f.slopes):
        return False
    part = shape.terms[at]
    rising = all(s >= 0 for s in f.slopes)
    lo, hi = bounds(world, Value(shape.const, {k: c for k, c in shape.terms.items() if k != at}))
    other = hi if rising else lo
    clip = lambda x: min(max(int(x), f.xs[0]), f.xs[-1])
    return all(f.at(clip(y + other)) == 0 for y, x in _pairs(world, at, part, d) if x >= least)


def _pairs(world: World, key: Key, f: Component, d: Component) -> Iterator[tuple[Fraction, Fraction]]:
    """All (f, d) at one and the same element of their common root."""
    yield from zip(f.start, d.start, strict=True)
    if isinstance(f, Table) or isinstance(d, Table):
        if not (isinstance(f, Table) and isinstance(d, Table)):
            raise TypeError("two components of one root are of two kinds")
        both = np.unique(np.stack([f.dense(), d.dense()]), axis=1)
        yield from ((Fraction(float(a)), Fraction(float(b))) for a, b in both.T)
        return
    root = world.roots[key[0]]
    points = root.values or (range(root.lo, root.hi + 1) if root.hi - root.lo < 4096 else None)
    if points is None:
        yield Fraction(1), Fraction(1 << 200)  # too many to look at: as if it were not 0 there
        return
    yield from ((f.at(x), d.at(x)) for x in points)
