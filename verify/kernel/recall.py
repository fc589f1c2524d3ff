"""Recall: at a key, the value that stood right after it scores highest (lemma of recall, lemma of readout).

A *pair* is a value letter right after a key letter. The circuit's lanes must be Σ_g Q_g · Σ_pairs a_g(key) ·
code(value): each Q_g, a *query*, is a function of the present letter and the one before; each a_g is a number of the
key, and code(value) a number for each lane. So a pair is read with the weight Σ_g Q_g · a_g(key).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from math import lcm

import numpy as np

from verify.kernel import exact
from verify.kernel.cases import Grid, alike_in
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, potential_of
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.readout import check_leads, numbered, state_scores
from verify.kernel.rules import occurrences
from verify.kernel.terms import ZERO, Mono, Poly, Terms

_MOST = 1 << 26  # numbers at once
Array = np.ndarray
Letters = np.ndarray
Stored = tuple[Array, Array, list[Mono]]
"""weights: (queries, keys) of whole numbers, a_g times one number > 0; code: (values, lanes) of whole numbers; queries:
each Q_g as a monomial."""


def mqar(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """At each of the keys k0, k1, …: the value of v0, v1, … that stood right after it before, where there is exactly
    one.

    Let q be the present key, α(k) = Σ_g Q_g · a_g(k) as the letter before it may be, and v the value of the only pair
    of q. Of other keys a sequence holds at most N(k) pairs (`rules.occurrences`). So score(v) − score(u) is at least
    α(q)·(G_vv − G_uv) − ω·max_w |G_vw − G_uw| for G = head · code and ω = Σ_(k≠q) N(k)·|α(k)|. Check: this is
    positive for every q, letter before, v and u.
    """
    terms, keys, values = ledger.terms, *(np.array(numbered(names, x)) for x in "kv")
    head, lanes = state_scores(terms, circuit)
    weights, code, queries = _stored(terms, lanes, keys, values)
    make = lambda number, potential: occurrences(terms, number, keys.tolist(), potential_of(potential))
    most = ledger.single("the task", [_one_of(terms, keys)], "occurrences", 1, make)
    low, others = _sizes(terms, weights, queries, keys, most)
    read = exact.matmul(exact.exact_array(head), code.T)  # G: (letters, values)
    check_leads(read, values, low, others)
    asked, of = (f"{name}0 … {name}{len(ids) - 1}" for name, ids in (("k", keys), ("v", values)))
    return f"at each of {asked}: the value of {of} that stood right after it before, where that was so exactly once"


def _stored(terms: Terms, lanes: list[Poly], keys: Letters, values: Letters) -> Stored:
    """What the lanes hold of pairs; Unproved where they hold anything else. keys, values: ids of letters."""
    found: dict[Mono, list[Poly]] = defaultdict(lambda: [ZERO] * len(lanes))
    pair = terms.product(terms.earlier(_one_of(terms, keys), 1), _one_of(terms, values))
    below = lcm(*(c.denominator for p in lanes for c in p.terms.values()))
    for c, p in enumerate(lanes):
        for m, weight in p.terms.items():
            sums = [f for f in m if terms.atoms[f[0]].kind == "sum"]
            if len(sums) != 1 or sums[0][1]:
                raise Unproved("the scores are no queries times running sums")
            query, what = tuple(f for f in m if f != sums[0]), terms.atoms[sums[0][0]].of
            _check_silent(terms, what, pair)
            found[query][c] = terms.add([(Fraction(1), found[query][c]), (weight * below, what)])
    return _factored(terms, found, keys, values)


def _factored(terms: Terms, found: dict[Mono, list[Poly]], keys: Letters, values: Letters) -> Stored:
    """What each query's lanes store is a number of the key times one code of the value, over a common divisor."""
    queries, weights = list[Mono](), list[Array]()
    for query, lanes in found.items():
        some, kind = _kinds(terms, lanes, keys)
        if len(some) * len(values) * len(lanes) > _MOST:
            raise Unproved("more keys and values than the kernel goes through")
        numbers = [on_letters(terms, p, values[None, :], some[:, None]) for p in lanes]
        table = np.stack(exact.alike(*numbers), axis=2)  # (kinds of keys, values, lanes)
        if not table.any():
            continue
        if not queries:
            k, v, c = next(zip(*np.nonzero(table), strict=True))
            code, divisor = table[k], table[k, v : v + 1, c]
        row = table[:, v, c]
        if (exact.multiply(table, divisor) != exact.multiply(row[:, None, None], code[None])).any():
            raise Unproved("what a pair stores is not a function of its key times one of its value")
        queries.append(query)
        weights.append(row[kind] * (1 if divisor[0] > 0 else -1))
    if not queries:
        raise Unproved("nothing is stored")
    return np.stack(exact.alike(*weights)), code, queries


def _check_silent(terms: Terms, stored: Poly, pair: Poly) -> None:
    """Where no value follows a key, 0 is added."""
    grid = Grid(terms, [stored, pair])
    is_pair, added = grid.spread(pair), grid.spread(stored)
    if {*is_pair, *added} - {()}:
        raise Unproved("what is stored is no function of the present letter and the one before")
    here, more = alike_in(is_pair, added, ())
    if more[here == 0].any():
        raise Unproved("something is stored where no value follows a key")


def _one_of(terms: Terms, ids: Letters) -> Poly:
    held = set(ids.tolist())
    return terms.of_letter([Fraction(int(i in held)) for i in range(terms.language.tokens)])


def on_letters(terms: Terms, p: Poly, now: Letters, before: Letters) -> Array:
    """A function with whole coefficients of the present letter and the one before, at these letters; Unproved for
    other polynomials.
    """
    total = np.zeros(np.broadcast_shapes(now.shape, before.shape), np.int64)
    for m, c in p.terms.items():
        part = exact.integers([whole_number(c)])
        for a, lag in m:
            atom = terms.atoms[a]
            if atom.kind == "table" and lag <= 1:
                numbers = atom.table[before if lag else now]
            elif atom.kind == "relu" and not lag:
                numbers = np.maximum(on_letters(terms, atom.of, now, before), 0)
            else:
                raise Unproved("a query or a key reads more than the present letter and the one before")
            part = exact.multiply(part, numbers)
        total = exact.add(total, part)
    return total


def _kinds(terms: Terms, polys: Iterable[Poly], letters: Letters) -> tuple[Letters, Array]:
    """(one letter of each kind, the kind of each letter): no table of these functions tells letters of a kind apart."""
    tables = [terms.atoms[a].table for a in set().union(*(_read(terms, p) for p in polys)) if terms.atoms[a].table.size]
    _, first, kinds = np.unique([t[letters] for t in tables], axis=1, return_index=True, return_inverse=True)
    return letters[first], kinds.reshape(-1)


def _read(terms: Terms, p: Poly) -> set[int]:
    """The atoms that `on_letters` looks at."""
    found = {0, *(a for m in p.terms for a, _ in m)}
    return found.union(*(_read(terms, terms.atoms[a].of) for a in found if terms.atoms[a].kind == "relu"))


def _sizes(terms: Terms, weights: Array, queries: list[Mono], keys: Letters, most: list[int]) -> tuple[int, int]:
    """The least weight of a query's own pair, and the most that the weights of others are in sum."""
    read = [Poly({m: Fraction(1)}) for m in queries]
    before, _ = _kinds(terms, read, np.flatnonzero(terms.language.used))
    if len(keys) * len(before) * max(len(keys), len(read)) > _MOST:
        raise Unproved("more queries and keys than the kernel goes through")
    asked = np.stack(exact.alike(*(on_letters(terms, q, keys[:, None], before[None, :]) for q in read)))
    own, others = [], []
    for i in range(len(keys)):
        found = exact.matmul(asked[:, i].T, weights)  # (letters before, keys)
        own.append(int(found[:, i].min()))
        found[:, i] = 0
        others.append(int(exact.matmul(np.abs(found), exact.integers(most)[:, None]).max()))
    if min(own) <= 0:
        raise Unproved("a query does not read its own key")
    return min(own), max(others)
