"""Functions of letters, for all letters at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from verify.kernel.exact import add, integers, kinds, multiply
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.terms import Poly, Terms

Array = np.ndarray


def one_of(terms: Terms, ids: Array) -> Poly:
    """1 at each of these letters, else 0."""
    return terms.of_letter(np.isin(np.arange(terms.language.tokens), ids).astype(np.int64))


def letter_classes(terms: Terms, atoms: Sequence[int], letters: Array) -> Array:
    """(tables, classes): the columns of numbers that these letters (mask) have in the tables, each once."""
    asked = (*atoms, letters.tobytes())
    if asked not in terms.classes:
        first = np.flatnonzero(letters)[kinds([terms.atoms[a].table[letters] for a in atoms])[0]]
        terms.classes[asked] = np.stack([terms.atoms[a].table[first] for a in atoms])
    return terms.classes[asked]


def on_letters(terms: Terms, p: Poly, now: Array, before: Array) -> Array:
    """A function with whole coefficients of the present letter and the one before, at these letters, as an array that
    broadcasts: along an axis that tells nothing apart it may have one number. Unproved for other polynomials.
    """
    total = np.zeros([1] * now.ndim, np.int64)
    for m, c in p.terms.items():
        part = integers([whole_number(c)])
        for a, lag in m:
            atom = terms.atoms[a]
            if atom.kind == "table" and lag <= 1:
                numbers = atom.table[before if lag else now]
                if numbers.min() == numbers.max():
                    numbers = numbers.reshape(-1)[:1].reshape([1] * now.ndim)
            elif atom.kind == "relu" and not lag:
                numbers = np.maximum(on_letters(terms, atom.of, now, before), 0)
            else:
                raise Unproved("a query or a key reads more than the present letter and the one before")
            part = multiply(part, numbers)
        total = add(total, part)
    return total


def kinds_before(terms: Terms, polys: Iterable[Poly], letters: Array) -> tuple[Array, Array]:
    """(one letter of each kind, the kind of each letter): as the letter before, those of a kind are not told apart by
    these functions."""
    first, kind = kinds([terms.atoms[a].table[letters] for a in set().union({0}, *(_before(terms, p) for p in polys))])
    return letters[first], kind


def _before(terms: Terms, p: Poly) -> set[int]:
    """The tables that `on_letters` reads at the letter before."""
    factors = {f for m in p.terms for f in m}
    bent = (terms.atoms[a].of for a, lag in factors if not lag and terms.atoms[a].kind == "relu")
    return {a for a, lag in factors if lag and terms.atoms[a].kind == "table"}.union(*(_before(terms, q) for q in bent))
