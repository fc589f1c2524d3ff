"""Case distinction: what polynomials are at every position, in finitely many cases that cover all of them.

The axes of the cases: the position (t = 1, 2, …, k, and all beyond, k the farthest lag), the letter at each lag (the
letters that no table tells apart are one class), and parts of the ranges of states, as a claim names them. Whatever
combination stands at a position of a sequence is one of the cases; that some of them never occur does no harm. In each
case a table is a number, an atom seen too far back is 0, a state whose part is one number is that number, and relu(q)
is q or 0 where the case bounds q away from 0. What is left is a polynomial over states, its coefficients arrays of
whole numbers over the cases, so whatever cancels in a case cancels (lemmas of joint values and of the start).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from verify.kernel.exact import add, alike, fold, integers, multiply
from verify.kernel.facts import Cell
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.terms import Mono, Poly, Terms

MOST_CASES, _MOST_NUMBERS, _MOST_CELLS = 1 << 16, 1 << 18, 1 << 12

Array = np.ndarray
Spread = dict[Mono, Array]  # a polynomial with an array of coefficients for each monomial of states


class Parts(NamedTuple):
    """The range of a state, seen `lag` positions back, cut before each of these numbers."""

    atom: int
    lag: int
    cuts: tuple[int, ...]


class Grid:
    """The cases of some primitive polynomials."""

    def __init__(self, terms: Terms, polys: Sequence[Poly], parts: Sequence[Parts] = ()):
        self.terms = terms
        seen: set[tuple[int, int]] = set()
        for p in polys:
            self._collect(p, 0, seen)
        tables = sorted({(a, lag) for a, lag in seen if terms.atoms[a].kind == "table"})
        self._farthest = max((lag for _, lag in seen), default=0)
        lags = sorted({lag for a, lag in tables if a})
        self._axis = {lag: i + 1 for i, lag in enumerate(lags)}
        self._rows = {lag: [a for a, k in tables if k == lag and a] for lag in lags}
        self._classes = {lag: self._letters(rows) for lag, rows in self._rows.items()}
        self._part_axis = {(p.atom, p.lag): len(lags) + 1 + i for i, p in enumerate(parts)}
        self._rank = 1 + len(lags) + len(parts)
        self._ends = {(p.atom, p.lag): self._cut(p, seen) for p in parts}
        if len(self._ends) < len(parts):
            raise Unproved("a state is cut twice")
        sizes = [self._farthest + 1, *(c.shape[1] for c in self._classes.values())]
        sizes += [len(lo) for lo, _ in self._ends.values()]
        self.cases = int(np.prod(sizes, dtype=object))
        if self.cases > MOST_CASES:
            raise Unproved(f"{self.cases} cases, more than {MOST_CASES}")
        self._known: dict[tuple[int, int], Spread] = {}
        self._bent: dict[tuple[int, int], Array] = {}

    def _collect(self, p: Poly, back: int, seen: set[tuple[int, int]]) -> None:
        """Every table and state that p reads, through what is bent, with its lag."""
        for m in p.terms:
            if not m and back:
                seen.add((0, back))
            for a, lag in m:
                if (a, lag + back) not in seen:
                    seen.add((a, lag + back))
                    if self.terms.atoms[a].kind == "relu":
                        self._collect(self.terms.atoms[a].of, lag + back, seen)

    def _letters(self, atoms: Sequence[int]) -> Array:
        """(tables, classes): the columns of numbers that letters have in these tables, each once."""
        rows = np.stack([np.asarray(self.terms.atoms[a].table) for a in atoms])
        return np.unique(rows[:, self.terms.language.used], axis=1)

    def _cut(self, part: Parts, seen: set[tuple[int, int]]) -> tuple[Array, Array]:
        """The least and the largest number of each part."""
        if (part.atom, part.lag) not in seen or self.terms.atoms[part.atom].kind not in ("sum", "count", "latch"):
            raise Unproved("a part of what is no state here")
        lo, hi = self.terms.atom_range(part.atom, part.lag)
        if list(part.cuts) != sorted(set(part.cuts)) or not part.cuts or not lo < part.cuts[0] <= part.cuts[-1] <= hi:
            raise Unproved(f"the cuts of a state are not increasing within its range, {lo} to {hi}")
        lows, highs = [lo, *part.cuts], [*(c - 1 for c in part.cuts), hi]
        return self._on(part, lows), self._on(part, highs)

    def _on(self, part: Parts, numbers: list[int]) -> Array:
        return self._shaped(integers(numbers), self._part_axis[part.atom, part.lag])

    def _shaped(self, numbers: Array, axis: int) -> Array:
        return numbers.reshape([-1 if i == axis else 1 for i in range(self._rank)])

    def _begun(self, back: int) -> Array:
        """1 where more than `back` positions are there."""
        places = np.arange(1, self._farthest + 2)
        return self._shaped((places > back).astype(np.int64), 0)

    # values -----------------------------------------------------------------------------------------

    def spread(self, p: Poly, back: int = 0) -> Spread:
        """A polynomial with whole coefficients in every case, seen `back` positions back."""
        total: Spread = {}
        for m, c in p.terms.items():
            part: Spread = {(): multiply(integers([whole_number(c)]).reshape([1] * self._rank), self._begun(back))}
            for a, lag in m:
                part = self._product(part, self._atom(a, lag + back))
            for mono, numbers in part.items():
                total[mono] = add(total[mono], numbers) if mono in total else numbers
        if sum(n.size for n in total.values()) > _MOST_NUMBERS:
            raise Unproved(f"{len(total)} terms in {self.cases} cases")
        return {m: n for m, n in total.items() if n.any()}

    def _atom(self, a: int, lag: int) -> Spread:
        if (a, lag) not in self._known:
            self._known[a, lag] = self._spread_atom(a, lag)
        return self._known[a, lag]

    def _spread_atom(self, a: int, lag: int) -> Spread:
        atom, begun = self.terms.atoms[a], self._begun(lag)
        if a == 0:
            return {(): begun}
        if atom.kind == "table":
            place = self._rows[lag].index(a)
            return {(): multiply(self._shaped(self._classes[lag][place], self._axis[lag]), begun)}
        if atom.kind == "relu":
            q = self.spread(atom.of, lag)
            lo, hi = self.range(q)
            up, bent = (lo >= 0).astype(np.int64), ((lo < 0) & (hi > 0)).astype(np.int64)
            found = {m: multiply(n, up) for m, n in q.items()}
            if bent.any():
                self._bent[a, lag] = np.where(hi > 0, hi, 0)
                found[((a, lag),)] = bent
            return found
        if (a, lag) not in self._ends:
            return {((a, lag),): begun}
        lo, hi = self._ends[a, lag]
        fixed = (lo == hi).astype(np.int64)
        return {(): multiply(multiply(lo, fixed), begun), ((a, lag),): multiply(1 - fixed, begun)}

    def _product(self, x: Spread, y: Spread) -> Spread:
        found: Spread = {}
        for m, a in x.items():
            for n, b in y.items():
                mono, numbers = tuple(sorted((*m, *n))), multiply(a, b)
                found[mono] = add(found[mono], numbers) if mono in found else numbers
        return found

    def sum(self, x: Spread, y: Spread) -> Spread:
        return {m: add(x[m], y[m]) if m in x and m in y else x.get(m, y.get(m)) for m in {**x, **y}}  # type: ignore

    def range(self, x: Spread) -> tuple[Array, Array]:
        """The least and the largest value in every case."""
        lo = hi = np.zeros([1] * self._rank, np.int64)
        for m, n in x.items():
            a, b = n, n
            for factor in m:
                ends = [multiply(e, f) for e in (a, b) for f in self._symbol(factor)]
                a, b = fold(np.minimum, ends), fold(np.maximum, ends)
            lo, hi = add(lo, a), add(hi, b)
        return lo, hi

    def _symbol(self, factor: tuple[int, int]) -> tuple[Array, Array]:
        if factor in self._bent:
            return np.zeros([1] * self._rank, np.int64), self._bent[factor]
        if factor in self._ends:
            return self._ends[factor]
        lo, hi = self.terms.atom_range(*factor)
        return tuple(integers([x]).reshape([1] * self._rank) for x in (lo, hi))  # type: ignore[return-value]

    def cells(self, p: Poly) -> tuple[Cell, ...]:
        """All that a polynomial with whole coefficients can be."""
        x = self.spread(p)
        rest = x.get((), np.zeros([1] * self._rank, np.int64))
        step = np.zeros([1] * self._rank, np.int64)
        for m, n in x.items():
            if m:
                step = np.gcd(*alike(step, np.abs(n)))
        lo, hi = self.range(x)
        rows = [r.reshape(-1) for r in np.broadcast_arrays(lo, hi, rest, step)]
        found = set(zip(*(map(int, r) for r in rows), strict=True))
        if len(found) > _MOST_CELLS:
            raise Unproved(f"{len(found)} different cases, more than {_MOST_CELLS}")
        return tuple(Cell(*row) for row in sorted(found))
