"""How much a non-negative number can add up to over a sequence (lemmas M and W of docs/proofs.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import permutations

import numpy as np

from verify.checker.bent import single
from verify.checker.bounds import along, bounds, corners, largest
from verify.checker.tables import MOST_VALUES, Ramp, Table
from verify.checker.values import ZERO, Component, Key, Value, World, combine

Phi = Callable[[Fraction], Fraction]  # a non-decreasing function
Number = Callable[[Table], Fraction]


@dataclass(frozen=True, eq=False)
class Majorant:
    """|value| ≤ const + Σ over lags of a non-negative function of the letter there (Tables, starts included)."""

    const: Fraction
    letters: dict[int, Table]


def mass(world: World, value: Value) -> Fraction:
    """A bound on Σ_t |value(t)| over all sequences of the language."""
    if "mass" not in value.facts:
        value.facts["mass"] = _mass(world, value)
    return value.facts["mass"]


def _mass(world: World, value: Value) -> Fraction:
    length, best = world.language.length, largest(world, value) * world.language.length
    for m in sorted_majorants(world, value):
        total = m.const * length
        for table in m.letters.values():
            total += world.language.mass(table.dense()) + sum(table.start)
        best = min(best, total)
    graph, here = world.language.graph, along(world, value)
    if graph is None or here is None:
        return best
    size, best = np.abs(here).max(axis=0), min(best, _over_edges(world, here))
    heaviest = np.inf if best <= largest(world, value) else graph.heaviest(size)
    return best if heaviest == np.inf else min(best, _rounded(heaviest))


def _over_edges(world: World, here: np.ndarray) -> Fraction:
    """The mass of what is within `here` at each edge, by how often a walk takes an edge."""
    times = np.array([float(world.language.length) if e.repeats else 1.0 for e in world.language.edges])
    return _rounded(float((np.abs(here).max(axis=0) * times).sum()))


def _rounded(total: float) -> Fraction:
    """A sum of float64 numbers: exact if they are whole, and what rounding may have taken away else."""
    return Fraction(total) if total.is_integer() and total < 2.0**53 else Fraction(total) * (1 + Fraction(1, 1 << 20))


def sorted_majorants(world: World, value: Value) -> list[Majorant]:
    """`majorants`, once."""
    if "majorants" not in value.facts:
        value.facts["majorants"] = list(majorants(world, value))
    return value.facts["majorants"]


def mass_of_product(world: World, b: Value, x: Value) -> Fraction:
    """A bound on Σ_t |b(t) · x(t)|: where b is large because of a letter, x is what that letter leaves it (lemma W)."""
    top = largest(world, x)
    best = min(mass(world, b) * top, largest(world, b) * mass(world, x))
    at, by = along(world, b), along(world, x)
    seen, left = _given_letter(world, x), None if by is None else np.abs(by).max(axis=0)
    for m in sorted_majorants(world, b):
        if m.const or any(t.base for t in m.letters.values()):
            continue
        total = ZERO
        for lag, table in sorted(m.letters.items()):
            here = table.vals * seen[lag][table.ids] if lag in seen else table.vals * float(top)
            bound = world.language.mass(here, letters=table.ids)
            if left is not None:
                bound = min(bound, world.language.mass(table.vals, _later(world, left, lag), table.ids))
            total += bound * (1 + Fraction(1, 1 << 20)) + sum(table.start) * top
        best = min(best, total)
    counted = _by_count(world, b, x)
    best = best if counted is None else min(best, counted)
    return best if at is None or by is None else min(best, _over_edges(world, corners(at, by)))


def _later(world: World, sizes: np.ndarray, lag: int) -> np.ndarray:
    """For each edge: the largest of `sizes` at the edges that a walk can take `lag` steps later; 0 where it ends."""
    graph = world.language.graph
    return reduce(lambda found, _: graph.following(found), range(lag), sizes) if graph is not None else sizes


def _by_count(world: World, b: Value, x: Value) -> Fraction | None:
    """Where b is a function of a running sum that grows wherever x is not 0, it takes each value at most once there."""
    (key, ramp), top = single(world, b), largest(world, x)
    root = world.roots[key[0]] if isinstance(ramp, Ramp) else None
    if root is None or isinstance(ramp, Table) or root.kind != "sum" or key[1] or root.hi - root.lo > MOST_VALUES:
        return None
    drive = root.parts[1]
    if bounds(world, drive)[0] < 0 or bounds(world, x)[0] < 0:
        return None
    falling = combine([(Fraction(-1), drive)])
    if bounds(world, drive)[0] == 0 and not zero_where(world, x, falling, ZERO):
        return None
    return top * sum((abs(ramp.at(s)) for s in range(root.lo, root.hi + 1)), ZERO)


def _given_letter(world: World, value: Value) -> dict[int, np.ndarray]:
    """For some lags: a bound on |value| for each letter there."""
    if "given" not in value.facts:
        value.facts["given"] = _find_given_letter(world, value)
    return value.facts["given"]


def _find_given_letter(world: World, value: Value) -> dict[int, np.ndarray]:
    if len(value.terms) != 1:
        return {}
    key, component = single(world, value)
    if isinstance(component, Table):
        return {key[1]: np.abs(component.dense())}
    root = world.roots[key[0]]
    if key[1] or root.kind != "form" or component.lo < 0:
        return {}
    phi, sign = _monotone(component)
    if phi is None:
        return {}
    shape: Value = root.parts[0]
    top = sum((c.hi if sign > 0 else -c.lo for c in shape.terms.values()), ZERO)
    found = {}
    for lag, table in shape.tables.items():
        others = top - (table.hi if sign > 0 else -table.lo)
        bound = {float(v): float(phi(sign * Fraction(float(v)) + others)) for v in table.letter_values}
        found[lag] = _mapped(table, bound)
    return found


def _mapped(table: Table, values: dict[float, float]) -> np.ndarray:
    dense = np.full(table.size, values.get(table.base, 0.0))
    dense[table.ids] = np.array([values[v] for v in table.vals.tolist()])
    return dense


def _monotone(ramp: Ramp) -> tuple[Phi | None, int]:
    """(φ, sign) with ramp(x) = φ(sign · x) for a non-decreasing φ; (None, 0) if there is none."""
    rising = all(s >= 0 for s in ramp.slopes)
    if not rising and any(s > 0 for s in ramp.slopes):
        return None, 0
    sign = 1 if rising else -1
    return (lambda x: ramp.at(min(max(int(sign * x), ramp.xs[0]), ramp.xs[-1]))), sign


def majorants(world: World, value: Value) -> Iterator[Majorant]:
    """Upper bounds on |value| that are sums of functions of one letter each; at least one."""
    if len(value.terms) <= 1:
        yield from _of_component(world, *single(world, value))
        return
    total, rest = ZERO, value.const
    letters: dict[int, Table] = {}
    for key, component in value.terms.items():
        base = Fraction(component.base) if isinstance(component, Table) else ZERO
        rest += base
        part = next(_of_component(world, key, component.affine(Fraction(1), -base)))
        total += part.const
        for lag, table in part.letters.items():
            letters[lag] = _added(letters.get(lag), table)
    yield Majorant(total + abs(rest), letters)


def _added(a: Table | None, b: Table) -> Table:
    return b if a is None else combine_tables(a, b)


def combine_tables(a: Table, b: Table) -> Table:
    return Table(a.dense() + b.dense(), tuple(x + y for x, y in zip(a.start, b.start, strict=True)))


def _of_component(world: World, key: Key, component: Component) -> Iterator[Majorant]:
    if isinstance(component, Table):
        base = Fraction(abs(component.base))
        dense = np.maximum(np.abs(component.dense()) - float(base), 0.0)
        yield Majorant(base, {key[1]: Table(dense, tuple(max(abs(s) - base, ZERO) for s in component.start))})
        return
    component = component if component.hi > 0 else component.affine(Fraction(-1), ZERO)  # |value| is bounded
    root = world.roots[key[0]]
    if key[1] == 0 and root.kind == "product" and component.linear and component.at(0) == 0:
        yield from _of_product(world, root.parts, abs(component.slopes[0]) if component.slopes else ZERO)
    if key[1] == 0 and root.kind == "form" and component.lo >= 0:
        yield from _of_form(world, root.parts[0], component)
    yield Majorant(max(abs(component.lo), abs(component.hi)), {})


def _of_product(world: World, parts: tuple, slope: Fraction) -> Iterator[Majorant]:
    """slope · scale · |a · b|: either factor at its largest."""
    scale, a, b = parts
    for x, y in ((a, b), (b, a)):
        for m in majorants(world, x):
            factor = slope * scale * largest(world, y)
            letters = {lag: table.affine(factor, ZERO) for lag, table in m.letters.items()}
            yield Majorant(m.const * factor, letters)


def _of_form(world: World, shape: Value, ramp: Ramp) -> Iterator[Majorant]:
    """Lemma W: φ monotone, f = Σ f_j.

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
        dense = _mapped(
            table,
            {float(v): float(phi(Fraction(float(v)) + others)) if v > base else 0.0 for v in table.letter_values},
        )
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
