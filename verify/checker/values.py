"""What a number of the model is, as a function of the input sequence: a normal form with exact facts.

A value is  const + the sum of components, each a function of one *root* k positions back. Roots are the letter
(`TOKEN`) and integers: sums that a rectifier bent (`form`), and states and products (`states.py`). Equal roots are
one root, so functions of one root are added and bent exactly, however many lanes carry them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from math import ceil, floor, gcd
from typing import Any

import numpy as np

from verify.checker.formats import Format, Rejected, exponent
from verify.checker.language import Graph, Language
from verify.checker.tables import MOST_VALUES, Ramp, Table, ramp_sum, table_sum

Component = Table | Ramp
Along = np.ndarray | None  # (2, edges): bounds of a number at the positions where a walk takes each edge
Facts = tuple[int, int, tuple[int, ...] | None]  # lo, hi and the values, of a root

TOKEN = -1
Key = tuple[int, int]  # (root, lag)
ZERO = Fraction(0)


@dataclass(frozen=True, eq=False)
class Root:
    """An integer lo ≤ x ≤ hi, one of `values` if these are known.

    kind and parts say what it is: "form" (a sum of components), or an operation on values. exact: up to this x the
    module's number is x itself; beyond it is only known to be at least `exact` (a count that outgrew its format).
    along: bounds at each edge of the input language, None where nothing depends on that.
    """

    id: int
    kind: str
    lo: int
    hi: int
    values: tuple[int, ...] | None
    parts: tuple
    exact: int | None = None
    along: np.ndarray | None = None


class Value:
    """const + the sum of the components; compared by `key`.

    upto: None where the module's number is this value. Else it is so while its one inexact root x is at most `upto`,
    and beyond it lies on the far side of the value at `upto`, whichever way the component slopes.
    """

    def __init__(self, const: Fraction, terms: Mapping[Key, Component], upto: int | None = None):
        self.const = const
        self.terms = dict(sorted(terms.items()))
        self.upto = upto
        self.range: tuple[Fraction, Fraction] | None = None
        self.facts: dict[str, Any] = {}  # what `mass` has found out

    @cached_property
    def key(self) -> tuple:
        return (self.const, tuple((k, c.key) for k, c in self.terms.items()))

    @cached_property
    def unit(self) -> int:
        """The largest e with every value a multiple of 2^e; 0 for the constant 0."""
        return min([c.unit for c in self.terms.values()] + ([exponent(self.const)] if self.const else []), default=0)

    @property
    def constant(self) -> bool:
        return not self.terms

    @property
    def zero(self) -> bool:
        return not self.terms and not self.const

    @cached_property
    def tables(self) -> dict[int, Table]:
        """The functions of a letter, by lag."""
        return {lag: c for (_, lag), c in self.terms.items() if isinstance(c, Table)}

    @cached_property
    def ramps(self) -> dict[Key, Ramp]:
        """The functions of integers."""
        return {key: c for key, c in self.terms.items() if isinstance(c, Ramp)}


@dataclass(eq=False)
class World:
    """The language, the float format and all roots met so far."""

    language: Language
    format: Format
    roots: list[Root] = field(default_factory=list)
    known: dict[tuple, Root] = field(default_factory=dict)
    rescaled: dict[tuple, tuple[Value, Value]] = field(default_factory=dict)
    zeros: dict[Key, tuple[Key, Value]] = field(default_factory=dict)  # by latch: (running sum, a value that is 0)

    def root(
        self, kind: str, key: tuple, facts: Facts, parts: tuple, exact: int | None = None, along: Along = None
    ) -> Root:
        """The root with this definition; new ones get the next number."""
        if (kind, key) not in self.known:
            lo, hi, values = facts
            if self.language.graph is not None:
                everywhere = np.repeat([[below(lo)], [above(hi)]], len(self.language.edges), axis=1)
                along = everywhere if along is None else _both(along, everywhere)
                lo, hi = max(lo, floor(along[0].min())), min(hi, ceil(along[1].max()))
            values = None if values is None else tuple(v for v in values if lo <= v <= hi)
            root = Root(len(self.roots), kind, lo, hi, values, parts, exact, along)
            self.roots.append(root)
            self.known[kind, key] = root
        return self.known[kind, key]


def constant(x: Fraction | int) -> Value:
    return Value(Fraction(x), {})


def of_letters(dense: np.ndarray) -> Value:
    """The value of a lane that the embedding fills."""
    return _normal({(TOKEN, 0): Table(dense)}, ZERO)


def of_root(root: Root, scale: Fraction) -> Value:
    """scale · x."""
    ends = sorted({root.lo, root.hi})
    return _normal({(root.id, 0): Ramp(ends, [scale * x for x in ends])}, ZERO)


def _normal(terms: Mapping[Key, Component], const: Fraction) -> Value:
    """Components that are 0 at the first letter or the least integer, and none that is 0 throughout."""
    kept: dict[Key, Component] = {}
    for key, component in _positions_at_one_lag(terms).items():
        const += component.first
        moved = component.affine(Fraction(1), -component.first)
        if moved.lo or moved.hi:
            kept[key] = moved
    return Value(const, kept)


def _positions_at_one_lag(terms: Mapping[Key, Component]) -> Mapping[Key, Component]:
    """Tables that do not tell letters apart are functions of the position: all move to the largest lag of a table."""
    tables = {lag: c for (_, lag), c in sorted(terms.items()) if isinstance(c, Table)}
    if len(tables) < 2:
        return terms
    top, last = tables.popitem()
    moved: set[Key] = set()
    for lag, table in tables.items():
        if not len(table.ids):
            letter = Fraction(table.base)
            past = Table(np.full(table.size, table.base), (letter,) * (top - lag) + table.start)
            last = table_sum([(Fraction(1), last), (Fraction(1), past)])
            moved.add((TOKEN, lag))
    return {key: c for key, c in terms.items() if key not in moved} | {(TOKEN, top): last}


def combine(terms: Iterable[tuple[Fraction, Value]], const: Fraction = ZERO) -> Value:
    """const + the sum of weight · value, exactly."""
    tables: dict[Key, list[tuple[Fraction, Table]]] = {}
    ramps: dict[Key, list[tuple[Fraction, Ramp]]] = {}
    for weight, value in terms:
        if weight:
            const += weight * value.const
            for key, component in value.terms.items():
                if isinstance(component, Table):
                    tables.setdefault(key, []).append((weight, component))
                else:
                    ramps.setdefault(key, []).append((weight, component))
    added: dict[Key, Component] = {k: table_sum(parts) for k, parts in tables.items()}
    return _normal(added | {k: ramp_sum(parts) for k, parts in ramps.items()}, const)


def scaled(value: Value, weight: Fraction) -> Value:
    return combine([(weight, value)])


def later(value: Value, k: int, letters: int) -> Value:
    """The value k positions back; before the sequence it is 0."""
    if not k:
        return value
    terms = {(root, lag + k): c.later(k) for (root, lag), c in value.terms.items()}
    if value.const:
        past = Table(np.full(letters, float(value.const)))
        past.start = (ZERO,) * k
        key = (TOKEN, k)
        here = value.tables.get(0)
        terms[key] = table_sum([(Fraction(1), past), (Fraction(1), here.later(k))]) if here else past
    result = _normal(terms, ZERO)
    result.upto = value.upto
    return result


def bounds(world: World, value: Value) -> tuple[Fraction, Fraction]:
    """(lo, hi) over all sequences and positions. Exclusive gates count once: see `_gated`."""
    if value.range is None:
        found = [_bounds(world, v) for v in (value, *_rewritten(world, value))]
        value.range = (max(lo for lo, _ in found), min(hi for _, hi in found))
    return value.range


def _rewritten(world: World, value: Value) -> list[Value]:
    """The value with each c · (sum − latch of it) as what is counted since."""
    found = []
    for latched in value.ramps.keys() & world.zeros.keys():
        total, zero = world.zeros[latched]
        a, b = (v.slopes[0] if (v := value.ramps.get(k)) and v.linear and v.slopes else ZERO for k in (total, latched))
        per = -zero.ramps[latched].slopes[0]
        if a * b * per < 0:
            found.append(combine([(Fraction(1), value), (-min(a, -b / per, key=abs), zero)]))
    return found


def _bounds(world: World, value: Value) -> tuple[Fraction, Fraction]:
    lo = hi = value.const
    gated: dict[Key, list[tuple[Root, Ramp]]] = {}
    for key, component in value.terms.items():
        gate = _gated(world.roots[key[0]], component, key[1]) if isinstance(component, Ramp) else None
        if gate and isinstance(component, Ramp):
            gated.setdefault(gate, []).append((world.roots[key[0]], component))
        else:
            lo, hi = lo + component.lo, hi + component.hi
    for parts in gated.values():
        low, high = _gated_bounds(world, parts)
        lo, hi = lo + low, hi + high
    return lo, hi


def along(world: World, value: Value) -> Along:
    """Bounds at each edge of the input language (lemma E); None where there is one state only."""
    graph = world.language.graph
    if graph is None:
        return None
    if "along" not in value.facts:
        value.facts["along"] = reduce(_both, (_along(world, graph, v) for v in (value, *_rewritten(world, value))))
    return value.facts["along"]


def _along(world: World, graph: Graph, value: Value) -> np.ndarray:
    found, size = np.full((2, len(world.language.edges)), float(value.const)), abs(value.const)
    for (root, lag), component in value.terms.items():
        here = _component_along(world, graph, component, root)
        for _ in range(lag):
            here = graph.before(here, (below(min(component.start)), above(max(component.start))))
        found = found + here
        size += max(abs(component.lo), abs(component.hi))
    if size >= Fraction(2) ** (52 + value.unit):  # where float64 may round
        found += np.array([[-1.0], [1.0]]) * above(size) * 2.0**-40
    return found


def _component_along(world: World, graph: Graph, component: Component, root: int) -> np.ndarray:
    if isinstance(component, Table):
        return graph.of_letters(component.dense())
    known = world.roots[root].along
    if known is None:
        raise TypeError("a root without bounds along the walks of its language")
    ends, at = np.unique(known, axis=1, return_inverse=True)
    found = [component.between(floor(lo), ceil(hi)) for lo, hi in ends.T.tolist()]
    return np.array([[below(lo), above(hi)] for lo, hi in found]).T[:, at.reshape(-1)]


def _both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])


def below(x: Fraction | int) -> float:
    """A float64 at most x."""
    return -above(-x)


def above(x: Fraction | int) -> float:
    """A float64 at least x: x itself where it is one."""
    return float(x) if Fraction(float(x)) >= x else float(np.nextafter(float(x), np.inf))


def corners(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Bounds of a product at each edge; a little more where float64 may round."""
    found = np.stack([x * y for x in a for y in b])
    slack = np.abs(found) * 2.0**-50 * (np.abs(found) >= 2.0**52)
    return np.stack([(found - slack).min(axis=0), (found + slack).max(axis=0)])


def _gated(root: Root, component: Ramp, lag: int) -> Key | None:
    """The letter component that a linear product is gated by, if there is one."""
    if root.kind != "product" or lag or not component.linear:
        return None
    gate: Value = root.parts[2]
    return next(iter(gate.terms)) if len(gate.terms) == len(gate.tables) == 1 else None


def _gated_bounds(world: World, parts: list[tuple[Root, Ramp]]) -> tuple[Fraction, Fraction]:
    """Bounds of a sum of products x · g whose gates g are functions of one letter: the worst letter counts.

    A component is slope · (root − root.lo), and the root is x · g · (the first of its parts).
    """
    rest = [ZERO, ZERO]  # for the letters where every gate has its base value
    letters: dict[int, list[Fraction]] = {}  # what others add to that
    starts: list[list[list[Fraction]]] = []
    for root, ramp in parts:
        scale, operand, gate = root.parts
        slope = ramp.slopes[0] if ramp.slopes else ZERO
        ends = [slope * scale * b for b in bounds(world, operand)]
        table = next(iter(gate.terms.values())).affine(Fraction(1), gate.const)

        def reach(g: Fraction, ends=ends, offset=slope * root.lo) -> list[Fraction]:
            return [min(e * g for e in ends) - offset, max(e * g for e in ends) - offset]

        base = reach(Fraction(table.base))
        rest = [a + b for a, b in zip(rest, base, strict=True)]
        for letter, g in zip(table.ids.tolist(), table.vals.tolist(), strict=True):
            more = letters.setdefault(letter, [ZERO, ZERO])
            letters[letter] = [m + a - b for m, a, b in zip(more, reach(Fraction(g)), base, strict=True)]
        starts.append([reach(g) for g in table.start])
    lows = [rest[0] + min([m[0] for m in letters.values()], default=ZERO)] + [rest[0]]
    highs = [rest[1] + max([m[1] for m in letters.values()], default=ZERO)] + [rest[1]]
    for at_start in zip(*starts, strict=True):
        lows.append(sum((r[0] for r in at_start), ZERO))
        highs.append(sum((r[1] for r in at_start), ZERO))
    return min(lows), max(highs)


def largest(world: World, value: Value) -> Fraction:
    """A bound on |value|."""
    lo, hi = bounds(world, value)
    return max(abs(lo), abs(hi))


def single(world: World, value: Value) -> tuple[Key, Component]:
    """The value as one component, its constant included; sums of several get a root of their own.

    A form is divided by the greatest common divisor of its numbers and given a sign, so that forms that differ by
    a factor and a constant share one root.
    """
    if len(value.terms) == 1:
        ((key, component),) = value.terms.items()
        return key, component.affine(Fraction(1), value.const)
    if not value.terms:
        return (TOKEN, 0), Table(np.full(world.language.tokens, float(value.const)))
    bare = Value(ZERO, value.terms)
    divisor = _divisor(bare)
    shape = divided(bare, divisor)
    low, high = bounds(world, shape)
    values = _sums([c.values for c in shape.terms.values()])
    facts = (int(low), int(high), None if values is None else tuple(int(v) for v in values))
    root = world.root("form", shape.key, facts, (shape,), along=along(world, shape))
    return (root.id, 0), Ramp(*_line(root, divisor, value.const))


def _line(root: Root, scale: Fraction, shift: Fraction) -> tuple[list[int], list[Fraction]]:
    ends = sorted({root.lo, root.hi})
    return ends, [scale * x + shift for x in ends]


def _divisor(value: Value) -> Fraction:
    """The greatest common divisor of the constant and all numbers of the components, with the sign of the first."""
    numbers = [value.const]
    for component in value.terms.values():
        if isinstance(component, Table):
            numbers += [
                Fraction(float(v))
                for v in (component.letter_values if len(component.letter_values) < 64 else _gcd_of(component))
            ]
            numbers += component.start
        else:
            numbers += [*component.ys, *component.slopes, *component.start]
    unit = min(exponent(x) for x in numbers if x)
    common = gcd(*(int(x / Fraction(2) ** unit) for x in numbers))
    return Fraction(common) * Fraction(2) ** unit * _sign(next(iter(value.terms.values())))


def _gcd_of(table: Table) -> list[float]:
    e = table.unit
    whole = np.ldexp(table.letter_values, -e)
    if np.abs(whole).max() >= 2.0**53:
        raise Rejected("a function of a token needs more than the 53 bits that the checker carries")
    return [float(np.ldexp(float(np.gcd.reduce(np.abs(whole).astype(np.int64))), e))]


def _sign(component: Component) -> int:
    """The sign of the first number that is not 0."""
    if isinstance(component, Ramp):
        return 1 if next((y for y in (*component.ys, *component.start) if y), 1) > 0 else -1
    nonzero = component.vals[component.vals != 0] if not component.base else component.dense()[component.dense() != 0]
    if len(nonzero):
        return 1 if nonzero[0] > 0 else -1
    return 1 if next((s for s in component.start if s), 1) > 0 else -1


def _sums(sets: list[tuple[Fraction, ...] | None]) -> tuple[Fraction, ...] | None:
    """Every sum of one member of each set; None if a set is unknown or there are too many."""
    total = {ZERO}
    for values in sets:
        if values is None or len(total) * len(values) > 16 * MOST_VALUES:
            return None
        total = {a + b for a in total for b in values}
        if len(total) > MOST_VALUES:
            return None
    return tuple(sorted(total))


def values_of(world: World, value: Value) -> tuple[Fraction, ...] | None:
    """A finite set that holds every value, or None."""
    sets = [component_values(world, key, c) for key, c in value.terms.items()]
    return _sums([(value.const,), *sets])


def component_values(world: World, key: Key, component: Component) -> tuple[Fraction, ...] | None:
    known = world.roots[key[0]].values if isinstance(component, Ramp) else None
    if known is not None and isinstance(component, Ramp):
        return tuple(sorted({component.at(x) for x in known} | set(component.start)))
    return component.values


def relu(world: World, value: Value) -> Value:
    """max(value, 0)."""
    if value.constant:
        return constant(max(value.const, ZERO))
    key, component = single(world, value)
    return _normal({key: component.relu()}, ZERO)


def product(world: World, a: Value, b: Value) -> Value:
    """a · b: exactly one component where both are functions of one root, else a root of its own, linear in a."""
    if b.constant or a.constant:
        return scaled(a, b.const) if b.constant else scaled(b, a.const)
    if a.terms.keys() == b.terms.keys():
        (key, f), (other, g) = single(world, a), single(world, b)
        if isinstance(f, Table) and isinstance(g, Table):
            return _normal({key: _table_product(f, g)}, ZERO)
        if key == other and isinstance(f, Ramp) and isinstance(g, Ramp) and f.xs[-1] - f.xs[0] < MOST_VALUES // 8:
            xs = range(f.xs[0], f.xs[-1] + 1)
            start = tuple(x * y for x, y in zip(f.start, g.start, strict=True))
            return _normal({key: Ramp(xs, [f.at(x) * g.at(x) for x in xs], start)}, ZERO)
    scale, a = normalised(a)
    unit = Fraction(2) ** (a.unit + b.unit)
    ends = [x * y / unit for x in bounds(world, a) for y in bounds(world, b)]
    sets = values_of(world, a), values_of(world, b)
    values = None
    if sets[0] is not None and sets[1] is not None and len(sets[0]) * len(sets[1]) <= MOST_VALUES:
        values = tuple(sorted({int(x * y / unit) for x in sets[0] for y in sets[1]}))
    facts = (int(min(ends)), int(max(ends)), values)
    at, by = along(world, a), along(world, b)
    walks = None if at is None or by is None else corners(at, by) / float(unit)
    root = world.root("product", (a.key, b.key), facts, (unit**-1, a, b), along=walks)
    return of_root(root, unit * scale)


def _table_product(f: Table, g: Table) -> Table:
    dense = f.dense() * g.dense()
    reach = max(abs(f.lo), abs(f.hi)) * max(abs(g.lo), abs(g.hi))
    if dense.any() and reach >= Fraction(2) ** (53 + f.unit + g.unit):
        raise Rejected("a product of functions of a token needs more than the 53 bits that the checker carries")
    return Table(dense, tuple(x * y for x, y in zip(f.start, g.start, strict=True)))


def normalised(value: Value) -> tuple[Fraction, Value]:
    """(scale, shape) with value = scale · shape, the same shape for proportional values that are not constant."""
    scale = _divisor(value)
    return scale, divided(value, scale)


def divided(value: Value, divisor: Fraction) -> Value:
    """value / divisor, a divisor of all its numbers."""
    return Value(value.const / divisor, {k: c.over(divisor) for k, c in value.terms.items()})
