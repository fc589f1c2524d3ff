"""What is no window: the sums, latches, products and breakpoints of a normal form, gathered by what they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import reduce
from typing import Protocol

import numpy as np

from verify.checker.arithmetic.running import running_sum
from verify.checker.meaning.relations import relations
from verify.checker.values.bent import product
from verify.checker.values.tables import Ramp, digest
from verify.checker.values.values import ZERO, Root, Value, World, level_of
from verify.checker.values.windows import is_window

Factors = tuple[Value, ...]
Term = tuple[Fraction, Factors]
Terms = list[Term]
Query = tuple | None  # the key of a window, None for 1


class Forms(Protocol):
    """What items ask of the normal forms that they are part of."""

    world: World

    def key(self, value: Value) -> tuple: ...
    def name(self, terms: Iterable[Term]) -> tuple: ...
    def vanishes(self, terms: Iterable[Term]) -> bool: ...
    def slope(self, root: Root, ramp: Ramp) -> Fraction: ...
    def axis(self, root: Root) -> tuple[int, Fraction, str]: ...
    def state(self, value: Value) -> tuple[Root, Fraction] | None: ...
    def expanded(self, terms: Iterable[Term]) -> Iterator[Term]: ...
    def gates(self, value: Value) -> list[tuple[Fraction, Query]]: ...
    def queries(self, keys: list[Query]) -> np.ndarray | None: ...
    def unread(self, key: Query, terms: Terms) -> bool: ...


class Items:
    """The components of a value that are no windows, gathered by what they have in common."""

    def __init__(self, meaning: Forms):
        self.meaning = meaning
        self.sums: dict[tuple, list] = {}  # what is added up, by (lag, query): None for no query
        self.latches: dict[tuple, list] = {}  # by (lag, query, flag)
        self.products: dict[tuple, list] = {}  # by lag
        self.moved: list[tuple] = []  # (lag, root, function of its state)
        self.lines: dict[tuple[int, str], list[dict[Fraction, Fraction]]] = {}  # breakpoints, by (lag, key)

    def add(self, root: Root, lag: int, ramp: Ramp) -> Value:
        """Gather a component; returns what is left of it: its level before the first breakpoint, and its start."""
        slope = self.meaning.slope(root, ramp)
        if slope:
            self._linear(root, slope, (lag, None))
        first = 0
        if root.kind == "moved":
            if any(y != ramp.ys[0] for y in ramp.ys):
                self.moved.append((lag, root.id, ramp.starting(()).key))
        elif not ramp.linear:
            sign, shift, key = self.meaning.axis(root)
            first = 0 if sign > 0 else -1
            breakpoints = zip(ramp.xs[1:], ramp.slopes, ramp.slopes[1:], strict=False)
            line = {sign * (x - shift): after - before for x, before, after in breakpoints}
            self.lines.setdefault((lag, key), []).append(line)
        return level_of(self.meaning.world, ramp.ys[first] - slope * ramp.xs[first], lag, ramp.start)

    def _linear(self, root: Root, slope: Fraction, place: tuple) -> None:
        """slope · root, an operation linear in its operand, taken apart. place: (lag, query or None)."""
        if root.kind == "sum":
            unit, shape = root.parts
            self.sums.setdefault(place, []).append((slope / unit, (shape,)))
        elif root.kind == "memory":
            unit, shape, columns = root.parts
            for b, c in columns:
                for scale, query in self.meaning.gates(c):
                    self.sums.setdefault((place[0], query), []).append((slope / unit * scale, (b, shape)))
        elif root.kind == "latch":
            unit, shape, flag = root.parts
            self.latches.setdefault((*place, self.meaning.key(flag)), []).append((slope / unit, (shape, flag)))
        elif root.kind == "product":
            scale, a, b = root.parts
            for weight, factors in self.meaning.expanded([(slope * scale, (a, b))]):
                self._product(weight, factors, place)
        elif root.kind == "count":  # since the last reset: all that was counted, without all that was counted by then
            unit, shape, flag = root.parts
            total = running_sum(self.meaning.world, shape, "a count")
            self.sums.setdefault(place, []).append((slope / unit, (shape,)))
            latches = self.latches.setdefault((*place, self.meaning.key(flag)), [])
            latches.append((-slope / unit, (total, flag)))
        else:
            raise TypeError(f"no rule for the slope of a {root.kind}")

    def _product(self, weight: Fraction, factors: Factors, place: tuple) -> None:
        """A product with one state is the state, read with a query, if it is a sum or memory or the query is a window;
        others are kept as they are.
        """
        world = self.meaning.world
        states = [(f, *found) for f in factors if (found := self.meaning.state(f)) is not None]
        if len(states) == 1 and len(factors) > 1 and place[1] is None:
            ((state, root, slope),) = states
            gate = reduce(lambda a, b: product(world, a, b), (f for f in factors if f is not state))
            if root.kind == "memory":
                self._gated_memory(root, weight * slope, gate, place[0])
                return
            if root.kind == "sum" or is_window(world, gate):
                for scale, query in self.meaning.gates(gate):
                    self._linear(root, weight * slope * scale, (place[0], query))
                return
        self.products.setdefault(place, []).append((weight, factors))

    def _gated_memory(self, root: Root, slope: Fraction, gate: Value, lag: int) -> None:
        """A memory behind a gate is a memory whose queries are gated: each column is read with gate · query."""
        unit, shape, columns = root.parts
        for b, c in columns:
            for scale, query in self.meaning.gates(product(self.meaning.world, gate, c)):
                self.sums.setdefault((lag, query), []).append((slope / unit * scale, (b, shape)))

    def _groups(self) -> list[tuple[str, dict[tuple, list]]]:
        return [("sum", self.sums), ("latch", self.latches), ("product", self.products)]

    def key(self) -> tuple:
        """The names of what does not vanish."""
        name = self.meaning.name
        found: list[tuple] = [(kind, place, name(t)) for kind, group in self._groups() for place, t in group.items()]
        lines = [("line", place, _line_key(ramps)) for place, ramps in self.lines.items()]
        found += [("moved", lag, held) for lag, *held in self.moved]
        return tuple(sorted(digest(f) for f in [*found, *lines] if f[2] not in (name([]), None)))

    def vanish(self) -> bool:
        """Whether nothing is left of what was gathered."""
        left: dict[tuple, dict] = {}
        for kind, group in self._groups():
            for (lag, query, *flag), terms in group.items():
                if not self.meaning.vanishes(terms):
                    left.setdefault((kind, lag, *flag), {})[query] = terms
        ramps = all(_line_key(ramps) is None for ramps in self.lines.values())
        return (
            ramps and not self.moved and all(self._vanish_together(kind, group) for (kind, *_), group in left.items())
        )

    def _vanish_together(self, kind: str, group: dict[tuple | None, list]) -> bool:
        """Σ query · (what it reads) is 0 if it is for few sums of queries (lemma of sums that decide); None is the
        query that is 1.
        """
        keys, read = list(group), list(group.values())
        columns = self.meaning.queries(keys)
        if columns is None:
            return False
        for pivot, row in relations(columns).items():
            terms = [(w * weight, factors) for c, w in row.items() for weight, factors in read[c]]
            if not self.meaning.vanishes(terms) and not (kind == "sum" and self.meaning.unread(keys[pivot], terms)):
                return False
        return True


def _line_key(lines: list[dict[Fraction, Fraction]]) -> tuple | None:
    """The sum of piecewise linear functions that are 0 before their first breakpoint; None for 0."""
    breakpoints: dict[Fraction, Fraction] = {}
    for own in lines:
        for x, change in own.items():
            breakpoints[x] = breakpoints.get(x, ZERO) + change
    return tuple(sorted((x, change) for x, change in breakpoints.items() if change)) or None
