"""Functions of letters, for all letters at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from verify.kernel.exact import add, integers, kinds, multiply
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.terms import Poly, Terms

Array = np.ndarray


def letter_classes(terms: Terms, atoms: Sequence[int], letters: Array) -> Array:
    """(tables, classes): the columns of numbers that these letters (mask) have in the tables, each once."""
    asked = (*atoms, letters.tobytes())
    if asked not in terms.classes:
        tables = [terms.atoms[a].table[letters] for a in atoms]
        terms.classes[asked] = np.stack(tables)[:, kinds(tables)[0]]
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


def kinds_of(terms: Terms, polys: Iterable[Poly], letters: Array) -> tuple[Array, Array]:
    """(one letter of each kind, the kind of each letter): no table of these functions tells letters of a kind apart."""
    tables = [terms.atoms[a].table for a in set().union(*(_read(terms, p) for p in polys)) if terms.atoms[a].table.size]
    first, kind = kinds([t[letters] for t in tables])
    return letters[first], kind


def _read(terms: Terms, p: Poly) -> set[int]:
    """The atoms that `on_letters` looks at."""
    found = {0, *(a for m in p.terms for a, _ in m)}
    return found.union(*(_read(terms, terms.atoms[a].of) for a in found if terms.atoms[a].kind == "relu"))
