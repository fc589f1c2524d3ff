"""A normal form of values: equal for two values only if they are the same function of the input sequence (part C).

Windows are compared as functions of letters. States are linear in what they store, so all that is stored under one
flag, one query or none is added up first. What is bent, multiplied or delayed is compared by the normal form of what
it is made of. Unequal normal forms prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from hashlib import blake2b
from itertools import product as iterproduct

import numpy as np

from verify.checker.formats import exponent
from verify.checker.states import running_sum
from verify.checker.tables import Ramp
from verify.checker.values import (
    ZERO,
    Key,
    Root,
    Value,
    World,
    bounds,
    combine,
    constant,
    normalised,
    product,
    relu,
)
from verify.checker.windows import Letters, is_window, is_window_root, pieces, plus, reach, times, window_key

Factors = tuple[Value, ...]
Terms = list[tuple[Fraction, Factors]]


def digest(key: object) -> str:
    return blake2b(repr(key).encode(), digest_size=16).hexdigest()


class Meaning:
    """Normal forms of the values of one world; `key` of equal functions is mostly equal, of others never."""

    def __init__(self, world: World):
        self.world = world
        self._keys: dict[tuple, tuple] = {}

    def key(self, value: Value) -> tuple:
        if value.key not in self._keys:
            self._keys[value.key] = self._key(value)
        return self._keys[value.key]

    def _straightened(self, value: Value) -> Value:
        """Bent forms without their first slope, in which they are linear; those that tell the top alone as products."""
        terms = []
        for (root, lag), ramp in value.ramps.items():
            made = self.world.roots[root]
            if lag or made.kind != "form" or is_window_root(self.world, made):
                continue
            top = self._all_at_top(made, ramp)
            if top is not None:
                terms += [(Fraction(-1), Value(ZERO, {(root, lag): ramp})), (ramp.ys[-1], top)]
            elif ramp.slopes and ramp.slopes[0]:
                line = Ramp([made.lo, made.hi], [ramp.slopes[0] * made.lo, ramp.slopes[0] * made.hi])
                terms += [(Fraction(-1), Value(ZERO, {(root, lag): line})), (ramp.slopes[0], made.parts[0])]
        return self._straightened(combine([(Fraction(1), value), *terms])) if terms else value

    def _all_at_top(self, form: Root, ramp: Ramp) -> Value | None:
        """[x = hi] as a product, where that is what the ramp tells: a sum is at its top where all its parts are."""
        if len(ramp.xs) < 2 or any(ramp.ys[:-1]) or ramp.xs[-1] - ramp.xs[-2] != 1:
            return None
        pure, rest = self._split(form.parts[0])
        if any(lag for _, lag in rest) or sum((c.hi for c in form.parts[0].terms.values()), ZERO) != form.hi:
            return None
        if pure.unit < 0:
            return None
        result = relu(self.world, combine([(Fraction(1), pure)], 1 - sum((c.hi for c in pure.terms.values()), ZERO)))
        for place, component in rest.items():
            result = product(self.world, Value(ZERO, {place: _top(component)}), result)
        return result

    def _split(self, value: Value) -> tuple[Value, dict[Key, Ramp]]:
        """The part that is a window, without the constant, and the other components."""
        rest = {k: c for k, c in value.ramps.items() if not is_window_root(self.world, self.world.roots[k[0]])}
        return Value(ZERO, {k: c for k, c in value.terms.items() if k not in rest}), rest

    def _key(self, value: Value) -> tuple:
        value = self._straightened(value)
        window, rest = self._split(value)
        const, items = value.const, _Items(self)
        for (root, lag), ramp in rest.items():
            const += items.add(self.world.roots[root], lag, ramp)
        return self._sum([(Fraction(1), (Value(const, window.terms),))]), items.key()

    def _sum(self, terms: Iterable[tuple[Fraction, Factors]]) -> tuple:
        """The normal form of a sum of products."""
        windows: Terms = []
        others: Terms = []
        for weight, factors in self._expanded(list(terms)):
            pure = all(is_window(self.world, f) for f in factors)
            (windows if pure else others).append((weight, factors))
        depth = max((reach(self.world, f) for _, factors in windows for f in factors), default=0)
        total = pieces(self.world, constant(0), depth)
        for weight, factors in windows:
            part = pieces(self.world, constant(1), depth)
            for f in factors:
                part = times(part, pieces(self.world, f, depth))
            total = plus(total, part, weight)
        return window_key(total), tuple(sorted(self._products(others)))

    def _expanded(self, terms: list[tuple[Fraction, Factors]]) -> Iterator[tuple[Fraction, Factors]]:
        """Products of sums as sums of products: each factor a window, or one component that is 0 where its root is."""
        for weight, factors in terms:
            split: list[Terms] = [[(weight, ())], *(self._parts(f) for f in factors)]
            for choice in iterproduct(*split):
                total = Fraction(1)
                for w, _ in choice:
                    total *= w
                yield total, tuple(f for _, part in choice for f in part)

    def _parts(self, value: Value) -> list[tuple[Fraction, Factors]]:
        if is_window(self.world, value):
            return [(Fraction(1), (value,))]
        value = self._straightened(value)
        window, others = self._split(value)
        rest: Terms = []
        const = value.const
        for place, component in others.items():
            slope = component.slopes[0] if component.slopes else ZERO
            base = component.ys[0] - slope * component.xs[0]
            const += base
            scale, shape = normalised(Value(ZERO, {place: component.affine(Fraction(1), -base)}))
            rest.append((scale, (shape,)))
        pure = Value(const, window.terms)
        return [*([] if pure.zero else [(Fraction(1), (pure,))]), *rest]

    def _products(self, terms: list[tuple[Fraction, Factors]]) -> list[tuple[str, str]]:
        """Products that are no windows: their windows added up for each product of the other factors."""
        groups: dict[str, list] = {}
        for weight, factors in terms:
            pure = [f for f in factors if is_window(self.world, f)]
            rest = sorted(digest(self.key(f)) for f in factors if not is_window(self.world, f))
            groups.setdefault(digest(rest), []).append((weight, tuple(pure)))
        found = [(rest, self._sum(group)) for rest, group in groups.items()]
        return [(rest, digest(key)) for rest, key in found if key != self._sum([])]

    def gate(self, value: Value) -> tuple[Fraction, tuple]:
        """(scale, key) of a gate or a query."""
        if not is_window(self.world, value):
            return Fraction(1), self.key(value)
        scale, part = _unit(pieces(self.world, value, reach(self.world, value)))
        return scale, window_key(part)


def _unit(parts: list[Letters]) -> tuple[Fraction, list[Letters]]:
    """(scale, parts / scale): a power of two with the sign of the first entry that is not 0, in the order of the
    letters.
    """
    for part in parts:
        table = part.table
        for place, lag in enumerate(sorted(part.axes)):
            table = table.take(part.axes[lag][:64], axis=place)
        found = table.reshape(-1)[table.reshape(-1) != 0]
        if len(found):
            scale = Fraction(2) ** exponent(found[0]) * (1 if found[0] > 0 else -1)
            return scale, [times([p], [Letters({}, np.array(float(1 / scale)))])[0] for p in parts]
    return Fraction(1), parts


class _Items:
    """The components of a value that are no windows, gathered by what they have in common."""

    def __init__(self, meaning: Meaning):
        self.meaning = meaning
        self.sums: dict[tuple, list] = {}  # what is added up, by (lag, query): None for no query
        self.latches: dict[tuple, list] = {}  # by (lag, query, flag)
        self.products: dict[tuple, list] = {}  # by lag
        self.lines: dict[tuple, list] = {}  # other components, by root and lag: piecewise linear parts to add

    def add(self, root: Root, lag: int, ramp: Ramp) -> Fraction:
        """Gather a component; returns the constant that is left of it."""
        slope = ramp.slopes[0] if ramp.slopes else ZERO
        at_zero = ramp.ys[0] - slope * ramp.xs[0]
        plain = ramp.linear and all(s == at_zero for s in ramp.start) and (not lag or not at_zero)
        if plain and self._linear(root, slope, (lag, None)):
            return at_zero
        key = (lag, self._root_key(root))
        self.lines.setdefault(key, []).append(ramp)
        return ZERO

    def _linear(self, root: Root, slope: Fraction, place: tuple) -> bool:
        """slope · root, an operation linear in its operand, taken apart; False for other roots."""
        if root.kind == "sum":
            unit, shape = root.parts
            self.sums.setdefault(place, []).append((slope / unit, (shape,)))
        elif root.kind == "memory":
            unit, shape, columns = root.parts
            for b, c in columns:
                scale, query = self.meaning.gate(c)
                self.sums.setdefault((place[0], query), []).append((slope / unit * scale, (b, shape)))
        elif root.kind == "latch":
            unit, shape, flag = root.parts
            self.latches.setdefault((*place, self.meaning.key(flag)), []).append((slope / unit, (shape, flag)))
        elif root.kind == "product":
            scale, a, b = root.parts
            state, gate = (a, b) if is_window(self.meaning.world, b) else (b, a)
            if place[1] is not None:
                return False
            if not is_window(self.meaning.world, gate) or not self._all_states(state):
                self.products.setdefault(place, []).append((slope * scale, (a, b)))
                return True
            weight, query = self.meaning.gate(gate)
            for key, component in state.ramps.items():
                slope_in = component.slopes[0] if component.slopes else ZERO
                inner = self.meaning.world.roots[key[0]]
                self._linear(inner, slope * scale * weight * slope_in, (place[0], query))
        elif root.kind == "count":  # since the last reset: all that was counted, without all that was counted by then
            unit, shape, step = root.parts
            flag, total = _flag(self.meaning.world, step), running_sum(self.meaning.world, shape, "a count")
            self.sums.setdefault(place, []).append((slope / unit, (shape,)))
            latches = self.latches.setdefault((*place, self.meaning.key(flag)), [])
            latches.append((-slope / unit, (total, flag)))
        else:
            return False
        return True

    def _all_states(self, value: Value) -> bool:
        """Whether a value is a sum of states that are 0 at first, without a constant or delay."""
        for (root, lag), c in value.ramps.items():
            if lag or not c.linear or self.meaning.world.roots[root].kind not in ("sum", "latch"):
                return False
        at_zero = sum((c.ys[0] - (c.slopes[0] if c.slopes else ZERO) * c.xs[0] for c in value.ramps.values()), ZERO)
        return not value.tables and value.const == -at_zero

    def _root_key(self, root: Root) -> tuple:
        """What a root is."""
        meaning = self.meaning
        if root.kind == "memory":
            columns = sorted(digest((meaning.gate(c), meaning.key(b))) for b, c in root.parts[2])
            return root.kind, root.parts[0], meaning.key(root.parts[1]), tuple(columns)
        if root.kind == "product":
            return root.kind, root.parts[0], tuple(sorted(digest(meaning.key(v)) for v in root.parts[1:]))
        if root.kind == "count":
            unit, shape, step = root.parts
            return root.kind, unit, meaning.key(shape), meaning.key(_flag(meaning.world, step))
        return (root.kind, *(meaning.key(p) if isinstance(p, Value) else p for p in root.parts))

    def key(self) -> tuple:
        found: list[tuple[str, tuple, tuple | None]] = []
        for place, terms in self.sums.items():
            found.append(("sum", place, self.meaning._sum(terms)))
        for place, terms in self.latches.items():
            found.append(("latch", place, self.meaning._sum(terms)))
        for place, terms in self.products.items():
            found.append(("product", place, self.meaning._sum(terms)))
        for place, ramps in self.lines.items():
            found.append(("line", place, _line_key(ramps)))
        empty = self.meaning._sum([])
        return tuple(sorted(digest(f) for f in found if f[2] not in (empty, None)))


def _top(ramp: Ramp) -> Ramp:
    """Where a ramp has its largest value."""
    xs = sorted({min(max(x + d, ramp.xs[0]), ramp.xs[-1]) for x in ramp.xs for d in (-1, 0, 1)})
    return Ramp(xs, [Fraction(ramp.at(x) == ramp.hi) for x in xs])


def _flag(world: World, step: Value) -> Value:
    """Whether a step is its largest: the reset of a count."""
    lo, hi = bounds(world, step)
    return combine([(1 / (hi - lo), step)], -lo / (hi - lo))


def _line_key(ramps: list[Ramp]) -> tuple | None:
    """The sum of piecewise linear functions, without the ends of their ranges; None for 0."""
    slope, value, start = ZERO, ZERO, [ZERO] * len(ramps[0].start)
    bends: dict[int, Fraction] = {}
    for ramp in ramps:
        slopes = ramp.slopes or [ZERO]
        slope += slopes[0]
        value += ramp.ys[0] - slopes[0] * ramp.xs[0]
        start = [a + b for a, b in zip(start, ramp.start, strict=True)]
        for x, before, after in zip(ramp.xs[1:-1], slopes, slopes[1:], strict=False):
            bends[x] = bends.get(x, ZERO) + after - before
    left = tuple(sorted((x, b) for x, b in bends.items() if b))
    return (slope, value, left, tuple(start)) if slope or value or left or any(start) else None
