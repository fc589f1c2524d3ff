"""Claims: what a certificate says, each a list of plain entries, and what each entry must be.

    ["cut", polynomial, parts]                           `rules.ranged` by `cases.Grid`
    ["follow", polynomial, [state, …], [state, …]]       `rules.ranged` by `situations.Situations`
    ["apart", polynomial, lag]                           `rules.ranged` by `cases.Apart`
    ["same", new atom, atom or null, how]                `rules.same`, of atoms of circuit.json; ["new"]: no other is;
                                                         "-" before the other atom: minus it
    ["total", sum, [[table, lag, weight], …], parts, [cost, heights, charged edges]]    `rules.total`
    ["stops", sum, counter, number]                      `rules.stopping`
    ["answers", [state, …], [state, …]]                  `rules.answered`
    ["ballast", [lane, …]]                               `rules.ballast`
    ["occurrences", [cost, heights, charged edges]]       `rules.occurrences`
    ["weight", number]                                   `rules.weighed`
    ["asks", [[edge, letter], …]]                        `rules.asked`

how: [], ["cut", parts], ["follow", [state, …], [state, …]] or ["apart", lag].
parts: [[state, lag, [first number of a part, …]], …]. A polynomial or an atom is named by a digest of its content, so
a name means one term or none; it must have been built before, and a polynomial be one of those that the place needs.
Numbers are naturals (a cut may be below 0), or reduced fractions "a/b".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any

from verify.kernel.cases import Apart, Cases, Grid, Parts
from verify.kernel.facts import Fact, Known, Ranged, closer
from verify.kernel.floats import Unproved
from verify.kernel.rules import ranged, same, stopping, total
from verify.kernel.situations import Situations
from verify.kernel.terms import Poly, Terms, short

NextClaim = Callable[[str, Sequence[Poly]], Any]
_FRACTION = re.compile("[1-9][0-9]*/[1-9][0-9]*")
MOST_DIGITS = 400
MOST_LAG = 1 << 12  # cases hold a number for each position up to the farthest that is read
MOST_CLAIMS = 1 << 15


def natural(entry: Any, most: int = 10**MOST_DIGITS) -> int:
    if type(entry) is not int or not 0 <= entry <= most:
        raise Unproved(f"{entry!r:.40} is no natural number, or too large")
    return entry


def integer(entry: Any) -> int:
    if type(entry) is not int or abs(entry) >= 10**MOST_DIGITS:
        raise Unproved(f"{entry!r:.40} is no integer")
    return entry


def fraction(entry: Any) -> Fraction:
    """A natural number, or a reduced fraction that is none."""
    if type(entry) is int:
        return Fraction(natural(entry))
    known = type(entry) is str and len(entry) <= MOST_DIGITS and _FRACTION.fullmatch(entry)
    if not known or str(Fraction(entry)) != entry:
        raise Unproved(f"{entry!r:.40} is no natural number and no reduced fraction")
    return Fraction(entry)


def entries(entry: Any, count: int | None = None) -> list:
    if type(entry) is not list or count is not None and len(entry) != count:
        raise Unproved(f"{entry!r:.40} is no list{'' if count is None else f' of {count}'}")
    return entry


def atom(terms: Terms, entry: Any) -> int:
    if type(entry) is not str or entry not in terms.named:
        raise Unproved(f"{entry!r:.40} names no atom that was built before")
    return terms.named[entry]


def parts_of(terms: Terms, entry: Any) -> list[Parts]:
    rows = [entries(row, 3) for row in entries(entry)]
    return [Parts(atom(terms, a), natural(lag, MOST_LAG), tuple(map(integer, entries(cuts)))) for a, lag, cuts in rows]


def cases_of(terms: Terms, entry: Any) -> Callable[[Poly], Cases | Apart]:
    """The cases of a polynomial that a claim names."""
    kind, *how = entries(entry) or ["cut", []]
    if kind == "cut":
        (parts,) = entries(how, 1)
        return lambda p: Grid(terms, [p], parts_of(terms, parts))
    if kind == "follow":
        followed, bounded = ([atom(terms, a) for a in entries(states)] for states in entries(how, 2))
        return lambda p: Situations(terms, [p], followed, bounded)
    if kind == "apart":
        (lag,) = entries(how, 1)
        return lambda p: Apart(terms, natural(lag, MOST_LAG))
    raise Unproved(f"{kind!r:.40} makes no cases")


def potential_of(entry: Any) -> tuple[Fraction, list[Fraction], list[int]]:
    cost, heights, charged = entries(entry, 3)
    found = [natural(e) for e in entries(charged)]
    if found != sorted(set(found)):
        raise Unproved("the charged edges are not different ones, in their order")
    return fraction(cost), [fraction(x) for x in entries(heights)], found


def path_of(entry: Any) -> list[tuple[int, int]]:
    return [(natural(i), natural(a)) for i, a in (entries(step, 2) for step in entries(entry))]


def make_fact(terms: Terms, number: int, claim: Any, named: Callable[[], Mapping[str, Poly]]) -> Ranged:
    """The fact of a claim on a polynomial, which is known from then on. named: those that are needed here."""
    if not entries(claim):
        raise Unproved("it is empty")
    kind, *rest = claim
    if kind in ("cut", "follow", "apart"):
        if not rest or type(rest[0]) is not str or rest[0] not in named():
            raise Unproved(f"{rest[:1]!r:.40} names no polynomial that is needed here")
        p = named()[rest[0]]
        return _known(terms.ranged, p.key, ranged(number, p, cases_of(terms, [kind, *rest[1:]])))
    if kind == "total":
        name, rows, parts, potential = entries(rest, 4)
        each = (entries(row, 3) for row in entries(rows))
        majorant = [(atom(terms, a), natural(lag, MOST_LAG), integer(w)) for a, lag, w in each]
        which, fall = atom(terms, name), potential_of(potential)
        return _known(terms.totals, which, total(terms, number, which, majorant, parts_of(terms, parts), fall))
    if kind == "stops":
        name, counter, stop = entries(rest, 3)
        which = atom(terms, name)
        fact = stopping(terms, number, which, atom(terms, counter), natural(stop, MOST_LAG))
        return _known(terms.totals, which, fact)
    raise Unproved(f"{kind!r:.40} is no rule that this place needs")


def _known(facts: dict, key: Any, fact: Ranged) -> Ranged:
    if key in facts and not closer(fact.cells, facts[key].cells):
        raise Unproved("as much was claimed before")
    facts[key] = fact
    return fact


class Ledger:
    """Where a proof needs a fact it asks for the next claim, and asks again until its check holds.

    next_claim: from a place and the polynomials that it needs to a claim (None: there is none).
    """

    def __init__(self, terms: Terms, next_claim: NextClaim):
        self.terms, self._next = terms, next_claim
        self.facts: list[Fact] = []
        self.claims: list[Any] = []

    def until(
        self, place: str, subjects: Sequence[Poly], check: Callable[[], Any], make: Callable | None = None
    ) -> Any:
        """What `check` returns once it holds. make: (number, claim) to a fact, of the rule that only this place has."""
        of_claim = make or self._make(subjects)
        while True:
            try:
                return check()
            except Unproved as reason:
                claim = self._next(place, subjects)
                if claim is None:
                    raise
                self._add(claim, of_claim, f"where {reason}")

    def _make(self, subjects: Sequence[Poly]) -> Callable[[int, Any], Ranged]:
        """Makes the fact of a claim on one of these; a place may need thousands, whose names are formed once."""
        named = cache(
            lambda: {short(self.terms.name(p.primitive[1])): p.primitive[1] for p in subjects if not p.constant}
        )
        return lambda number, claim: make_fact(self.terms, number, claim, named)

    def _add(self, claim: Any, make: Callable[[int, Any], Fact], where: str) -> None:
        self.claims.append(claim)
        if len(self.claims) > MOST_CLAIMS:
            raise Unproved(f"more than {MOST_CLAIMS} claims")
        try:
            self.facts.append(make(len(self.claims), claim))
        except Unproved as refused:
            raise Refused(f"claim {len(self.claims)} is refused: {refused}; it stands {where}") from refused

    def single(
        self,
        place: str,
        subjects: Sequence[Poly],
        kind: str,
        count: int,
        make: Callable[..., Known],
        check: Callable[[Any], None] = lambda value: None,
    ) -> Any:
        """What the rule gives that only this place has, once `check` holds of it. make: (number, the claim's entries
        behind its kind, so many) to the fact.
        """
        found: list[Known] = []
        of_subjects = self._make(subjects)

        def of_claim(number: int, claim: Any) -> Fact:
            if entries(claim)[:1] != [kind]:
                return of_subjects(number, claim)
            if found:
                raise Unproved(f"{place} needs one claim of the kind {kind!r}")
            found.append(make(number, *entries(claim, 1 + count)[1:]))
            return found[0]

        def held() -> Any:
            if not found:
                raise Unproved(f"{place}: no claim of the kind {kind!r}")
            check(found[0].value)
            return found[0].read().value

        return self.until(place, subjects, held, of_claim)

    def outgrows(self, place: str, count: Poly, fits: Callable[[], bool]) -> bool:
        """Whether ["outgrows"] takes a count for one that outgrows the format; else claims show that it fits."""
        of_claim = self._make([count])
        while not fits():
            claim = self._next(place, [count])
            if claim is None:
                raise Unproved(f"{place}: no claim says whether it outgrows the format")
            if claim == ["outgrows"]:
                self.claims.append(claim)
                return True
            self._add(claim, of_claim, f"at {place}")
        return False

    def compare(self, place: str, new: Sequence[int]) -> None:
        """Claims say which of these new atoms equal earlier ones, which then stand in their place, up to ["new"]."""
        subjects = [Poly({((a, 0),): Fraction(1)}) for a in new]
        while (claim := self._next(place, subjects)) != ["new"]:
            if claim is None:
                raise Unproved(f"{place}: no claim says whether it is new")
            self._add(claim, partial(self._same, new), f"at {place}")
        self.claims.append(claim)

    def _same(self, new: Sequence[int], number: int, claim: Any) -> Fact:
        kind, name, other, how = entries(claim, 4)
        sign = -1 if type(other) is str and other[:1] == "-" else 1
        one = atom(self.terms, name)
        two = None if other is None else atom(self.terms, other if sign > 0 else other[1:])
        if kind != "same" or one not in new or one in self.terms.equal or two in self.terms.equal:
            raise Unproved("it compares no new atom with one that still stands")
        self.terms.equal[one] = same(self.terms, number, one, two, sign, cases_of(self.terms, how))
        return self.terms.equal[one]

    def check_used(self) -> None:
        """Every claim was read somewhere."""
        idle = [fact.claim for fact in self.facts if not fact.used]
        if idle:
            raise Unused(idle)


class Refused(Exception):
    """A claim that is malformed, untrue, repeated or unused: its number, and why."""


class Unused(Refused):
    """Nothing was concluded from the claims of these numbers."""

    def __init__(self, claims: list[int]):
        super().__init__(f"claim {claims[0]} is used nowhere")
        self.claims = claims
