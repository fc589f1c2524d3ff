"""Case distinction: what polynomials are at every position, in finitely many cases that cover all of them.

In each case a table is a number, an atom seen too far back is 0, a state is a number or within an interval, and relu(q)
is q or 0 where the case bounds q away from 0. What is left is a polynomial over states, its coefficients arrays of
whole numbers over the cases, so whatever cancels in a case cancels (lemmas of joint values and of the start).

The cases are those of a `Grid`, all combinations of what may stand at a position, or the situations of a walk
(`situations.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from verify.kernel.exact import add, alike, each, fold, integers, multiply
from verify.kernel.facts import Cell
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.letters import letter_classes, letter_kinds
from verify.kernel.terms import Mono, Poly, Terms

MOST_CASES, _MOST_NUMBERS, _MOST_CELLS = 1 << 16, 1 << 22, 1 << 12

Array = np.ndarray
Spread = dict[Mono, Array]  # a polynomial with an array of coefficients for each monomial of states
Place = tuple[int, int]  # an atom and how far back it is seen


class _Form(NamedTuple):
    """bent is relu(q); up, down: where q is known to be at least 0, and at most 0."""

    q: Spread
    bent: Spread
    up: Array
    down: Array


def alike_in(x: Spread, y: Spread, m: Mono) -> tuple[Array, Array]:
    """The coefficients of a monomial in both, as arrays of one shape."""
    zero = np.zeros(1, np.int64)
    left, right = np.broadcast_arrays(x.get(m, zero), y.get(m, zero))
    return left, right


def _in(x: Spread, cases: Array) -> Spread:
    """x in these cases (mask), and 0 in others."""
    return {m: np.where(cases, n, 0) for m, n in x.items()}


class Cases:
    """Cases of which `ends` says the least and the largest number of tables and states; arrays of `rank` axes."""

    def __init__(self, terms: Terms, rank: int):
        self.terms, self._rank = terms, rank
        self.ends: dict[Place, tuple[Array, Array]] = {}
        self._known: dict[Place, Spread] = {}
        self._bent: dict[Place, tuple[Array, Array]] = {}
        self._forms: list[_Form] | None = None  # what is known of relus, where these are compared
        self._flat = False  # whether a compared relu that is 0 in a case is written as 0 there, not by the nearest form

    def begun(self, back: int) -> Array:
        """1 where more than `back` positions are there, else 0."""
        raise NotImplementedError

    def spread(self, p: Poly, back: int = 0) -> Spread:
        """A polynomial with whole coefficients in every case, seen `back` positions back."""
        found: Spread = {}
        for m, c in p.terms.items():
            part: Spread = {(): multiply(self._one(whole_number(c)), self.begun(back))}
            for a, lag in m:
                part = self._product(part, self._atom(a, lag + back))
            for mono, numbers in part.items():
                found[mono] = add(found[mono], numbers) if mono in found else numbers
        formed = sum(n.size for n in found.values())
        if formed > _MOST_NUMBERS:
            raise Unproved(f"{len(found)} terms in {max(n.size for n in found.values())} cases")
        self.terms.spend(formed)
        return {m: n for m, n in found.items() if n.any()}

    def _one(self, number: int) -> Array:
        return integers([number]).reshape([1] * self._rank)

    def _atom(self, a: int, lag: int) -> Spread:
        if (a, lag) not in self._known:
            found = self._bend(a, lag) if self.terms.atoms[a].kind == "relu" else self._look_up(a, lag)
            self._known[a, lag] = {m: n for m, n in found.items() if n.any()}
        return self._known[a, lag]

    def _bend(self, a: int, lag: int) -> Spread:
        """relu(q): q, 0, or where the case leaves it bent a symbol within 0 and the most that q is there. With `_forms`
        the symbol is the difference from the nearest relu(q + c) that is known, or from q, where −q is closer to 0.

        Invariant, in every case: relu(q) = found + symbol with least <= symbol <= most, and the symbol is 0 where
        `same`. At first found is q on a `line` (relu(q) − q is 0 to −lo there), else 0 (relu(q) is 0 to hi); the symbol
        is 0 where q is `up` or `down`, for relu(q) is q or 0 then. A near form f with q = f + apart: relu(q) − relu(f)
        lies between 0 and apart; it is apart where both are up, and 0 where both are down. `_flat`: where q is down,
        0 itself is taken, and not the terms by which relu(f) is 0.
        """
        q = self.spread(self.terms.replaced(self.terms.atoms[a].of), lag)
        lo, hi = self.range(q)
        up, down = lo >= 0, hi <= 0
        line = up if self._forms is None else lo >= -hi
        found, same = _in(q, line), up | down
        least, most = 0 * hi, np.maximum(np.where(line, -lo, hi), 0)
        for here, apart, form in self._near(q):  # relu rises, and by no more than what it bends
            flat = down & (form.down | self._flat)
            near = self.sum(form.bent, {(): (up & form.up) * apart})
            found = self.sum(_in(found, ~here), _in(near, here & ~(flat & self._flat)))
            same = np.where(here, (up & form.up) | flat, same)
            least = np.where(here, np.minimum(apart, 0), least)
            most = np.where(here, np.maximum(apart, 0), most)
        if not same.all():
            self._bent[a, lag] = least, most
            found = self.sum(found, {((a, lag),): 1 - same.astype(np.int64)})
        if self._forms is not None:
            self._forms += [_Form(q, found, up, down), _Form(found, found, up | True, up & False)]
        return found

    def _near(self, q: Spread) -> list[tuple[Array, Array, _Form]]:
        """The nearest form q + c that is known: (in which cases it is this one, −c, the form). Each case has one at
        most: that of the least |c| there, the first of several, and only where all but the constants are alike.
        """
        found = []
        for form in self._forms or ():
            here = np.ones([1] * self._rank, bool)
            for m in {**form.q, **q}:
                here = here & np.equal(*alike_in(form.q, q, m)) if m else here
                if not here.any():
                    break
            else:
                right, left = alike_in(form.q, q, ())
                found.append((here, add(left, -right), form))
        if not found:
            return []
        far = np.stack(np.broadcast_arrays(*(np.where(h, np.abs(c).astype(float), np.inf) for h, c, _ in found)))
        nearest = far.argmin(axis=0)
        return [(here & (nearest == i), apart, form) for i, (here, apart, form) in enumerate(found)]

    def _look_up(self, a: int, lag: int) -> Spread:
        begun = self.begun(lag)
        if a == 0:
            return {(): begun}
        if (a, lag) not in self.ends and self.terms.atoms[a].kind != "table":
            return {((a, lag),): begun}
        lo, hi = self.ends[a, lag]
        return {(): np.where(lo == hi, lo, 0) * begun, ((a, lag),): np.where(lo == hi, 0, begun)}

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
        lo = hi = self._one(0)
        language = self.terms.language
        for m, n in x.items():
            a, b = n, n
            each(language.check_factor, n)
            for factor in m:
                symbol = self._symbol(factor)
                ends = [multiply(e, f) for e in (a, b) for f in symbol]
                a, b = fold(np.minimum, ends), fold(np.maximum, ends)
                for numbers in (*symbol, a, b):
                    each(language.check_end, numbers)
            lo, hi = add(lo, a), add(hi, b)
        return lo, hi

    def _symbol(self, factor: Place) -> tuple[Array, Array]:
        if factor in self._bent:
            return self._bent[factor]
        if factor in self.ends:
            return self.ends[factor]
        lo, hi = self.terms.atom_range(*factor)
        return self._one(lo), self._one(hi)

    def cells(self, p: Poly) -> tuple[Cell, ...]:
        """All that a polynomial with whole coefficients can be: within what is seen of it without `_forms`, with them,
        and with them where `_flat`.

        Each twin writes the same number in the same case, so all their ends hold. What it is modulo a step is read of
        one of them, the last, where the fewest terms are left; any would be right. lo > hi: no number is within
        all ends, so the case never occurs, and its cell does no harm.
        """
        x = self.spread(p)
        lo, hi = self.range(x)
        for flat in (True, False) if self._bent else ():
            twin = copy(self)
            twin._known, twin._bent, twin._forms, twin._flat = {}, {}, [], flat
            x = twin.spread(p)
            least, most = twin.range(x)
            lo, hi = fold(np.maximum, (lo, least)), fold(np.minimum, (hi, most))
        step = self._one(0)
        for m, n in x.items():
            if m:
                step = np.gcd(*alike(step, np.abs(n)))
        rows = [r.reshape(-1) for r in np.broadcast_arrays(lo, hi, x.get((), self._one(0)), step)]
        found = set(zip(*(map(int, r) for r in rows), strict=True))
        if len(found) > _MOST_CELLS:
            raise Unproved(f"{len(found)} different cases, more than {_MOST_CELLS}")
        return tuple(Cell(*row) for row in sorted(found))


class Parts(NamedTuple):
    """The range of a state, seen `lag` positions back, cut before each of these numbers."""

    atom: int
    lag: int
    cuts: tuple[int, ...]


class Grid(Cases):
    """All combinations of the position (1, 2, …, k, and all beyond, k the farthest lag), of the letter at each lag (the
    letters that no table tells apart are one class), and of parts of the ranges of states, as a claim names them. That
    some of them never occur does no harm.
    """

    def __init__(self, terms: Terms, polys: Sequence[Poly], parts: Sequence[Parts] = ()):
        seen: set[Place] = set()
        for p in polys:
            places_in(terms, p, 0, seen)
        tables = sorted((a, lag) for a, lag in seen if a and terms.atoms[a].kind == "table")
        rows = {lag: [a for a, k in tables if k == lag] for lag in sorted({lag for _, lag in tables})}
        super().__init__(terms, 1 + len(rows) + len(parts))
        farthest = max((lag for _, lag in seen), default=0)
        if farthest >= MOST_CASES:
            raise Unproved(f"what is seen {farthest} positions back makes more than {MOST_CASES} cases")
        self._positions = np.arange(1, farthest + 2)
        self.read = {
            lag: (1 + axis, atoms) for axis, (lag, atoms) in enumerate(rows.items())
        }  # axis and tables of a lag
        sizes = [len(self._positions)]
        for axis, (lag, atoms) in enumerate(rows.items()):
            classes = letter_classes(terms, atoms)
            sizes.append(classes.shape[1])
            for a, numbers in zip(atoms, classes, strict=True):
                self.ends[a, lag] = (self._along(numbers, 1 + axis),) * 2
        for i, part in enumerate(parts):
            if (part.atom, part.lag) in self.ends:
                raise Unproved("a state is cut twice")
            sizes.append(len(part.cuts) + 1)
            lows, highs = self._cut(part, seen)
            axis = 1 + len(rows) + i
            self.ends[part.atom, part.lag] = self._along(integers(lows), axis), self._along(integers(highs), axis)
        self.cases = int(np.prod(sizes, dtype=object))
        if self.cases > MOST_CASES:
            raise Unproved(f"{self.cases} cases, more than {MOST_CASES}")

    def _cut(self, part: Parts, seen: set[Place]) -> tuple[list[int], list[int]]:
        """The least and the largest number of each part."""
        if (part.atom, part.lag) not in seen or self.terms.atoms[part.atom].kind not in ("sum", "count", "latch"):
            raise Unproved("a part of what is no state here")
        lo, hi = self.terms.atom_range(part.atom, part.lag)
        if list(part.cuts) != sorted(set(part.cuts)) or not part.cuts or not lo < part.cuts[0] <= part.cuts[-1] <= hi:
            raise Unproved(f"the cuts of a state are not increasing within its range, {lo} to {hi}")
        for cut in part.cuts:
            self.terms.language.check_factor(cut)
        return [lo, *part.cuts], [*(c - 1 for c in part.cuts), hi]

    def _along(self, numbers: Array, axis: int) -> Array:
        return numbers.reshape([-1 if i == axis else 1 for i in range(self._rank)])

    def begun(self, back: int) -> Array:
        return self._along((self._positions > back).astype(np.int64), 0)


class Apart:
    """A sum of many products, of which each reads a few letters only: letter by letter, each product on a grid of its
    own. At each position some letter stands `lag` back (before the start any will do), so the sum is within the sums of
    the least and of the most that its products are there (lemma of joint values; Alike.products_apart).
    """

    def __init__(self, terms: Terms, lag: int):
        self.terms, self._lag = terms, lag

    def cells(self, p: Poly) -> tuple[Cell, ...]:
        low = high = np.zeros(self.terms.language.tokens, np.int64)
        for m, c in p.terms.items():
            product = Poly({m: c})
            grid = Grid(self.terms, [product])
            axis, tables = grid.read.get(self._lag, (None, [0]))
            first, _, kind = letter_kinds(self.terms, tables)
            least, most = grid.range(grid.spread(product))
            others = tuple(i for i in range(least.ndim) if i != axis)
            low = add(low, np.broadcast_to(least.min(axis=others), first.shape)[kind])
            high = add(high, np.broadcast_to(most.max(axis=others), first.shape)[kind])
            self.terms.spend(low.size)
        used = self.terms.language.used
        return (Cell(int(low[used].min()), int(high[used].max()), 0, 1),)


def places_in(terms: Terms, p: Poly, back: int, seen: set[Place]) -> None:
    """Adds every table and state that p reads, through what is bent, with its lag; (0, lag) for a number seen so far
    back."""
    for m in p.terms:
        if not m and back:
            seen.add((0, back))
        for a, lag in m:
            if (a, lag + back) not in seen:
                seen.add((a, lag + back))
                if terms.atoms[a].kind == "relu":
                    places_in(terms, terms.replaced(terms.atoms[a].of), lag + back, seen)
