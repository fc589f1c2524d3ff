"""Normal forms: identities of whole numbers that bring equal values to equal polynomials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

from verify.kernel.terms import Mono, Poly, Terms, constant

_ONE = Fraction(1)
_MOST_FLAGS = 6


class Normal:
    """relu(−q) = relu(q) − q, so the first coefficient of what is bent is positive; sums and latches are linear in what
    they store (States.states_are_linear), and what is in a normal form stands within them.
    """

    def __init__(self, terms: Terms):
        self.terms = terms
        self._known: dict[int, Poly] = {}
        self._flags: dict[Mono, bool] = {}

    def of(self, p: Poly) -> Poly:
        """An equal polynomial."""
        terms, parts = self.terms, []
        for m, c in p.terms.items():
            found = constant(1)
            for a, lag in m:
                found = terms.product(found, terms.earlier(self._atom(a), lag))
            parts.append((c, found))
        return self.gathered(terms.add(parts))

    def gathered(self, p: Poly, joined: bool = False) -> Poly:
        """What is summed, or stored under one flag, and multiplied by the same, is added up first; joined: to one state
        of a polynomial, elsewhere to one of each monomial.
        """
        terms, groups, rest = self.terms, defaultdict(list), {}
        for m, c in p.terms.items():
            states = [f for f in m if terms.atoms[f[0]].kind in ("sum", "count", "latch")]
            if len(states) == 1:
                (held,), others = states, tuple(f for f in m if f != states[0])
                atom = terms.atoms[held[0]]
                groups[others, held[1], atom.kind, atom.flag.key].append((c, atom))
            else:
                rest[m] = c
        parts = [(_ONE, Poly(rest))]
        for (others, lag, kind, _), found in groups.items():
            of, flag = terms.add([(c, atom.of) for c, atom in found]), found[0][1].flag
            stored = self._make(kind)(of, flag) if joined else self._state(kind, of, flag)
            parts.append((_ONE, terms.product(terms.earlier(stored, lag), Poly({others: _ONE}))))
        return terms.add(parts)

    def _atom(self, a: int) -> Poly:
        if a not in self._known:
            self._known[a] = self._made(a)
        return self._known[a]

    def _made(self, a: int) -> Poly:
        atom = self.terms.atoms[a]
        if atom.kind == "table":
            return Poly({((a, 0),): Fraction(1)} if a else {(): Fraction(1)})
        of = self.of(atom.of)
        if atom.kind != "relu":
            return self._state(atom.kind, of, self.of(atom.flag))
        return self._relu(of, _MOST_FLAGS)

    def _state(self, kind: str, of: Poly, flag: Poly) -> Poly:
        """States are linear in what they store: one of each monomial."""
        return self.terms.add([(c, self._make(kind)(Poly({m: _ONE}), flag)) for m, c in of.terms.items()])

    def _make(self, kind: str) -> Callable[[Poly, Poly], Poly]:
        return {"sum": lambda p, _: self.terms.sum(p), "latch": self.terms.latch, "count": self.terms.count}[kind]

    def _relu(self, q: Poly, flags: int) -> Poly:
        """relu(u + c·v) = relu(u) + v·(relu(u + c) − relu(u)) for a flag v (Identities.few_values)."""
        terms = self.terms
        flag = next((m for m in sorted(q.terms) if m and self._is_flag(m)), None)
        if flag is not None and flags:
            v, c = Poly({flag: _ONE}), q.terms[flag]
            u = terms.add([(_ONE, q), (-c, v)])
            off, on = self._relu(u, flags - 1), self._relu(terms.add([(_ONE, u), (c, constant(1))]), flags - 1)
            return terms.add([(_ONE, off), (_ONE, terms.product(v, terms.add([(_ONE, on), (-_ONE, off)])))])
        if q.primitive[0] > 0:
            return terms.relu(q)
        return terms.add([(_ONE, terms.relu(terms.add([(-_ONE, q)]))), (_ONE, q)])

    def _is_flag(self, m: Mono) -> bool:
        if m not in self._flags:
            self._flags[m] = list(map(int, self.terms.range(Poly({m: _ONE})))) == [0, 1]
        return self._flags[m]
