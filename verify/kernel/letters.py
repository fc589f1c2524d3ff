"""Functions of letters, for all letters at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from verify.kernel.exact import add, integers, kinds, multiply
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.terms import Poly, Terms

Array = np.ndarray
_FEW = 1 << 6  # letters at which a table is not 0


def one_of(terms: Terms, ids: Array) -> Poly:
    """1 at each of these letters, else 0."""
    return terms.of_letter(np.isin(np.arange(terms.language.tokens), ids).astype(np.int64))


def _asked(terms: Terms, atoms: Sequence[int], letters: Array | None) -> tuple[tuple, Array]:
    """(under what it is kept, the mask): that of all letters, which is asked for very often, is not gone over."""
    return ((*atoms, b""), terms.language.used) if letters is None else ((*atoms, letters.tobytes()), letters)


def letter_kinds(terms: Terms, atoms: Sequence[int], letters: Array | None = None) -> tuple[Array, Array, Array]:
    """(a letter of each kind, how many there are of it, the kind of each letter) of these letters (mask; None: all that
    sequences hold): those of one kind have equal numbers in the tables. For other letters stands 0."""
    asked, mask = _asked(terms, atoms, letters)
    if asked not in terms.kinds:
        ids = np.flatnonzero(mask)
        first, kind = kinds([terms.atoms[a].table[ids] for a in atoms])
        of_each = np.zeros(terms.language.tokens, np.min_scalar_type(len(first)))  # short, as many are kept
        of_each[ids] = kind
        terms.kinds[asked] = ids[first], np.bincount(kind), of_each
    return terms.kinds[asked]


def letter_classes(terms: Terms, atoms: Sequence[int], letters: Array | None = None) -> Array:
    """(tables, classes): the columns of numbers that these letters have in the tables, each once, in lexical order.

    Tables that are 0 but at a few letters tell no other letters apart. So a column is that of one of the few, or 0 in
    these tables and in the rest of them what more letters have than the few.
    """
    asked, mask = _asked(terms, atoms, letters)
    if asked not in terms.classes:
        held = {a: terms.atoms[a].held for a in atoms if terms.atoms[a].held.size <= _FEW}
        first, count, kind = letter_kinds(terms, [a for a in atoms if a not in held] or [0], letters)
        few = np.unique(np.concatenate([first[:0], *held.values()]))
        few = few[mask[few]]
        others = first[np.bincount(kind[few], minlength=len(first)) < count]
        found = np.stack([terms.atoms[a].table[np.concatenate([others, few])] for a in atoms])
        found[[a in held for a in atoms], : len(others)] = 0
        terms.classes[asked] = found.take(kinds(list(found))[0], axis=1)
    return terms.classes[asked]


def on_letters(terms: Terms, p: Poly, now: Array, before: Array, known: dict[int, Array] | None = None) -> Array:
    """A function with whole coefficients of the present letter and the one before, at these letters, as an array that
    broadcasts: along an axis that tells nothing apart it may have one number. Unproved for other polynomials.

    known: of relus of the present letter alone, what they are at `now`: for several calls with the same `now`.
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
                if known is None or a not in known:
                    numbers = np.maximum(on_letters(terms, atom.of, now, before), 0)
                    if known is not None and not _before(terms, atom.of):
                        known[a] = numbers
                else:
                    numbers = known[a]
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
