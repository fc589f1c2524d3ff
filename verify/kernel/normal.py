"""Normal forms: identities of whole numbers that bring equal values to equal polynomials."""

from __future__ import annotations

from fractions import Fraction

from verify.kernel.terms import Poly, Terms, constant


class Normal:
    """relu(−q) = relu(q) − q, so the first coefficient of what is bent is positive; sums and latches are linear in what
    they store (States.states_are_linear), and what is in a normal form stands within them.
    """

    def __init__(self, terms: Terms):
        self.terms = terms
        self._known: dict[int, Poly] = {}

    def of(self, p: Poly) -> Poly:
        """An equal polynomial."""
        terms, parts = self.terms, []
        for m, c in p.terms.items():
            found = constant(1)
            for a, lag in m:
                found = terms.times(found, terms.earlier(self._atom(a), lag))
            parts.append((c, found))
        return terms.add(parts)

    def _atom(self, a: int) -> Poly:
        if a not in self._known:
            self._known[a] = self._made(a)
        return self._known[a]

    def _made(self, a: int) -> Poly:
        atom, terms = self.terms.atoms[a], self.terms
        if atom.kind == "table":
            return Poly({((a, 0),): Fraction(1)} if a else {(): Fraction(1)})
        of = self.of(atom.of)
        if atom.kind == "sum":
            return terms.sum(of)
        if atom.kind == "latch":
            return terms.latch(of, self.of(atom.flag))
        if of.primitive[0] > 0:
            return terms.relu(of)
        up = terms.relu(terms.add([(Fraction(-1), of)]))
        return terms.add([(Fraction(1), up), (Fraction(1), of)])
