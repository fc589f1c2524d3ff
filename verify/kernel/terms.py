"""Exact values as polynomials over integer-valued atoms.

An *atom* is a whole number at each position t = 1, 2, … of a sequence, by its kind:

    table   a number of the letter at t
    relu    max(q(t), 0) of a polynomial q
    sum     q(1) + … + q(t)
    count   q(s + 1) + … + q(t) for the last position s <= t where a flag f was 1; q(1) + … + q(t) where there is none
    latch   q(s) for that s; 0 where there is none

An atom seen `lag` positions back is its number at t − lag, and 0 at the first `lag` positions. A *monomial* is a sorted
product of atoms, each with its lag; the empty one is the number 1. A *polynomial* is Σ coefficient · monomial, with
dyadic coefficients. In q above they are whole, without a common divisor. Terms are built from the files only: no claim
states one. All that stands here is exact arithmetic; of floats `mixers.py` speaks.

What is the same seen k back is one atom, seen k back. Its flag, where it has one, was proved to be 0 or 1 seen so. At
the last k positions of a sequence it may be another number. An atom means something there too, as 1 and more count as
1; but what needs a flag of 0 or 1 must show it where it reads the flag.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

import numpy as np

from verify.kernel.exact import add, integers, multiply, size, whole
from verify.kernel.facts import Cell, Ranged, Same, ends
from verify.kernel.floats import Unproved, exponent
from verify.kernel.language import Language

Mono = tuple[tuple[int, int], ...]  # (atom, lag) of each factor, sorted
_MOST_TERMS = 1 << 16  # of a polynomial
_MOST_WORK, _OF_A_WEIGHT = (
    1 << 31,
    1 << 5,
)  # numbers that a proof forms, or what takes as long; and more for each weight
_OF_A_TERM = 1 << 11  # numbers that take as long as a term of a polynomial, or a polynomial without any
_OF_A_LETTER, _OF_A_FRACTION = 1 << 2, 1 << 10  # of a function of one; where its numbers are looked at one by one
_ONE = 0  # the atom that is 1 for every letter: seen k back, it is 0 at the first k positions


class Poly:
    """Immutable; equal keys are equal polynomials."""

    def __init__(self, terms: Mapping[Mono, Fraction]):
        self.terms = {m: c for m, c in terms.items() if c}
        if len(self.terms) > _MOST_TERMS:
            raise Unproved(f"a polynomial of {len(self.terms)} terms")

    @cached_property
    def key(self) -> tuple:
        return tuple(sorted(self.terms.items()))

    @cached_property
    def unit(self) -> int:
        """Every value is a multiple of 2^unit; 0 for the polynomial 0."""
        return min((exponent(c) for c in self.terms.values()), default=0)

    @property
    def const(self) -> Fraction:
        return self.terms.get((), Fraction(0))

    @property
    def constant(self) -> bool:
        return not set(self.terms) - {()}

    @cached_property
    def primitive(self) -> tuple[Fraction, Poly]:
        """(c, q) with this = c · q, the coefficients of q whole, without a common divisor, the first one positive."""
        if not self.terms:
            return Fraction(1), self
        below = lcm(*(c.denominator for c in self.terms.values()))
        above = gcd(*(int(c * below) for c in self.terms.values()))
        c = Fraction(above, below) * (1 if self.key[0][1] > 0 else -1)
        return c, Poly({m: v / c for m, v in self.terms.items()})


ZERO = Poly({})


def constant(x: Fraction | int) -> Poly:
    return Poly({(): Fraction(x)})


@dataclass(frozen=True, eq=False)
class Atom:
    """kind: "table", "relu", "sum", "count" or "latch". name: a digest of the content. table: whole numbers by
    letter. of: what is bent, summed or stored; flag: when it is stored or lost. range: from its parts' ranges.
    """

    kind: str
    name: str
    range: tuple[int, int]
    table: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    of: Poly = ZERO
    flag: Poly = ZERO

    @cached_property
    def held(self) -> np.ndarray:
        """The letters at which a table is not 0."""
        return np.flatnonzero(self.table)


def short(name: str) -> str:
    """A name as claims have it: two atoms that share one are refused, and a polynomial's claim is proved of it."""
    return name[:16]


class Terms:
    """The atoms of one proof, each once, and what is proved of the ranges of polynomials. weights: how many numbers the
    files have, for the limit of what the proof may take."""

    def __init__(self, language: Language, weights: int = 0):
        self.language = language
        self.atoms: list[Atom] = []
        self.named: dict[str, int] = {}  # as claims name them
        self._known: dict[str, int] = {}  # by the whole digest of their content
        self.ranged: dict[tuple, Ranged] = {}  # by the key of a primitive polynomial
        self.totals: dict[int, Ranged] = {}  # by a sum or count: the range of every partial sum of its terms
        self.equal: dict[int, Same] = {}  # by an atom, which is replaced by the other one
        self._work, self._most = 0, _MOST_WORK + _OF_A_WEIGHT * weights
        self.kinds: dict[tuple, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}  # what `letters.letter_kinds` has found
        self.classes: dict[tuple, np.ndarray] = {}  # what `letters.letter_classes` has found
        self.bounds: dict[tuple, Fraction] = {}  # of what `rules.total` compares with
        self.walks: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}  # what `situations.py` has gone through
        self._first = int(np.argmax(language.used))
        self._table(np.ones(language.tokens, dtype=np.int64))

    def spend(self, numbers: int) -> None:
        """Counts what a proof takes: each claim and stream has limits of its own, but there may be many of them."""
        self._work += numbers
        if self._work > self._most:
            raise Unproved(f"the proof forms more than {self._most} numbers")

    def _spend_terms(self, terms: int) -> None:
        self.spend(_OF_A_TERM * (1 + terms))

    # atoms ------------------------------------------------------------------------------------------

    def _new(self, content: str, make) -> int:
        name = hashlib.sha256(content.encode()).hexdigest()
        if name not in self._known:
            if short(name) in self.named:
                raise Unproved("two atoms have one name in claims")
            self._known[name] = self.named[short(name)] = len(self.atoms)
            self.atoms.append(make(name))
        return self._known[name]

    def name(self, p: Poly) -> str:
        """The digest of a primitive polynomial's content, which stands for it: two that share it are not to be found.
        Claims say its first characters (`short`)."""
        self._spend_terms(len(p.terms))
        factors = lambda m: "·".join(f"{self.atoms[a].name}@{lag}" for a, lag in m)
        parts = sorted(f"{c} {factors(m)}" for m, c in p.terms.items())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _table(self, values: np.ndarray) -> int:
        seen = values[self.language.used]
        bounds = (int(seen.min()), int(seen.max()))
        return self._new(
            f"table {values.astype('<i8').tobytes().hex()}", lambda name: Atom("table", name, bounds, values)
        )

    def of_letter(self, numbers: np.ndarray | Sequence[Fraction]) -> Poly:
        """A function of the present letter: its floats, fractions or whole numbers."""
        self._spend_terms(7)
        self.spend(_OF_A_LETTER * self.language.tokens)
        values, below = whole(np.where(self.language.used, np.asarray(numbers), 0))
        return Poly(self._function(values, Fraction(1, below), 0, ()))

    def _function(self, values: np.ndarray, unit: Fraction, lag: int, rest: Mono) -> dict[Mono, Fraction]:
        """unit · values(letter `lag` back) · rest, as a number and a table that is 0 at the first letter, in lowest
        terms. The values are whole."""
        base = int(values[self._first])
        left = np.where(self.language.used, add(values, integers([-base])), 0)
        found = {self._mono(((_ONE, lag), *rest)): unit * base}
        above = int(np.gcd.reduce(np.abs(left)))
        if above:
            above *= 1 if left[np.flatnonzero(left)[0]] > 0 else -1
            table = left // above
            if size(table) >= 1 << 53:
                raise Unproved("a function of the letter has numbers of more than 53 bits")
            mono = self._mono(((self._table(table.astype(np.int64)), lag), *rest))
            found[mono] = found.get(mono, Fraction(0)) + unit * above
        return found

    def relu(self, p: Poly) -> Poly:
        """max(p, 0); p itself or 0 where its range says so."""
        self._spend_terms(len(p.terms))
        lo, hi = self.range(p)
        if lo >= 0 or hi <= 0:
            return p if lo >= 0 else ZERO
        back = self.common_lag([p])
        seen = self.earlier(p, -back)
        if all(map(self.by_letter_alone, seen.terms)):
            return self.earlier(self.of_letter(np.maximum(self.by_letter(seen), 0)), back)
        c, cells = self.cells(p)
        values = sorted({c * end for cell in cells for end in (cell.lo, cell.hi)})
        if len(values) == 2 and all(cell.lo == cell.hi for cell in cells):  # a line meets both
            low, high = values
            return self.add([(high / (high - low), p), (-low * high / (high - low), Poly({(): Fraction(1)}))])
        c, q = seen.primitive
        q = Poly({m: v * (1 if c > 0 else -1) for m, v in q.terms.items()})
        least, most = (max(int(end), 0) for end in self.range(q))
        atom = self._new(f"relu {self.name(q)}", lambda name: Atom("relu", name, (least, most), of=q))
        return Poly({((atom, back),): abs(c)})

    def by_letter_alone(self, m: Mono) -> bool:
        """Whether a monomial is a number or a table of the present letter."""
        return not m or len(m) == 1 and m[0][1] == 0 and self.atoms[m[0][0]].kind == "table"

    def by_letter(self, p: Poly) -> np.ndarray:
        """A polynomial of tables of the present letter, letter by letter."""
        self.spend(_OF_A_FRACTION * self.language.tokens * (1 + len(p.terms)))
        found = np.full(self.language.tokens, p.const, object)
        for m, c in p.terms.items():
            if m:
                found = found + c * self.atoms[m[0][0]].table.astype(object)
        return found

    def sum(self, p: Poly) -> Poly:
        """Σ_(s<=t) p(s): the sum of what is seen k back is the sum, seen k back."""
        return self._state("sum", p, ZERO)

    def count(self, p: Poly, flag: Poly) -> Poly:
        """Σ p over the positions after the last one where flag, of which 0 or 1 is known, was 1: no p is read there."""
        if not flag.terms:
            return self.sum(p)
        return self._state("count", self.add([(Fraction(1), p), (Fraction(-1), self.product(p, flag))]), flag)

    def latch(self, p: Poly, flag: Poly) -> Poly:
        """p at the last position where flag, of which 0 or 1 is known, was 1; 0 before."""
        self._spend_terms(0)
        if flag.constant:
            return p if flag.const else ZERO
        return self._state("latch", p, flag)

    def _state(self, kind: str, p: Poly, flag: Poly) -> Poly:
        """c · the state of a primitive polynomial, for states are linear in what they store."""
        self._spend_terms(len(p.terms))
        if not p.terms:
            return p
        back = self.common_lag([flag, p])
        c, q = self.earlier(p, -back).primitive
        flag = self.earlier(flag, -back)
        lo, hi = map(int, self.range(q))
        length = 1 if kind == "latch" else self.language.length
        once = 1 if kind == "sum" else 0
        most = min(lo * once, lo * length), max(hi * once, hi * length)
        name = f"{kind} {self.name(q)} {self.name(flag)}"
        atom = self._new(name, lambda name: Atom(kind, name, most, of=q, flag=flag))
        return Poly({((atom, back),): c})

    # polynomials ------------------------------------------------------------------------------------

    def add(self, parts: Iterable[tuple[Fraction, Poly]]) -> Poly:
        """Σ weight · polynomial."""
        total: dict[Mono, Fraction] = defaultdict(Fraction)
        self._spend_terms(0)
        for w, p in parts:
            self._spend_terms(len(p.terms))
            for m, c in p.terms.items():
                total[m] += w * c
        return self._merged(total)

    def product(self, a: Poly, b: Poly) -> Poly:
        if len(a.terms) * len(b.terms) > _MOST_TERMS:
            raise Unproved(f"a product of {len(a.terms)} by {len(b.terms)} terms")
        self._spend_terms(len(a.terms) * len(b.terms))
        total: dict[Mono, Fraction] = defaultdict(Fraction)
        for m, c in a.terms.items():
            for n, d in b.terms.items():
                for mono, e in self._monomials(m, n).items():
                    total[mono] += c * d * e
        return self._merged(total)

    def earlier(self, p: Poly, k: int) -> Poly:
        """p seen k positions back, 0 at the first k positions. k < 0 undoes that, where everything is seen -k back."""
        if not k:
            return p
        self._spend_terms(len(p.terms))
        return Poly({self._mono([(a, lag + k) for a, lag in m] or [(_ONE, k)]): c for m, c in p.terms.items()})

    def replaced(self, p: Poly) -> Poly:
        """p, with what is known to be equal in place of its atoms (`rules.same`)."""
        if not any(a in self.equal for m in p.terms for a, _ in m):
            return p
        parts = []
        for m, c in p.terms.items():
            found = constant(1)
            for a, lag in m:
                other, sign = (self.equal[a].read().other, self.equal[a].sign) if a in self.equal else (a, 1)
                factor = ZERO if other is None else Poly({((other, lag),): Fraction(sign)})
                found = self.product(found, factor)
            parts.append((c, found))
        return self.add(parts)

    def common_lag(self, polys: Iterable[Poly]) -> int:
        return min((min((lag for _, lag in m), default=0) for p in polys for m in p.terms), default=0)

    def _mono(self, factors: Iterable[tuple[int, int]]) -> Mono:
        """Sorted; ONE seen k back is left out where k is 0, or another factor is seen as far back and so 0 as long."""
        real = [f for f in factors if f[0] != _ONE]
        ones = max((lag for a, lag in factors if a == _ONE), default=0)
        if ones > max((lag for _, lag in real), default=0):
            real.append((_ONE, ones))
        return tuple(sorted(real))

    def _monomials(self, m: Mono, n: Mono) -> dict[Mono, Fraction]:
        """Tables at one lag are one table; a number that is 0 or 1 is its own square.

        f(letter)·g(letter) is a function of the letter, and both are 0 before the start, as it is. x·x = x for an atom
        whose proved range is 0 to 1, as atoms are whole; before the start it is 0.
        """
        tables: dict[int, list[int]] = defaultdict(list)
        rest: list[tuple[int, int]] = []
        for a, lag in (*m, *n):
            if self.atoms[a].kind == "table" and a != _ONE:
                tables[lag].append(a)
            elif (a, lag) not in rest or self.atom_range(a) != (0, 1):
                rest.append((a, lag))
        found = {self._mono(rest): Fraction(1)}
        for lag, (a, *others) in tables.items():
            if len(others) > 1:
                raise Unproved("three tables of one letter in a product")  # each monomial has one, as they are merged
            if not others:
                found = {self._mono((*mono, (a, lag))): c for mono, c in found.items()}
                continue
            values = multiply(self.atoms[a].table, self.atoms[others[0]].table)
            grown: dict[Mono, Fraction] = defaultdict(Fraction)
            for mono, c in found.items():
                for new, d in self._function(values, Fraction(1), lag, mono).items():
                    grown[new] += c * d
            found = grown
        return found

    def _merged(self, total: Mapping[Mono, Fraction]) -> Poly:
        """Monomials that differ in one table only, the one seen least far back, are one."""
        groups: dict[tuple[int, Mono], list[tuple[int, Fraction]]] = defaultdict(list)
        found: dict[Mono, Fraction] = defaultdict(Fraction)
        for m, c in total.items():
            table = min(
                (f for f in m if f[0] != _ONE and self.atoms[f[0]].kind == "table"), key=lambda f: f[1], default=None
            )
            if table is None:
                found[m] += c
            elif c:
                groups[table[1], tuple(f for f in m if f != table)].append((table[0], c))
        for (lag, rest), parts in groups.items():
            if len(parts) == 1:
                ((atom, c),) = parts
                found[self._mono(((atom, lag), *rest))] += c
                continue
            below = lcm(*(c.denominator for _, c in parts))
            values = np.zeros(self.language.tokens, np.int64)
            for atom, c in parts:
                values = add(values, multiply(integers([int(c * below)]), self.atoms[atom].table))
            for m, c in self._function(values, Fraction(1, below), lag, rest).items():
                found[m] += c
        return self._since(found)

    def _since(self, terms: dict[Mono, Fraction]) -> Poly:
        """A running sum less its latch under a flag is the count since the flag (States.counts_since).

        S = Σ p up to here, L = S at the last position where the flag was 1 (0 where there is none): S − L is Σ p behind
        it, the flag's position left out, as `count` does. Premises: L stores S itself, both are seen here, and their
        weights are c and −c; the flag is 0 or 1 here, as `count` takes p · (1 − flag).
        """
        for m, c in list(terms.items()):
            atom = self.atoms[m[0][0]] if len(m) == 1 and not m[0][1] else None
            if atom is not None and atom.kind == "latch" and len(atom.of.terms) == 1:
                (held,) = atom.of.terms
                stored = self.atoms[held[0][0]] if len(held) == 1 and not held[0][1] else atom
                if terms.get(held) == -c and stored.kind == "sum" and self.is_flag(atom.flag):
                    left = {n: d for n, d in terms.items() if n not in (m, held)}
                    counted = self.count(stored.of, atom.flag)
                    return self.add([(Fraction(1), Poly(left)), (-c, counted)])
        return Poly(terms)

    # ranges -----------------------------------------------------------------------------------------

    def atom_range(self, atom: int, lag: int = 0) -> tuple[int, int]:
        lo, hi = self.atoms[atom].range
        for fact in (self.totals.get(atom), self.ranged.get(((((atom, 0),), Fraction(1)),))):
            if fact is not None:
                least, most = ends(fact.read().cells)
                lo, hi = max(lo, least), min(hi, most)
        return (min(lo, 0), max(hi, 0)) if lag else (lo, hi)

    def total(self, atom: int) -> int:
        """A bound on |q(1)| + … + |q(t)| of a sum or count: a range of it would not do, as terms may cancel in it."""
        fact = self.totals.get(atom)
        return max(map(abs, self.atoms[atom].range if fact is None else ends(fact.read().cells)))

    def range(self, p: Poly) -> tuple[Fraction, Fraction]:
        """The least and the largest that p can be at any position: of a fact, else term by term."""
        c, cells = self.cells(p)
        lo, hi = ends(cells)
        return (c * lo, c * hi) if c > 0 else (c * hi, c * lo)

    def is_flag(self, p: Poly) -> bool:
        """Whether p is known to be 0 or 1 at every position."""
        c, cells = self.cells(p)
        known = {c * end for cell in cells for end in (cell.lo, cell.hi)}
        return known <= {0, 1} and (p.unit >= 0 or all(cell.lo == cell.hi for cell in cells))

    def _ends(self, q: Poly) -> tuple[int, int]:
        lo = hi = 0
        for m, c in q.terms.items():
            a = b = int(c)
            self.language.check_factor(a)
            for atom, lag in m:
                x, y = self.atom_range(atom, lag)
                products = (a * x, a * y, b * x, b * y)
                a, b = min(products), max(products)
                for end in (x, y, a, b):
                    self.language.check_end(end)
            lo, hi = lo + a, hi + b
        return lo, hi

    def cells(self, p: Poly) -> tuple[Fraction, tuple[Cell, ...]]:
        """(c, cells): every value of p is c times a number of one of the cells."""
        c, q = p.primitive
        fact = self.ranged.get(q.key)
        if fact is not None:
            return c, fact.read().cells
        lo, hi = self._ends(q)
        step = gcd(*(int(v) for m, v in q.terms.items() if m))
        return c, (Cell(lo, hi, int(q.const), step),)
