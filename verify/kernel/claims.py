"""Claims: what a certificate says, each a list of plain entries, and what each entry must be.

    ["cut", polynomial, parts]                           `rules.ranged` by `cases.Grid`
    ["follow", polynomial, [state, …], [state, …]]       `rules.ranged` by `situations.Situations`
    ["same", new atom, atom or null, how]                `rules.same`, of atoms of circuit.json; ["new"]: no other is;
                                                         "-" before the other atom: minus it
    ["total", sum, [[table, lag, weight], …], parts, [cost, heights, charged edges]]    `rules.total`
    ["answers", [state, …], [state, …]]                  `rules.answered`
    ["ballast", [lane, …]]                               `rules.ballast`
    ["occurrences", [cost, heights, charged edges]]       `rules.occurrences`

how: [], ["cut", parts] or ["follow", [state, …], [state, …]].
parts: [[state, lag, [first number of a part, …]], …]. A polynomial or an atom is named by a digest of its content, so
a name means one term or none; it must have been built before, and a polynomial be one of those that the place needs.
Numbers are naturals (a cut may be below 0), or reduced fractions "a/b".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from verify.kernel.cases import Cases, Grid, Parts
from verify.kernel.facts import Fact, Ranged, closer
from verify.kernel.floats import Unproved
from verify.kernel.rules import ranged, same, total
from verify.kernel.situations import Situations
from verify.kernel.terms import Poly, Terms, short

F = TypeVar("F", bound=Fact)
NextClaim = Callable[[str, Sequence[Poly]], Any]
_FRACTION = re.compile("[1-9][0-9]*/[1-9][0-9]*")
MOST_DIGITS = 400
MOST_LAG = 1 << 12  # cases hold a number for each position up to the farthest that is read


def natural(entry: Any) -> int:
    if type(entry) is not int or entry < 0 or entry >= 10**MOST_DIGITS:
        raise Unproved(f"{entry!r:.40} is no natural number")
    return entry


def positions_back(entry: Any) -> int:
    if natural(entry) > MOST_LAG:
        raise Unproved(f"{entry!r:.40} positions back is farther than {MOST_LAG}")
    return entry


def integer(entry: Any) -> int:
    if type(entry) is not int or abs(entry) >= 10**MOST_DIGITS:
        raise Unproved(f"{entry!r:.40} is no integer")
    return entry


def fraction(entry: Any) -> Fraction:
    """A natural number, or a reduced fraction that is none."""
    if type(entry) is int:
        return Fraction(natural(entry))
    if type(entry) is not str or len(entry) > MOST_DIGITS or not _FRACTION.fullmatch(entry):
        raise Unproved(f"{entry!r:.40} is no natural number and no fraction")
    found = Fraction(entry)
    if str(found) != entry or found.denominator == 1:
        raise Unproved(f"{entry!r:.40} is not reduced")
    return found


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
    return [Parts(atom(terms, a), positions_back(lag), tuple(map(integer, entries(cuts)))) for a, lag, cuts in rows]


def cases_of(terms: Terms, entry: Any) -> Callable[[Poly], Cases]:
    """The cases of a polynomial that a claim names."""
    kind, *how = entries(entry) or ["cut", []]
    if kind == "cut":
        (parts,) = entries(how, 1)
        return lambda p: Grid(terms, [p], parts_of(terms, parts))
    if kind == "follow":
        followed, bounded = ([atom(terms, a) for a in entries(states)] for states in entries(how, 2))
        return lambda p: Situations(terms, [p], followed, bounded)
    raise Unproved(f"{kind!r:.40} makes no cases")


def potential_of(entry: Any) -> tuple[Fraction, list[Fraction], list[int]]:
    cost, heights, charged = entries(entry, 3)
    found = [natural(e) for e in entries(charged)]
    if found != sorted(set(found)):
        raise Unproved("the charged edges are not different ones, in their order")
    return fraction(cost), [fraction(x) for x in entries(heights)], found


def make_fact(terms: Terms, number: int, claim: Any, subjects: Mapping[str, Poly]) -> Ranged:
    """The fact of a claim on a polynomial, which is known from then on."""
    if not entries(claim):
        raise Unproved("it is empty")
    kind, *rest = claim
    if kind in ("cut", "follow"):
        if not rest or type(rest[0]) is not str or rest[0] not in subjects:
            raise Unproved(f"{rest[:1]!r:.40} names no polynomial that is needed here")
        p = subjects[rest[0]]
        return _known(terms.ranged, p.key, ranged(number, p, cases_of(terms, [kind, *rest[1:]])))
    if kind == "total":
        name, rows, parts, potential = entries(rest, 4)
        each = (entries(row, 3) for row in entries(rows))
        majorant = [(atom(terms, a), positions_back(lag), natural(w)) for a, lag, w in each]
        which, fall = atom(terms, name), potential_of(potential)
        return _known(terms.totals, which, total(terms, number, which, majorant, parts_of(terms, parts), fall))
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
        named: dict[str, Poly] | None = None
        while True:
            try:
                return check()
            except Unproved as reason:
                claim = self._next(place, subjects)
                if claim is None:
                    raise
                if named is None:
                    named = {short(self.terms.name(q)): q for q in (p.primitive[1] for p in subjects if not p.constant)}
                try:
                    self._apply(claim, named, make)
                except Unproved as refused:
                    number = len(self.claims)
                    raise Refused(f"claim {number} is refused: {refused}; it stands where {reason}") from refused

    def _apply(self, claim: Any, named: Mapping[str, Poly], make: Callable | None) -> None:
        number = len(self.claims) + 1
        self.claims.append(claim)
        of_place = make is not None and type(claim) is list and claim[:1] not in (["cut"], ["follow"], ["total"])
        self.facts.append(make(number, claim) if make and of_place else make_fact(self.terms, number, claim, named))

    def single(
        self,
        place: str,
        subjects: Sequence[Poly],
        kind: str,
        make: Callable[[int, Any], F],
        check: Callable[[F], None] = lambda fact: None,
    ) -> F:
        """The one fact of the rule that only this place has, once `check` holds of it. make: (number, the claim's
        entries behind its kind) to the fact.
        """
        found: list[F] = []

        def of_claim(number: int, claim: list[Any]) -> F:
            if claim[:1] != [kind] or found:
                raise Unproved(f"{place} needs one claim of the kind {kind!r}")
            found.append(make(number, claim[1:]))
            return found[0]

        def held() -> F:
            if not found:
                raise Unproved(f"{place}: no claim of the kind {kind!r}")
            check(found[0])
            return found[0].read()

        return self.until(place, subjects, held, of_claim)

    def compare(self, place: str, new: Sequence[int]) -> None:
        """Claims say which of these new atoms equal earlier ones, which then stand in their place, up to ["new"]."""
        while True:
            claim, number = self._next(place, [Poly({((a, 0),): Fraction(1)}) for a in new]), len(self.claims) + 1
            if claim is None:
                raise Unproved(f"{place}: no claim says whether it is new")
            self.claims.append(claim)
            if claim == ["new"]:
                return
            try:
                kind, name, other, how = entries(claim, 4)
                sign = -1 if type(other) is str and other[:1] == "-" else 1
                one = atom(self.terms, name)
                two = None if other is None else atom(self.terms, other if sign > 0 else other[1:])
                if kind != "same" or one not in new or one in self.terms.equal or two in self.terms.equal:
                    raise Unproved("it compares no new atom with one that still stands")
                self.terms.equal[one] = same(self.terms, number, one, two, sign, cases_of(self.terms, how))
                self.facts.append(self.terms.equal[one])
            except Unproved as refused:
                raise Refused(f"claim {number} is refused: {refused}; it stands at {place}") from refused

    def check_used(self) -> None:
        """Every claim was needed."""
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
