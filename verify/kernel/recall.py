"""Recall: at a key, the value that stood right after it scores highest (lemma of recall, lemma of readout).

A *pair* is a value letter right after a key letter. The circuit's lanes must be Σ_g Q_g · Σ_pairs a_g(key) ·
code(value): each Q_g, a *query*, is a function of the present letter and the one before; each a_g is a number of the
key, and code(value) a number for each lane. So a pair is read with the weight Σ_g Q_g · a_g(key).
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import lcm

import numpy as np

from verify.kernel import exact
from verify.kernel.cases import Grid, alike_in
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, potential_of
from verify.kernel.floats import Unproved
from verify.kernel.letters import kinds_before, on_letters, one_of
from verify.kernel.readout import check_leads, numbered, state_scores
from verify.kernel.rules import occurrences
from verify.kernel.terms import ZERO, Mono, Poly, Terms, constant

_MOST = 1 << 26  # numbers at once
Array = np.ndarray
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
    most = ledger.single("the task", [one_of(terms, keys)], "occurrences", 1, make)
    low, others = _sizes(terms, weights, queries, keys, most)
    check_leads(exact.whole(head)[0], code.T, values, low, others)
    asked, of = (f"{name}0 … {name}{len(ids) - 1}" for name, ids in (("k", keys), ("v", values)))
    return f"at each of {asked}: the value of {of} that stood right after it before, where that was so exactly once"


def _stored(terms: Terms, lanes: list[Poly], keys: Array, values: Array) -> Stored:
    """What the lanes hold of pairs; Unproved where they hold anything else. keys, values: ids of letters."""
    found: dict[Mono, list[Poly]] = defaultdict(lambda: [ZERO] * len(lanes))
    before, now, known = terms.earlier(one_of(terms, keys), 1), one_of(terms, values), dict[tuple, bool]()
    minus = lambda x, y: terms.add([(Fraction(1), x), (Fraction(-1), y)])
    silences = minus(constant(1), now), minus(now, terms.product(before, now))  # no value stands; no key stood before
    below = lcm(*(c.denominator for p in lanes for c in p.terms.values()))
    for c, p in enumerate(lanes):
        for m, weight in p.terms.items():
            sums = [f for f in m if terms.atoms[f[0]].kind == "sum"]
            if len(sums) != 1 or sums[0][1]:
                raise Unproved("the scores are no queries times running sums")
            query, what = tuple(f for f in m if f != sums[0]), terms.atoms[sums[0][0]].of
            _check_silent(terms, what, silences, known)
            found[query][c] = terms.add([(Fraction(1), found[query][c]), (weight * below, what)])
    return _factored(terms, found, keys, values)


def _factored(terms: Terms, found: dict[Mono, list[Poly]], keys: Array, values: Array) -> Stored:
    """What each query's lanes store is a number of the key times one code of the value, over a common divisor."""
    queries, weights, known = list[Mono](), list[Array](), dict[int, Array]()
    for query, lanes in found.items():
        some, kind = kinds_before(terms, lanes, keys)
        if len(some) * len(values) * len(lanes) > _MOST:
            raise Unproved("more keys and values than the kernel goes through")
        numbers = exact.alike(*(on_letters(terms, p, values[None, :], some[:, None], known) for p in lanes))
        table = [np.broadcast_to(x, (len(some), len(values))) for x in numbers]
        if not any(x.any() for x in numbers):
            continue
        if not queries:
            c = next(c for c, x in enumerate(numbers) if x.any())
            k, v = np.argwhere(table[c])[0]
            code, divisor = np.stack([x[k] for x in table], axis=1), table[c][k, v : v + 1]
        row = table[c][:, v]
        for x, of_value in zip(numbers, code.T, strict=True):
            if (exact.multiply(x, divisor) != exact.multiply(row[:, None], of_value[None])).any():
                raise Unproved("what a pair stores is not a function of its key times one of its value")
        queries.append(query)
        weights.append(row[kind] * (1 if divisor[0] > 0 else -1))
    if not queries:
        raise Unproved("nothing is stored")
    read = np.stack(exact.alike(*weights))
    return read // int(np.gcd.reduce(read, axis=None)), code, queries


def _check_silent(terms: Terms, stored: Poly, silences: tuple[Poly, Poly], known: dict[tuple, bool]) -> None:
    """Where one of the flags `silences` is 1, 0 is added: there a factor of each product is 0, or the whole is. known:
    the same factors stand in many products.
    """

    def is_silent(p: Poly, flag: Poly) -> bool:
        grid = Grid(terms, [p, flag])
        there, added = grid.spread(flag), grid.spread(p)
        here, more = alike_in(there, added, ())
        return not {*there, *added} - {()} and not more[here != 0].any()

    for i, flag in enumerate(silences):
        for f in {f for m in stored.terms for f in m if (f, i) not in known}:
            known[f, i] = is_silent(Poly({(f,): Fraction(1)}), flag)
        if not all(any(known[f, i] for f in m) for m in stored.terms) and not is_silent(stored, flag):
            raise Unproved("something is stored where no value follows a key")


def _sizes(terms: Terms, weights: Array, queries: list[Mono], keys: Array, most: list[int]) -> tuple[int, int]:
    """The least weight of a query's own pair, and the most that the weights of others are in sum."""
    read = [Poly({m: Fraction(1)}) for m in queries]
    before, _ = kinds_before(terms, read, np.flatnonzero(terms.language.used))
    step = _MOST // (4 * len(before) * max(len(keys), len(read)))
    terms.spend(len(keys) * len(before) * max(len(keys), len(read)))
    if not step:
        raise Unproved("more queries and keys than the kernel goes through")
    own, others = [], []
    for first in range(0, len(keys), step):
        asked = exact.alike(*(on_letters(terms, q, keys[first : first + step, None], before[None, :]) for q in read))
        shape = min(step, len(keys) - first), len(before)
        rows = np.stack([np.broadcast_to(x, shape) for x in asked])  # queries, keys, letters before
        for start in range(0, len(before), step):
            tile = rows[:, :, start : start + step]
            live = tile.any(axis=(1, 2))  # most queries may be 0 at these few keys and letters
            found = exact.matmul(tile[live].reshape(live.sum(), tile[0].size).T, weights[live])
            at = np.arange(len(found)), first + np.arange(len(found)) // tile.shape[2]
            own.append(int(found[at].min()))
            found[at] = 0
            others.append(int(exact.matmul(np.abs(found), exact.integers(most)[:, None]).max()))
    if min(own) <= 0:
        raise Unproved("a query does not read its own key")
    return min(own), max(others)
