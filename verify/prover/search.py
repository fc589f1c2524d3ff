"""Which claim a place needs next: what to cut, which majorant to try, where the ballast is.

Nothing here is trusted. The kernel may be asked what a cut would give (`Grid`); only its rules make facts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from verify.kernel.cases import Apart, Grid, Parts
from verify.kernel.claims import cases_of
from verify.kernel.facts import closer
from verify.kernel.floats import FLOAT32, Format, Unproved, is_power
from verify.kernel.machines import Machine
from verify.kernel.rules import same, stopping
from verify.kernel.situations import MOST_SITUATIONS, Situations
from verify.kernel.terms import ZERO, Poly, Terms, short
from verify.prover.potentials import Potential, number, potential, scaled, written
from verify.prover.questions import text_that_asks
from verify.prover.samples import Samples

Claim = list[Any]
_MOST_CUTS, _MOST_VALUES, _MOST_CASES, _FEW, _MANY = 256, 64, 1 << 13, 4, 32
_MOST_STOP = 64  # where what stops itself does so
_MOST_FOLLOWED = 1 << 12  # numbers of a state of which each is a situation of its own
_BUDGET = 1 << 24  # cases times terms, of all that one search looks at


class Search:
    """A source of claims for `verify.kernel.proof.run`; it tries each once at most.

    reach: 0 cuts and totals only, 1 situations too, 2 also atoms of the circuit that equal some of the weights.
    """

    most_situations = 1 << 14

    def __init__(self, terms: Terms, reach: int = 2, form: Format = FLOAT32):
        self.terms, self._reach, self._form, self.samples = terms, reach, form, Samples(terms)
        self.machines: Sequence[Machine] = ()  # what the task asks
        self.claims: list[Claim] = []
        self._tried: set[tuple] = set()
        self._shown: dict[tuple[str, int], list[int]] = {}  # by norm and ballast: the lanes that it may not hide
        self._too_many: list[tuple[set[int], set[int]]] = []
        self._plain: dict[int, bool] = {}
        self._potentials: dict[tuple[int, int], tuple[Fraction, Potential]] = {}  # of a table: its total, and why
        self._rest: Iterator[Claim] = iter(())  # what is claimed before anything else is looked at again
        self._spent = 0

    def __call__(self, place: str, subjects: Sequence[Poly]) -> Claim | None:
        facts = chain(self.terms.ranged.values(), self.terms.totals.values(), self.terms.equal.values())
        idle = [fact for fact in facts if not fact.used]
        claim = next(chain(self._rest, self._ideas(place, subjects)), None)
        for fact in idle:
            fact.used = False  # what a search reads, a proof does not need
        if claim is not None:
            self.claims.append(claim)
        return claim

    def _ideas(self, place: str, subjects: Sequence[Poly]) -> Iterator[Claim]:
        if place.endswith("norm"):
            yield from self._of_norm(place, subjects)
            return
        if place == "the task" and self._new(place):
            keys = np.array(self.terms.by_letter(subjects[0]), np.int64)  # 1 at each
            yield ["occurrences", written(potential(self.terms.language, keys))]
        if place.startswith("a text that asks") and self._new(place):
            path = text_that_asks(self.terms.language, self.machines[int(place.split()[-1])])
            if path is not None:
                yield ["asks", [list(step) for step in path]]
        if place.startswith("the answers") and self._new(place):
            states = set[int]().union(*map(self._states_of, subjects))
            sizes = {a: hi - lo for a in states for lo, hi in [self.terms.atom_range(a)]}
            wide = {a for a in states if sizes[a] > _MOST_FOLLOWED}
            yield ["answers", *self._names((states - wide, wide))]
        if place == "the rules":
            yield from self._rules(subjects)
            return
        if place.endswith("a new atom"):
            yield from self._same(subjects)
            return
        if place.endswith("a count"):
            yield from self._totals(subjects)
            yield ["outgrows"]
            return
        if place.startswith("the score"):
            yield from self._zero(subjects)
            return
        if len(subjects) > _MANY:  # one claim on a sum of many products does for claims on each of them
            yield from self._apart(subjects[0])
        yield from self._totals(subjects)
        for p in subjects:
            yield from self._cut(p)
        for p in subjects:
            yield from self._apart(p)
        for p in subjects:
            yield from self._follow(p)

    def _zero(self, subjects: Sequence[Poly]) -> Iterator[Claim]:
        """Of the difference of two scores, or of its parts, what is 0 on all samples."""
        zero = [p for p in subjects if not self.samples.of(p)[self.samples.letters >= 0].any()]
        for p in zero:
            yield from self._totals([p])
        for way in (self._cut, self._follow):
            for p in zero:
                yield from way(p)

    def _rules(self, subjects: Sequence[Poly]) -> Iterator[Claim]:
        """Of leads only those count that are not shown to be below the weight: there a walk may be long."""
        if self._new("the rules"):
            yield from self._weight(*subjects[:2])
        weight = max((Fraction(claim[1]) for claim in self.claims if claim[0] == "weight"), default=Fraction(0))
        wide = [p for p in subjects[2:] if self.terms.range(p)[1] >= weight]
        yield from self._totals(wide)
        for way in (self._cut, self._follow, partial(self._follow, far=True)):
            for p in wide:
                yield from way(p)

    def _weight(self, missing: Poly, flag: Poly) -> Iterator[Claim]:
        """What the last rule adds where its flag is 1, and no other rule of its letter holds; where no sample shows it,
        how many times the flag's terms stand in what is missing, or else the number that most terms of it have.
        """
        held = self.samples.of(missing)[(self.samples.letters >= 0) & (self.samples.of(flag) == 1)]
        times = [missing.terms[m] / c for m, c in flag.terms.items() if m in missing.terms]
        times = times or list(map(abs, missing.terms.values()))
        found = Fraction(float(held.min())) if held.size else max(times, key=times.count, default=Fraction(0))
        if found > 0:
            yield ["weight", number(found)]

    def _new(self, *key: Any) -> bool:
        if key in self._tried:
            return False
        self._tried.add(key)
        return True

    # cuts -------------------------------------------------------------------------------------------

    def _cut(self, p: Poly) -> Iterator[Claim]:
        q = p.primitive[1]
        if p.constant or q.key in self.terms.ranged or not self._new("cut", q.key):
            return
        for parts in self._parts(q):
            try:
                found = self._grid([q], parts).cells(q)
            except Unproved:
                continue
            if closer(found, self.terms.cells(q)[1]):
                yield ["cut", short(self.terms.name(q)), self._written(parts)]
                return

    def _apart(self, p: Poly) -> Iterator[Claim]:
        """Of many products that read different letters."""
        q = p.primitive[1]
        known = sum(a in self.terms.totals for m in q.terms for a, _ in m)  # the more, the closer it comes
        if len(q.terms) < _MANY or not self._new("apart", q.key, known):
            return
        for lag in sorted({lag for _, lag, _ in self._tables(q, 0)}):
            try:
                found = Apart(self.terms, lag).cells(q)
            except Unproved:
                continue
            if closer(found, self.terms.cells(q)[1]):
                yield ["apart", short(self.terms.name(q)), lag]
                return

    # equal atoms ------------------------------------------------------------------------------------

    def _same(self, subjects: Sequence[Poly]) -> Iterator[Claim]:
        for p in subjects:
            ((((a, _),), _),) = p.terms.items()
            if self._reach > 1 and a not in self.terms.equal and self._new("same", a):
                others = [(b, sign) for b, sign in self.samples.equal(a) if b is None or b not in self.terms.equal]
                for b, sign in others[:2]:
                    how = self._equal(a, b, sign)
                    if how is not None:
                        other = None if b is None else "-"[: sign < 0] + short(self.terms.atoms[b].name)
                        yield ["same", short(self.terms.atoms[a].name), other, how]
        yield ["new"]

    def _equal(self, a: int, b: int | None, sign: int) -> Claim | None:
        """By which cases two atoms are shown to be equal, or one minus the other (sign −1)."""
        one, two = self.terms.atoms[a], None if b is None else self.terms.atoms[b]
        pairs = [(one.of, ZERO, 1)] if two is None else [(one.of, two.of, sign), (one.flag, two.flag, 1)]
        replaced = self.terms.replaced
        parts = [[(Fraction(1), replaced(p)), (Fraction(-s), replaced(q))] for p, q, s in pairs]
        left = [q for q in map(self.terms.add, parts) if q.terms]
        for how in self._hows(left) if left else [[]]:
            try:
                same(self.terms, 0, a, b, sign, cases_of(self.terms, how))
            except Unproved:
                continue
            return how
        return None

    def _hows(self, polys: Sequence[Poly]) -> Iterator[Claim]:
        for p in polys:
            for parts in self._parts(p.primitive[1]):
                yield ["cut", self._written(parts)] if parts else []
            for ways in self._ways(p.primitive[1]):
                yield ["follow", *self._names(ways)]

    def _names(self, ways: Sequence[set[int]]) -> list[list[str]]:
        return [[short(self.terms.atoms[a].name) for a in sorted(states)] for states in ways]

    # situations -------------------------------------------------------------------------------------

    def _follow(self, p: Poly, far: bool = False) -> Iterator[Claim]:
        """far: through as many situations as a claim may have, and with each state in turn followed."""
        q, most = p.primitive[1], MOST_SITUATIONS if far else self.most_situations
        if not self._reach or p.constant:
            return
        for followed, bounded in self._one_more(q) if far else chain(self._ways(q), self._wider(q)):
            key = "follow", q.key, frozenset(followed), frozenset(bounded)
            if far and key in self._tried and (followed, bounded) not in self._too_many:
                continue  # it was not too far
            if not self._new(*key, far) or not far and not self._new(*key):
                continue
            if not far and any(followed >= exact and bounded >= held for exact, held in self._too_many):
                continue  # there are as many situations of more states
            try:
                cases = Situations(self.terms, [q], followed, bounded, most)
            except Unproved:
                self._too_many.append((followed, bounded))
                continue
            try:
                found = cases.cells(q)
            except Unproved:
                continue
            if closer(found, self.terms.cells(q)[1]):
                yield ["follow", short(self.terms.name(q)), *self._names((followed, bounded))]
                return

    def _ways(self, q: Poly) -> Iterator[tuple[set[int], set[int]]]:
        """All states followed; those that the edges of a path alone move, the others bounded."""
        states = self._states_of(q)
        plain = {a for a in states if self._moved_by_edges(a)}
        yield states, set()
        if states - plain:
            yield plain, states - plain

    def _one_more(self, q: Poly) -> Iterator[tuple[set[int], set[int]]]:
        """All states followed, or those that the edges of a path move and one more."""
        (states, _), *others = self._ways(q)
        yield states, set()
        for plain, held in others:
            for a in sorted(held):
                yield plain | {a}, held - {a}

    def _wider(self, q: Poly) -> Iterator[tuple[set[int], set[int]]]:
        """The states that have few numbers are followed too, as far as the edges tell these."""
        *_, (plain, held) = self._ways(q)
        if not held:
            return
        try:
            ends = Situations(self.terms, [q], plain, held, self.most_situations).ends
        except Unproved:
            return
        wide = {a for a, k in ends if a in held and (ends[a, k][1] - ends[a, k][0]).max() >= _FEW}
        if wide != held:
            yield plain | held - wide, wide

    def _states_of(self, q: Poly) -> set[int]:
        return {a for a in self._read(q) if self.terms.atoms[a].kind not in ("table", "relu")}

    def _moved_by_edges(self, a: int) -> bool:
        """Whether no table that a state reads tells two letters of one edge apart."""
        if a not in self._plain:
            read = [self.terms.atoms[b] for b in self._read(Poly({((a, 0),): Fraction(1)}))]
            tables = [atom.table for atom in read if atom.kind == "table"]
            numbers = [table[e.letters] for table in tables for e in self.terms.language.edges]
            self._plain[a] = all(len(set(found.tolist())) <= 1 for found in numbers)
        return self._plain[a]

    def _read(self, q: Poly) -> set[int]:
        """The atoms that q is made of."""
        found: set[int] = set()
        todo = [q]
        while todo:
            for a in {a for m in todo.pop().terms for a, _ in m} - found:
                found.add(a)
                todo += [self.terms.replaced(self.terms.atoms[a].of), self.terms.atoms[a].flag]
        return found

    def _parts(self, q: Poly) -> Iterator[list[Parts]]:
        """Where what is bent, seen through, changes its sign; then no part at all."""
        cuts: dict[tuple[int, int], set[int]] = {}
        for a, lag in self._bent(q, 0):
            self._crossings(self.terms.atoms[a].of, lag, cuts)
        found = []
        for (a, lag), points in sorted(cuts.items()):
            lo, hi = self.terms.atom_range(a, lag)
            inside = sorted(x for x in points if lo < x <= hi)
            if 0 < len(inside) <= _MOST_CUTS:
                found.append(Parts(a, lag, tuple(inside)))
        if found:
            yield found
        states = sorted(self._states(q, 0, False))
        ranges = {s: self.terms.atom_range(*s) for s in states}
        if states and all(0 < hi - lo <= _MOST_VALUES for lo, hi in ranges.values()):
            yield [Parts(a, lag, tuple(range(lo + 1, hi + 1))) for (a, lag), (lo, hi) in ranges.items()]
        yield []

    def _states(self, p: Poly, back: int, within: bool) -> set[tuple[int, int]]:
        """The states that what is bent reads."""
        found = set()
        for m in p.terms:
            for a, lag in m:
                if self.terms.atoms[a].kind == "relu":
                    found |= self._states(self.terms.atoms[a].of, lag + back, True)
                elif within and self.terms.atoms[a].kind != "table":
                    found.add((a, lag + back))
        return found

    def _bent(self, p: Poly, back: int) -> set[tuple[int, int]]:
        found = set()
        for m in p.terms:
            for a, lag in m:
                if self.terms.atoms[a].kind == "relu":
                    found |= {(a, lag + back)} | self._bent(self.terms.atoms[a].of, lag + back)
        return found

    def _crossings(self, q: Poly, back: int, cuts: dict[tuple[int, int], set[int]]) -> None:
        try:
            spread = self._grid([q], []).spread(q)
        except Unproved:
            return
        states = [m for m in spread if m]
        if len(states) != 1 or len(states[0]) != 1 or self.terms.atoms[states[0][0][0]].kind == "relu":
            return
        ((a, lag),) = states[0]
        slope, rest = np.broadcast_arrays(spread[states[0]], spread.get((), np.zeros(1, np.int64)))
        for s, r in set(zip(map(int, slope.reshape(-1)), map(int, rest.reshape(-1)), strict=True)):
            if s:
                point = -(r // s) if s > 0 else r // -s + 1
                cuts.setdefault((a, lag + back), set()).add(point)

    # totals -----------------------------------------------------------------------------------------

    def _totals(self, subjects: Sequence[Poly]) -> Iterator[Claim]:
        for a in sorted({a for p in subjects for m in p.terms for a, _ in m}):
            if self.terms.atoms[a].kind == "sum" and a not in self.terms.totals and self._new("total", a):
                yield from self._total(a)

    def _total(self, atom: int) -> Iterator[Claim]:
        terms, m = self.terms, self.terms.atoms[atom].of
        best: tuple[Fraction, Claim] | None = None
        for parts in self._parts(m):
            try:
                grid = self._grid([m], parts)
                lo, hi = grid.range(grid.spread(m))
            except Unproved:
                continue
            size = np.maximum(np.abs(lo), np.abs(hi))
            for table, lag, sign in sorted(self._tables(m, 0) | {(0, 0, 1)}):
                spread = grid.spread(Poly({((table, lag),): Fraction(1)})) if table else {(): 0 * size + 1}
                numbers, held = np.broadcast_arrays(sign * spread.get((), 0 * size), size)
                if (held[numbers <= 0] > 0).any():
                    continue
                pairs = zip(held[numbers > 0], numbers[numbers > 0], strict=True)
                weight = max((-(-int(h) // int(n)) for h, n in pairs), default=0)
                if (table, sign) not in self._potentials:
                    amounts = np.maximum(sign * terms.atoms[table].table, 0)
                    found = potential(terms.language, amounts)
                    self._potentials[table, sign] = terms.language.bound_total(amounts, *found), found
                (each, found) = self._potentials[table, sign]
                most, found = weight * each, scaled(found, weight)
                if best is None or most < best[0]:
                    row = [[short(terms.atoms[table].name), lag, sign * weight]]
                    best = most, ["total", short(terms.atoms[atom].name), row, self._written(parts), written(found)]
        best = min([*([best] if best else []), *self._stops(atom)], key=lambda found: found[0], default=None)
        if best is not None and best[0] < terms.total(atom):
            yield best[1]

    def _stops(self, atom: int) -> Iterator[tuple[Fraction, Claim]]:
        """A relu that reads a counter is 0 from its own most on, if it falls by 1 at least."""
        m, name = self.terms.atoms[atom].of, lambda a: short(self.terms.atoms[a].name)
        stop = 1 + max((self.terms.atom_range(a)[1] for a, _ in self._bent(m, 0)), default=0)
        for counter in {a for a, lag in self._states(m, 0, False) if not lag} if 1 < stop <= _MOST_STOP else ():
            try:
                found = stopping(self.terms, 0, atom, counter, stop)
            except Unproved:
                continue
            yield Fraction(found.cells[0].hi), ["stops", name(atom), name(counter), stop]

    def _grid(self, polys: Sequence[Poly], parts: Sequence[Parts]) -> Grid:
        """The cases of a claim, where these are few."""
        grid = Grid(self.terms, polys, parts)
        self._spent += grid.cases * sum(len(p.terms) for p in polys)
        if grid.cases > _MOST_CASES or self._spent > _BUDGET:
            raise Unproved(f"{grid.cases} cases are too many to try")
        return grid

    def _written(self, parts: Sequence[Parts]) -> list:
        return [[short(self.terms.atoms[a].name), lag, list(cuts)] for a, lag, cuts in parts]

    def _tables(self, p: Poly, back: int) -> set[tuple[int, int, int]]:
        """(table, lag, sign): what is bent reads it, and it is above 0 somewhere, times the sign."""
        found = set()
        for m in p.terms:
            for a, lag in m:
                atom = self.terms.atoms[a]
                if atom.kind == "table" and a:
                    found |= {(a, lag + back, s) for s, end in zip((-1, 1), atom.range, strict=True) if s * end > 0}
                elif atom.kind == "relu":
                    found |= self._tables(atom.of, lag + back)
        return found

    # norms ------------------------------------------------------------------------------------------

    def _room(self, squares: Sequence[Fraction], width: int) -> Fraction:
        """How much the squares of the other lanes may add up to, about."""
        if self._form is FLOAT32:
            return min(squares) / FLOAT32.units
        return sum(squares) * (Fraction(1, self._form.units) - Fraction(width + 8, 1 << 23))

    def _of_norm(self, place: str, lanes: Sequence[Poly]) -> Iterator[Claim]:
        """The largest constants first; before that, what bounds the other lanes."""
        held = sorted(
            (i for i, p in enumerate(lanes) if p.constant and is_power(p.const)),
            key=lambda i: (-abs(lanes[i].const), i),
        )
        for count in range(1, min(4, len(held)) + 1):
            chosen = sorted(held[:count])
            total = sum((lanes[i].const ** 2 for i in chosen), Fraction(0)) / len(lanes)
            if is_power(total) and total.numerator.bit_length() % 2:
                room = self._room([lanes[i].const ** 2 for i in chosen], len(lanes))
                shown = self._shown.setdefault((place, count), [i for i in range(len(lanes)) if i not in chosen])
                for i in tuple(shown):
                    p = lanes[i]
                    if max(map(abs, self.terms.range(p))) ** 2 * len(lanes) * 2 < room:
                        shown.remove(i)  # and it stays hidden, as bounds become closer only
                    else:
                        self._rest = self._totals([p])  # all, for to bound p anew behind each takes long
                        if (claim := next(self._rest, None)) is not None:
                            yield claim
                        yield from self._cut(p)
                        yield from self._apart(p)
                        yield from self._follow(p)
                        if self._reach > 1:
                            yield from self._follow(p, far=True)
                sizes = [max(map(abs, self.terms.range(p))) for i, p in enumerate(lanes) if i not in chosen]
                if sum(x**2 for x in sizes) >= room:
                    told = f"the constants do not hide lanes of up to {float(max(sizes)):.4g}"
                    raise Unproved(f"{place}: {told}, and the search finds no closer bounds")
                if self._new("ballast", place):
                    yield ["ballast", chosen]
                return
