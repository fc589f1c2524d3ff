"""A normal form of values: equal for two values only if they are the same function of the input sequence (part C).

Windows are compared as functions of letters. States are linear in what they store, so all that is stored under one
flag, one query or none is added up first. What is bent, multiplied or delayed is compared by the normal form of what
it is made of. Unequal normal forms prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import reduce
from itertools import chain
from itertools import product as iterproduct
from typing import Any

import numpy as np

from verify.checker.arithmetic.memories import columns_apart
from verify.checker.meaning.breakpoints import joined_factors, taken_apart
from verify.checker.meaning.flags import behind_one_flag, straightened, switched
from verify.checker.meaning.items import Factors, Items, Term, Terms
from verify.checker.meaning.moved import as_tables, by_state, of_least
from verify.checker.meaning.rings import Clock, delayed
from verify.checker.values.bent import product, relu
from verify.checker.values.bounds import bounds, values_of
from verify.checker.values.tables import Ramp, digest
from verify.checker.values.together import moved_in, vanishes
from verify.checker.values.values import (
    ZERO,
    Key,
    Root,
    Value,
    World,
    combine,
    constant,
    kept,
    later,
    multiple,
    of_root,
)
from verify.checker.values.windows import (
    Letters,
    ended,
    is_window,
    is_window_root,
    letters_of,
    pieces,
    plus,
    reach,
    times,
    unit_of,
    window_key,
)

ONE = Fraction(1)
_MOST_COLUMNS = 8  # of a memory that is a factor
_MOST_QUERIES, _MOST_OF_FEW = 64, 1 << 8  # that are looked at together; where letters are few
_FEW_LETTERS = 32


class Meaning:
    """Normal forms of the values of one world; `key` of equal functions is mostly equal, of others never.

    breakpoints: whether the factors of products are taken apart into one for each breakpoint; then flags are
        not seen to be flags.
    paths: whether it counts what the paths of the language leave where a flag is on or off.
    """

    def __init__(self, world: World, breakpoints: bool = False, paths: bool = False):
        self.world, self.breakpoints, self.paths = world, breakpoints, paths
        self._clock = Clock(world)
        self.facts: dict[tuple, Any] = {}  # what `kept` methods found
        self._zeros: dict[str, bool] = {}
        self._queries: dict[tuple, tuple[Value, Fraction]] = {}  # by key: a window, and what it is divided by

    @kept
    def key(self, value: Value) -> tuple:
        states = self._states(value)
        if states is not None:
            return ("states", window_key(states))
        window, items = self._gathered(value)
        return self.name([(ONE, (window,))]), items.key()

    @kept
    def label(self, value: Value) -> str:
        """The key in short."""
        return digest(self.key(value))

    def zero(self, value: Value) -> bool:
        """Whether the normal form of the value is that of 0."""
        if value.key not in self._zeros:
            self._zeros[value.key] = False  # not shown as long as it is looked at
            states = self._states(value)
            if states is not None and not any(piece.table.any() for piece in states):
                self._zeros[value.key] = True
                return True
            if states is None and moved_in(self.world, value):
                reached = vanishes(self.world, value)
                if reached is not None:
                    self._zeros[value.key] = reached
                    return reached
            window, items = self._gathered(value)
            self._zeros[value.key] = self.vanishes([(ONE, (window,))]) and items.vanish()
        return self._zeros[value.key]

    @kept
    def _states(self, value: Value) -> list[Letters] | None:
        """A function of moved states and letters as tables (lemma of moved states)."""
        return as_tables(self.world, value, self.first_named)

    def _gathered(self, value: Value) -> tuple[Value, Items]:
        """A value as a window and what is no window."""
        value = self.opened(value)
        window, rest = self._split(value)
        items = Items(self)
        left = [items.add(self.world.roots[root], lag, ramp) for (root, lag), ramp in rest.items()]
        return combine([(ONE, v) for v in (window, *left)], value.const), items

    def _split(self, value: Value) -> tuple[Value, dict[Key, Ramp]]:
        """The part that is a window, without the constant, and the other components."""
        rest = {k: c for k, c in value.ramps.items() if not is_window_root(self.world, self.world.roots[k[0]])}
        return Value(ZERO, {k: c for k, c in value.terms.items() if k not in rest}), rest

    @kept
    def opened(self, value: Value) -> Value:
        """Bent sums that a flag switches as products, and others without the slope that their parts carry."""
        terms = []
        value = delayed(self._clock, value)
        for (root, lag), ramp in value.ramps.items():
            form = self.world.roots[root]
            if form.kind == "moved":
                least, same = of_least(self.world, form, ramp, self.first_named)
                if least is not form:
                    place = {(root, lag): ramp}, {(least.id, lag): same}
                    terms += [(sign, Value(ZERO, part)) for sign, part in zip((-ONE, ONE), place, strict=True)]
                continue
            if form.kind == "product" and ramp.linear and not lag and not is_window_root(self.world, form):
                slope, monomials = ramp.slopes[0], self._monomials(form)
                if any((root, 0) in m.terms for _, m in monomials) and len(monomials) == 1:
                    continue
                line = Ramp([form.lo, form.hi], [slope * form.lo, slope * form.hi])
                terms += [(-ONE, Value(ZERO, {(root, lag): line})), *((slope * w, m) for w, m in monomials)]
            if form.kind != "form" or is_window_root(self.world, form):
                continue
            gated = None if lag else self._gated(form.parts[0], ramp)
            slope = self.slope(form, ramp)
            if gated is not None:
                terms += [(-ONE, Value(ZERO, {(root, lag): ramp})), (ONE, gated)]
            elif slope:
                line = Ramp([form.lo, form.hi], [slope * form.lo, slope * form.hi], (ZERO,) * lag)
                shape = later(self.world, form.parts[0], lag)
                terms += [(-ONE, Value(ZERO, {(root, lag): line})), (slope, shape)]
        return self.opened(combine([(ONE, value), *terms])) if terms else value

    @kept
    def _monomials(self, root: Root) -> list[tuple[Fraction, Value]]:
        """A product as a sum of weight · product of components."""
        scale, a, b = root.parts
        whole = (scale, straightened(self.world, a, b) if self.paths else (a, b))
        return [(w, self._multiplied(f)) for w, f in self.expanded([whole])]

    def _multiplied(self, factors: Factors) -> Value:
        """The product, windows and then others, each in the order of their normal forms."""
        kinds = [[f for f in factors if is_window(self.world, f) == window] for window in (True, False)]
        order = [f for k in kinds for f in (sorted(k, key=self.label) if len(k) > 1 else k)]
        return reduce(lambda a, b: product(self.world, a, b), order)

    @kept
    def _gated(self, shape: Value, ramp: Ramp) -> Value | None:
        """φ of a sum as a product, where a part of the sum switches it."""
        opened = self.opened(shape)
        together = behind_one_flag(self.world, opened) if self.paths else ()
        parts = [*together, *chain(*map(self._components, (shape, opened)))]
        found = (switched(self.world, part, others, ramp, self.paths) for part, others in parts)
        return next((value for value in found if value is not None), None)

    def _components(self, shape: Value) -> list[tuple[Value, Value]]:
        """(v, the rest of the shape) for each component v, those that are windows as one."""
        window, rest = self._split(shape)
        parts = [Value(ZERO, {place: c}) for place, c in rest.items()] + ([] if window.constant else [window])
        return [(v, combine([(ONE, shape), (-ONE, v)])) for v in parts] if len(parts) > 1 else []

    @kept
    def axis(self, root: Root) -> tuple[int, Fraction, str]:
        """(sign, shift, key) of what breakpoints: x of the root is sign · y + shift, and y has the key."""
        value = root.parts[0] if root.kind == "form" else of_root(root, ONE)
        window, _ = self._gathered(value)
        far = letters_of(self.world, window, None)
        shift = Fraction(float(far.table[tuple(far.axes[lag][0] for lag in sorted(far.axes))]))
        up, down = (self.label(combine([(s, value)], -s * shift)) for s in (ONE, -ONE))
        return (1, shift, up) if up <= down else (-1, shift, down)

    def first_named(self, value: Value) -> tuple[str, Value]:
        """(the normal form in short, the first value that had it)."""
        label = self.label(value)
        return label, self.facts.setdefault(("first", label), value)

    def slope(self, root: Root, ramp: Ramp) -> Fraction:
        """The slope of a ramp before its first breakpoint; a function of a state that is moved stays whole."""
        if root.kind == "moved":
            return ZERO
        return (ramp.slopes or [ZERO])[0 if ramp.linear or self.axis(root)[0] > 0 else -1]

    def name(self, terms: Iterable[Term]) -> tuple:
        """The normal form of a sum of products."""
        window, products = self._sum(tuple(terms), 0)
        return window_key(window), tuple(sorted((n, digest(self.name(self._pure(g)))) for n, g in products.items()))

    def vanishes(self, terms: Iterable[Term]) -> bool:
        """Whether the normal form of a sum of products is that of 0, or it is seen to be 0 by common factors."""
        window, products = self._sum(tuple(terms), 0)
        if any(piece.table.any() for piece in window):
            return False
        return self._cancel([term for group in products.values() for term in group])

    def _cancel(self, terms: Terms) -> bool:
        """Whether products vanish by common factors: g · x + g · y is 0 if x + y is; single ones are one value."""
        terms = sorted(terms, key=lambda term: -len(term[1]))
        while terms and len(terms[0][1]) > 1:
            for g in terms[0][1]:
                held = [(weight, without) for weight, f in terms if (without := self._without(g, f)) is not None]
                if len(held) > 1 and self.vanishes(held):
                    terms = [term for term in terms if self._without(g, term[1]) is None]
                    break
            else:
                return False
        return not terms or self.zero(combine([(weight, f) for weight, (f,) in terms]))

    def state(self, value: Value) -> tuple[Root, Fraction] | None:
        """(root, slope) where the value is slope · a running sum, a latch or a memory at this position."""
        slope, root = multiple(self.world, value)
        return (root, slope) if root is not None and root.kind in ("sum", "latch", "memory") else None

    def _without(self, g: Value, factors: Factors) -> Factors | None:
        """The factors without the first that is g; None if none is."""
        at = next((i for i, f in enumerate(factors) if self.label(f) == self.label(g)), None)
        return None if at is None else factors[:at] + factors[at + 1 :]

    @kept
    def _sum(self, terms: tuple[Term, ...], depth: int) -> tuple[list[Letters], dict[str, Terms]]:
        """A sum of products: that of windows as functions of letters, with `depth` first positions at least, and
        others.
        """
        windows: Terms = []
        others: Terms = []
        for weight, factors in self.expanded(terms):
            pure = all(is_window(self.world, f) for f in factors)
            (windows if pure else others).append((weight, factors))
        depth = max([reach(self.world, f) for _, factors in windows for f in factors] + [depth])
        total = self._pieces(constant(0), depth)
        for weight, factors in windows:
            parts = [self._pieces(f, depth) for f in factors] or [self._pieces(constant(1), depth)]
            total = plus(total, reduce(times, parts), weight)
        return total, self._products(self._moved_together(others))

    def _moved_together(self, terms: Terms) -> Terms:
        """Products with functions of one moved state as a factor, the others being the same, as one product."""
        for number in sorted({number for _, factors in terms for f in factors for number in self._moved_by(f)}):
            groups: dict[tuple, Terms] = {}
            for weight, factors in terms:
                own = [f for f in factors if number in self._moved_by(f)]
                rest = tuple(f for f in factors if f is not own[0]) if len(own) == 1 else factors
                place = (*sorted(map(self.label, rest)), *(own[0].terms if len(own) == 1 else (len(groups),)))
                groups.setdefault(place, []).append((weight, (*own, *rest) if len(own) == 1 else factors))
            terms = [term for group in groups.values() for term in self._added(group)]
        return terms

    def _added(self, group: Terms) -> Iterator[Term]:
        """Products of which the first factor alone is another."""
        if len(group) == 1:
            yield from group
            return
        total = combine([(weight, factors[0]) for weight, factors in group])
        yield from self.expanded([(ONE, (total, *group[0][1][1:]))])

    def _moved_by(self, factor: Value) -> list[int]:
        """The moved state that a factor is a function of, at this position."""
        return [number for number, lag in factor.ramps if not lag and self.world.roots[number].kind == "moved"]

    @kept
    def _pieces(self, window: Value, depth: int) -> list[Letters]:
        return pieces(self.world, window, depth)

    def expanded(self, terms: Iterable[Term]) -> Iterator[Term]:
        """Products of sums as sums of products: each factor a window, or one component that is 0 where its root is."""
        for weight, factors in terms:
            split: list[Terms] = [[(weight, ())], *(self._parts(f) for f in factors)]
            for choice in iterproduct(*split):
                total = ONE
                for w, _ in choice:
                    total *= w
                found = tuple(f for _, part in choice for f in part)
                joined = joined_factors(self.world, found)
                yield from [(total, found)] if len(joined) == len(found) else self.expanded([(total, joined)])

    @kept
    def _parts(self, value: Value) -> Terms:
        """A value as a sum: each part a window, or one component that is 0 where its root is."""
        if is_window(self.world, value):
            return [(ONE, (value,))]
        value = self.opened(value)
        window, others = self._split(value)
        found: Terms = []
        const, levels = value.const, [window]
        for place, component in others.items():
            root = self.world.roots[place[0]]
            if root.kind == "product" and component.linear and not place[1]:
                slope = component.slopes[0] if component.slopes else ZERO
                const += component.ys[0] - slope * component.xs[0]
                scale, a, b = root.parts
                found += self.expanded([(slope * scale, (a, b))])
                continue
            level, pieces_ = self._breakpoints(root, place[1], component)
            levels.append(level)
            if root.kind == "moved" and len(pieces_) == 1:
                pieces_ = by_state(*pieces_)
            for piece in pieces_:
                if root.kind == "memory" and piece.linear and not place[1] and len(root.parts[2]) <= _MOST_COLUMNS:
                    found += self.expanded(columns_apart(self.world, root, piece.slopes[0]))
                else:
                    scale, shape = Value(ZERO, {place: piece}).normalised
                    found.append((scale, (shape,)))
        pure = combine([(ONE, part) for part in levels], const)
        return [*([] if pure.zero else [(ONE, (pure,))]), *found]

    def _breakpoints(self, root: Root, lag: int, ramp: Ramp) -> tuple[Value, list[Ramp]]:
        """(level, ramps) as `taken_apart`: one ramp where breakpoints stay together."""
        moved = root.kind == "moved"
        backward = not (moved or ramp.linear) and self.axis(root)[0] < 0
        whole = moved or bool(lag) or not self.breakpoints
        return taken_apart(self.world, root, lag, ramp, self.slope(root, ramp), backward, whole)

    def _products(self, terms: Terms) -> dict[str, Terms]:
        """Products that are no windows by what their other factors are, where their windows do not add up to 0."""
        groups: dict[str, Terms] = {}
        for weight, factors in terms:
            rest = self._factors([f for f in factors if not is_window(self.world, f)])
            groups.setdefault(digest(rest), []).append((weight, factors))
        return {rest: group for rest, group in groups.items() if not self.vanishes(self._pure(group))}

    def _pure(self, terms: Terms) -> Terms:
        """The windows of products."""
        return [(weight, tuple(f for f in factors if is_window(self.world, f))) for weight, factors in terms]

    def _factors(self, factors: list[Value]) -> list[str]:
        """The normal forms of factors; a flag times itself is the flag."""
        keys = [(self.label(f), set(values_of(self.world, f) or (2,)) <= {0, 1}) for f in factors]
        flags = {key for key, flag in keys if flag}
        return sorted([*flags, *(key for key, flag in keys if not flag)])

    @kept
    def gates(self, value: Value) -> list[tuple[Fraction, tuple | None]]:
        """(scale, key) of the parts of a gate or query, None for 1; a window of both signs is a difference of two."""
        if value.constant:
            return [(value.const, None)] if value.const else []
        if not is_window(self.world, value):
            return [part for weight, factors in self._parts(value) for part in self._gates_in(weight, factors)]
        lo, hi = bounds(self.world, value)
        found: list[tuple[Fraction, tuple | None]] = []
        for sign in (ONE, -ONE) if lo < 0 < hi else (ONE,):
            part = relu(self.world, combine([(sign, value)])) if lo < 0 < hi else value
            scale, unit = unit_of(pieces(self.world, part, reach(self.world, part)))
            if any(p.table.any() for p in unit):
                name = window_key(unit)
                found.append((sign * scale, name))
                self._queries[name] = part, scale
        return found

    def _gates_in(self, weight: Fraction, factors: Factors) -> list[tuple[Fraction, tuple | None]]:
        """The same of one product."""
        gate = self._multiplied(factors)
        if is_window(self.world, gate):
            return [(weight * scale, key) for scale, key in self.gates(gate)]
        return [(weight, self.key(gate))]

    def queries(self, keys: list[tuple | None]) -> np.ndarray | None:
        """(cases of the last few letters, queries): what the queries with these keys are, exactly; None where one is no
        window, or where they are many.
        """
        most = _MOST_OF_FEW if self.world.language.tokens <= _FEW_LETTERS else _MOST_QUERIES
        if len(keys) > most or not all(key is None or key in self._queries for key in keys):
            return None
        depth = max(reach(self.world, self._queries[key][0]) for key in keys if key) if any(keys) else 0
        columns = [self._query(key, depth) for key in keys]
        zeros = reduce(lambda a, b: plus(a, b, ZERO), columns, self._pieces(constant(0), depth))  # over all classes
        full = [plus(zeros, column, ONE) for column in columns]
        return np.stack([np.concatenate([p.table.reshape(-1) for p in column]) for column in full], axis=1)

    def _query(self, key: tuple | None, depth: int) -> list[Letters]:
        """None is the query that is 1."""
        part, scale = (constant(1), ONE) if key is None else self._queries[key]
        return times(self._pieces(part, depth), self._pieces(constant(1 / scale), depth))

    def unread(self, key: tuple | None, terms: Terms) -> bool:
        """Whether a query is 0 wherever the running sum of these windows is not, which is a window (lemma of
        differences).
        """
        depth = max([reach(self.world, f) for _, factors in terms for f in factors] + [0])
        depth = max(depth, reach(self.world, self._queries[key][0]) if key else 0)
        window, products = self._sum(tuple(terms), depth)
        total = None if products else ended(window)
        return total is not None and not any(p.table.any() for p in times(self._query(key, depth), total))
