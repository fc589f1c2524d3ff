"""Exact functions of one thing: of a letter (`Table`) or of one integer (`Ramp`), k positions back.

A component with lag k is a function of what stood k positions back. For k > 0 there may be no such position: at
position -j of the sequence (j = 0 … k - 1; the first letter stands at 1) the component has the value start[j]. A lag 0
component has no start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b

import numpy as np

from verify.checker.formats import Rejected, array_exponent, exponent
from verify.checker.values.exact import LEAST, MOST, number, quotient

MOST_VALUES = 4096  # a finite set of values is followed up to this size


def digest(key: object) -> str:
    return blake2b(repr(key).encode(), digest_size=16).hexdigest()


class Table:
    """A function of a letter, in float64 and exact: `base` for all letters but `ids`, which have `vals`."""

    def __init__(self, dense: np.ndarray, start: tuple[Fraction, ...] = ()):
        dense = dense + 0.0  # no negative zeros
        if not np.isfinite(dense).all():
            raise Rejected("a function of a token is not finite")
        self.size = len(dense)
        self.base = _frequent(dense)
        self.ids = np.flatnonzero(dense != self.base).astype(np.int32)
        self.vals = dense[self.ids]
        self.start = start

    def dense(self) -> np.ndarray:
        full = np.full(self.size, self.base)
        full[self.ids] = self.vals
        return full

    def at(self, letters: np.ndarray) -> np.ndarray:
        """The values of some letters, in ascending order."""
        found = np.full(len(letters), self.base)
        place = np.searchsorted(letters, self.ids)
        own = letters[np.minimum(place, len(letters) - 1)] == self.ids
        found[place[own]] = self.vals[own]
        return found

    @cached_property
    def key(self) -> tuple:
        digest = blake2b(self.ids.tobytes() + self.vals.tobytes(), digest_size=16).hexdigest()
        return ("table", self.base, digest, self.start)

    @cached_property
    def letter_values(self) -> np.ndarray:
        """Distinct values over the letters."""
        some = [self.base] if len(self.ids) < self.size else []
        return np.unique(np.append(self.vals, some))

    @cached_property
    def _classes(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.vals, return_inverse=True)

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct values, and which of them each letter has; the last may be nobody's."""
        some, which = self._classes
        labels = np.full(self.size, len(some))
        labels[self.ids] = which.reshape(-1)
        return np.append(some, self.base), labels

    @cached_property
    def values(self) -> tuple[Fraction, ...] | None:
        """Every value over the letters, None if there are too many."""
        if len(self.letter_values) > MOST_VALUES:
            return None
        return tuple(Fraction(float(v)) for v in self.letter_values)

    @cached_property
    def inside(self) -> tuple[Fraction, Fraction]:
        """The least and the largest value over the letters."""
        return Fraction(float(self.letter_values[0])), Fraction(float(self.letter_values[-1]))

    @cached_property
    def lo(self) -> Fraction:
        return min((self.inside[0], *self.start))

    @cached_property
    def hi(self) -> Fraction:
        return max((self.inside[1], *self.start))

    @property
    def zero(self) -> bool:
        """Whether every value is 0."""
        others = len(self.ids) < self.size
        return not (others and self.base or self.vals.any() or any(self.start))

    @cached_property
    def unit(self) -> int:
        """The largest e with every value a multiple of 2^e; 0 for zeros."""
        return _least(array_exponent(self.letter_values), self.start)

    def affine(self, scale: Fraction, shift: Fraction) -> Table:
        return table_sum([(scale, self)], shift)

    def over(self, divisor: Fraction) -> Table:
        """The table divided by a number that divides it."""
        return Table(quotient(self.dense(), divisor), tuple(s / divisor for s in self.start))

    def relu(self) -> Table:
        return Table(np.maximum(self.dense(), 0.0), tuple(max(s, Fraction(0)) for s in self.start))

    @property
    def first(self) -> Fraction:
        """The value that normal forms put at 0: that of letter 0."""
        return Fraction(float(self.vals[0])) if len(self.ids) and self.ids[0] == 0 else Fraction(self.base)

    def starting(self, start: tuple[Fraction, ...]) -> Table:
        """The same with other values before the sequence."""
        result = Table.__new__(Table)
        result.size, result.base, result.ids, result.vals = self.size, self.base, self.ids, self.vals
        result.start = start
        return result

    def later(self, k: int) -> Table:
        """The same component seen from k positions later: before the sequence every number is 0."""
        return self.starting(self.start + (Fraction(0),) * k)


def table_sum(terms: Iterable[tuple[Fraction, Table]], shift: Fraction = Fraction(0)) -> Table:
    """shift + the sum of scale · table, of equal lags; refused where float64 might round."""
    terms = list(terms)
    if len(terms) == 1 and terms[0][0] == 1 and not shift:
        return terms[0][1]
    room, units = abs(shift), [exponent(shift)] if shift else []
    for scale, table in terms:
        if not table.zero:
            units.append(exponent(scale) + table.unit)
            room += abs(scale) * max(abs(table.lo), abs(table.hi))
    if units and not (min(units) >= LEAST and room < Fraction(2) ** min(53 + min(units), MOST)):
        raise Rejected("a function of a token needs more than the 53 bits that the checker carries")
    dense = np.full(terms[0][1].size, number(shift))
    for scale, table in terms:
        dense += number(scale) * table.dense()
    start = tuple(
        shift + sum((scale * table.start[j] for scale, table in terms), Fraction(0))
        for j in range(len(terms[0][1].start))
    )
    return Table(dense, start)


def _frequent(dense: np.ndarray) -> float:
    """A frequent value, the same for equal arrays."""
    counts = Counter(dense[:: max(1, len(dense) // 63)].tolist())
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)


def _least(e: int | None, numbers: Iterable[Fraction]) -> int:
    return min([exponent(x) for x in numbers if x] + ([] if e is None else [e]), default=0)


class Ramp:
    """A function of an integer x in xs[0] … xs[-1]: ys at the breakpoints xs, linear between two of them."""

    def __init__(self, xs: Iterable[int], ys: Iterable[Fraction], start: tuple[Fraction, ...] = ()):
        self.xs, self.ys = _without_collinear(tuple(xs), tuple(ys))
        self.start = start

    @classmethod
    def _bent(cls, xs: tuple[int, ...], ys: tuple[Fraction, ...], start: tuple[Fraction, ...]) -> Ramp:
        """With these breakpoints, of which the slope changes at each."""
        ramp = cls.__new__(cls)
        ramp.xs, ramp.ys, ramp.start = xs, ys, start
        return ramp

    @cached_property
    def key(self) -> tuple:
        return ("ramp", self.xs, self.ys, self.start)

    @property
    def first(self) -> Fraction:
        return self.ys[0]

    @cached_property
    def inside(self) -> tuple[Fraction, Fraction]:
        """The least and the largest value over the integers."""
        return min(self.ys), max(self.ys)

    @cached_property
    def lo(self) -> Fraction:
        return min((self.inside[0], *self.start))

    @cached_property
    def hi(self) -> Fraction:
        return max((self.inside[1], *self.start))

    @property
    def zero(self) -> bool:
        """Whether every value is 0."""
        return not (any(self.ys) or any(self.start))

    @cached_property
    def unit(self) -> int:
        return _least(None, [*self.ys, *self.slopes, *self.start])

    @cached_property
    def slopes(self) -> list[Fraction]:
        return _slopes(self.xs, self.ys)

    @property
    def linear(self) -> bool:
        return len(self.xs) <= 2

    def at(self, x: int | Fraction) -> Fraction:
        i = min(max(bisect_right(self.xs, x) - 1, 0), max(len(self.xs) - 2, 0))
        if self.xs[i] == x or len(self.xs) == 1:
            return self.ys[i]
        return self.ys[i] + self.slopes[i] * (x - self.xs[i])

    def between(self, lo: int, hi: int) -> tuple[Fraction, Fraction]:
        """The least and the largest value on lo … hi within the range (at its end where it lies outside)."""
        lo, hi = (min(max(x, self.xs[0]), self.xs[-1]) for x in (lo, hi))
        found = [self.at(lo), self.at(hi), *self.ys[bisect_right(self.xs, lo) : bisect_left(self.xs, hi)]]
        return min(found), max(found)

    def segments(self) -> list[tuple[int, Fraction, int, Fraction]]:
        points = list(zip(self.xs, self.ys, strict=True))
        if len(points) == 1:
            points *= 2
        return [(*a, *b) for a, b in zip(points, points[1:], strict=False)]

    @cached_property
    def values(self) -> tuple[Fraction, ...] | None:
        """Every value over all integers of the range, None if there are too many."""
        found: set[Fraction] = set()
        for x0, y0, x1, y1 in self.segments():
            if y0 == y1:
                found.add(y0)
            elif x1 - x0 + len(found) > MOST_VALUES:
                return None
            else:
                found |= {y0 + (y1 - y0) * i / (x1 - x0) for i in range(x1 - x0 + 1)}
        return tuple(sorted(found))

    def affine(self, scale: Fraction, shift: Fraction) -> Ramp:
        if scale == 1 and not shift:
            return self
        moved = lambda numbers: tuple((n if scale == 1 else scale * n) + shift for n in numbers)
        return (Ramp._bent if scale else Ramp)(self.xs, moved(self.ys), moved(self.start))

    def over(self, divisor: Fraction) -> Ramp:
        return self.affine(1 / divisor, Fraction(0))

    def relu(self) -> Ramp:
        points: list[tuple[int, Fraction]] = []
        for x0, y0, x1, y1 in self.segments():
            points.append((x0, y0))
            if (y0 < 0) != (y1 < 0) and x1 - x0 > 1:
                below = x0 + int((-y0) * (x1 - x0) / (y1 - y0) // 1)  # the last integer up to the crossing
                points += [(x, self.at(x)) for x in (below, below + 1) if x0 < x < x1]
            points.append((x1, y1))
        unique = dict(points)
        return Ramp(
            unique, [max(y, Fraction(0)) for y in unique.values()], tuple(max(s, Fraction(0)) for s in self.start)
        )

    def straight(self, lo: int, hi: int) -> Ramp:
        """The same from lo to hi within the range, and straight on from there."""
        near = sorted({lo, *(x for x in self.xs if lo < x < hi), hi})
        inner = Ramp(near, [self.at(x) for x in near])
        xs = sorted({self.xs[0], *inner.xs, self.xs[-1]})
        return Ramp(xs, [inner.at(x) for x in xs], self.start)

    def starting(self, start: tuple[Fraction, ...]) -> Ramp:
        return Ramp._bent(self.xs, self.ys, start)

    def later(self, k: int) -> Ramp:
        return self.starting(self.start + (Fraction(0),) * k)


def ramp_sum(terms: Iterable[tuple[Fraction, Ramp]]) -> Ramp:
    """The sum of scale · ramp, over one integer at one lag; each breakpoint of each ramp is looked at once."""
    terms = list(terms)
    if len(terms) == 1:
        return terms[0][1].affine(terms[0][0], Fraction(0))
    turns: dict[int, Fraction] = {}  # how much steeper the sum is behind a breakpoint than before it
    slope = Fraction(0)
    for scale, ramp in terms:
        slope += scale * ramp.slopes[0] if ramp.slopes else 0
        for x, before, after in zip(ramp.xs[1:], ramp.slopes, ramp.slopes[1:], strict=False):
            turns[x] = turns.get(x, 0) + scale * (after - before)
    first, last = min(ramp.xs[0] for _, ramp in terms), max(ramp.xs[-1] for _, ramp in terms)
    xs, ys = [first], [sum((scale * ramp.at(first) for scale, ramp in terms), Fraction(0))]
    for x in [*(x for x in sorted(turns) if turns[x] and x != last), *([last] if last > first else [])]:
        ys.append(ys[-1] + slope * (x - xs[-1]))
        xs.append(x)
        slope += turns.get(x, 0)
    start = tuple(
        sum((scale * ramp.start[j] for scale, ramp in terms), Fraction(0)) for j in range(len(terms[0][1].start))
    )
    return Ramp._bent(tuple(xs), tuple(ys), start)


def _slopes(xs: tuple[int, ...], ys: tuple[Fraction, ...]) -> list[Fraction]:
    """Between each two neighbours."""
    return [(y1 - y0) / (x1 - x0) for x0, x1, y0, y1 in zip(xs, xs[1:], ys, ys[1:], strict=False)]


def _without_collinear(xs: tuple[int, ...], ys: tuple[Fraction, ...]) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
    """The breakpoints where the slope changes, and the ends: the same for equal functions."""
    if len(xs) <= 2:
        return xs, ys
    slopes = _slopes(xs, ys)
    kept = [0, *(i for i in range(1, len(slopes)) if slopes[i] != slopes[i - 1]), len(slopes)]
    return tuple(xs[i] for i in kept), tuple(ys[i] for i in kept)
