"""What is written and read at places that depend on the position alone: a delay (lemma of rings).

A latch whose flag does not depend on letters is written at known positions, and a gate that does not is open at known
ones. So a sum of products of such latches and gates is, at each position, a sum of what stood at known earlier ones.
Where that is one distance back throughout, the sum is a delay.
"""

from __future__ import annotations

from fractions import Fraction

from verify.checker.values.tables import Table
from verify.checker.values.values import ZERO, Key, Root, Value, World, combine, later, of_root

_MOST_POSITIONS = 1 << 12
Reads = list[tuple[int, Fraction]]  # for each position the place that is read, 0 for none, and the weight
Numbers = list[Fraction] | None  # at positions 1, 2, …; None where letters have a say


class Clock:
    """The values that depend on the position alone, at every position of the longest sequence."""

    def __init__(self, world: World):
        self.world, self.length = world, world.language.length
        self._roots: dict[int, Numbers] = {}

    def of(self, value: Value) -> Numbers:
        total = [value.const] * self.length
        for (root, lag), component in value.terms.items():
            if isinstance(component, Table):
                here: Numbers = None if len(component.ids) else [Fraction(component.base)] * self.length
            else:
                known = self._root(root)
                here = None if known is None else [component.at(x) for x in known]
            if here is None:
                return None
            early = [component.start[lag - t] for t in range(1, min(lag, self.length) + 1)]
            total = [a + b for a, b in zip(total, [*early, *here][: self.length], strict=True)]
        return total

    def _root(self, number: int) -> Numbers:
        if number not in self._roots:
            self._roots[number] = self._found(self.world.roots[number])
        return self._roots[number]

    def _found(self, root: Root) -> Numbers:
        parts = [self.of(p) if isinstance(p, Value) else [p] * self.length for p in root.parts]
        if root.kind == "memory" or any(p is None for p in parts):
            return None
        rows = list(zip(*(p for p in parts if p is not None), strict=True))
        found, kept = [], ZERO
        for row in rows:
            if root.kind == "form":
                kept = row[0]
            elif root.kind == "product":
                kept = row[0] * row[1] * row[2]
            elif root.kind == "sum":
                kept += row[1] / row[0]
            elif root.kind == "latch":
                kept = row[1] / row[0] if row[2] == 1 else kept
            else:
                kept = ZERO if row[2] == 1 else kept + row[1] / row[0]
            found.append(kept)
        return found


def delayed(clock: Clock, value: Value) -> Value:
    """The value with every sum of reads at known places that is a delay as one."""
    if clock.length > _MOST_POSITIONS:
        return value
    groups: dict[str, tuple[Value, list[tuple[Key, Reads]]]] = {}
    for key, ramp in value.ramps.items():
        root = clock.world.roots[key[0]]
        if root.kind == "product" and ramp.linear and not key[1]:
            read = _read(clock, root, ramp.slopes[0])
            if read is not None:
                groups.setdefault(read[0].key, (read[0], []))[1].append((key, read[1]))
    terms = []
    for source, members in groups.values():
        lag = _lag([reads for _, reads in members])
        if lag is not None:
            roots = {key: of_root(clock.world.roots[key[0]], Fraction(1)) for key, _ in members}
            terms += [
                *((-value.ramps[key].slopes[0], root) for key, root in roots.items()),
                (lag[1], later(clock.world, source, lag[0])),
            ]
    return combine([(Fraction(1), value), *terms]) if terms else value


def _read(clock: Clock, root: Root, slope: Fraction) -> tuple[Value, Reads] | None:
    """What is stored, and how it is read."""
    scale, a, b = root.parts
    for state, gate in ((a, b), (b, a)):
        ((key, ramp),) = state.ramps.items() if len(state.terms) == len(state.ramps) == 1 else [((-1, 0), None)]
        opened = clock.of(gate)
        if ramp is None or opened is None or key[1] or not ramp.linear:
            continue
        latched = clock.world.roots[key[0]]
        if latched.kind != "latch" or state.const + ramp.at(0):
            continue
        unit, source, flag = latched.parts
        flags, last, reads = clock.of(flag), 0, []
        for t in range(clock.length) if flags is not None else ():
            last = t + 1 if flags is not None and flags[t] == 1 else last
            reads.append((last, slope * scale * ramp.slopes[0] / unit * opened[t]))
        if reads:
            return source, reads
    return None


def _lag(members: list[Reads]) -> tuple[int, Fraction] | None:
    """(k, weight) where together they read what stood k positions back, with one weight, and nothing else."""
    found = []
    for t, row in enumerate(zip(*members, strict=True), start=1):
        places: dict[int, Fraction] = {}
        for place, weight in row:
            places[t - place] = places.get(t - place, ZERO) + (weight if place else ZERO)
        found.append([(k, w) for k, w in places.items() if w])
    lag, weight = found[-1][0] if found[-1] else (0, ZERO)
    right = all(live == ([(lag, weight)] if t > lag else []) for t, live in enumerate(found, start=1))
    return (lag, weight) if weight and right else None
