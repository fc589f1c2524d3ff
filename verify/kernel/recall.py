"""Recall: at a key, the value that stood right after it scores highest (lemma of recall, lemma of readout).

A *pair* is a value letter right after a key letter. The circuit's lanes must be Σ_g Q_g · Σ_pairs a_g(key) ·
code(value): each Q_g, a *query*, is a function of the present letter and the one before; each a_g is a number of the
key, and code(value) a number for each lane. So a pair is read with the weight Σ_g Q_g · a_g(key).
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from verify.kernel import exact
from verify.kernel.cases import Grid
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, potential_of
from verify.kernel.floats import Unproved, whole_number
from verify.kernel.readout import numbered, state_scores
from verify.kernel.rules import occurrences
from verify.kernel.terms import Mono, Poly, Terms

_MOST = 1 << 24
Array = np.ndarray
Letters = np.ndarray


class Stored(NamedTuple):
    """weights: (queries, keys) of whole numbers, a_g times one number > 0; code: (values, lanes) of whole numbers;
    queries: each Q_g as a monomial.
    """

    weights: np.ndarray
    code: np.ndarray
    queries: list[Mono]


def mqar(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """At each of the keys k0, k1, …: the value of v0, v1, … that stood right after it before, where there is exactly
    one.

    Let q be the present key, α(k) = Σ_g Q_g · a_g(k) as the letter before it may be, and v the value of the only pair
    of q. Of other keys a sequence holds at most N(k) pairs (`rules.occurrences`). So score(v) − score(u) is at least
    α(q)·(G_vv − G_uv) − ω·max_w |G_vw − G_uw| for G = head · code and ω = Σ_(k≠q) N(k)·|α(k)|. Check: this is
    positive for every q, letter before, v and u.
    """
    if set(claim) != {"name", "write"} or claim["write"] != "sum":
        raise Unproved("the kernel has a rule for recall of sums only")
    terms, keys, values = ledger.terms, *(np.array(numbered(names, x)) for x in "kv")
    language = terms.language
    if not language.used[keys].all() or not any(
        e.letters[keys].any() and any(o.letters[values].any() for o in language.leaving.get(e.target, ()))
        for e in language.edges
    ):
        raise Unproved("no sequence of the language asks for what stands after each key")
    head, lanes = state_scores(terms, circuit)
    stored = _stored(terms, lanes, keys, values)
    low, others = _weights(terms, stored, keys, _most_pairs(ledger, keys))
    read = exact.matmul(exact.exact_array(head), stored.code.T)  # G: (letters, values)
    _check_leads(read, values, low, others)
    asked, of = (f"{name}0 … {name}{len(ids) - 1}" for name, ids in (("k", keys), ("v", values)))
    return f"at each of {asked}: the value of {of} that stood right after it before, where that was so exactly once"


def _stored(terms: Terms, lanes: list[Poly], keys: Letters, values: Letters) -> Stored:
    """What the lanes hold of pairs; Unproved where they hold anything else. keys, values: ids of letters."""
    found: dict[Mono, dict[int, Array]] = defaultdict(dict)
    pair = terms.product(terms.earlier(_one_of(terms, keys), 1), _one_of(terms, values))
    below = lcm(*(c.denominator for p in lanes for c in p.terms.values()))
    for c, p in enumerate(lanes):
        for m, weight in p.terms.items():
            sums = [f for f in m if terms.atoms[f[0]].kind == "sum"]
            if len(sums) != 1 or sums[0][1]:
                raise Unproved("the scores are no queries times running sums")
            query, what = tuple(f for f in m if f != sums[0]), terms.atoms[sums[0][0]].of
            _check_silent(terms, what, pair)
            table = on_letters(terms, what, values[None, :], keys[:, None])
            part = exact.multiply(exact.integers([int(weight * below)]), table)
            found[query][c] = exact.add(found[query][c], part) if c in found[query] else part
    if not found or len(found) * len(lanes) * len(keys) * len(values) > _MOST:
        raise Unproved("what is stored of keys and values is nothing, or too much to go through")
    zero = np.zeros((len(keys), len(values)), np.int64)
    alike = [exact.alike(*(rows.get(c, zero) for c in range(len(lanes)))) for rows in found.values()]
    return _factored([np.stack(rows, axis=2) for rows in alike], list(found))


def _factored(stacks: list[Array], queries: list[Mono]) -> Stored:
    """Each of these (keys, values, lanes) is a number of the key times one code of the value, over a common divisor."""
    first = next((s for s in stacks if s.any()), None)
    if first is None:
        raise Unproved("nothing is stored")
    k, v, c = next(zip(*np.nonzero(first), strict=True))
    code = first[k]
    divisor = code[v : v + 1, c]
    weights = [stack[:, v, c] for stack in stacks]
    for stack, row in zip(stacks, weights, strict=True):
        if (exact.multiply(stack, divisor) != exact.multiply(row[:, None, None], code[None])).any():
            raise Unproved("what a pair stores is not a function of its key times one of its value")
    sign = exact.integers([1 if divisor[0] > 0 else -1])
    return Stored(np.stack(exact.alike(*(exact.multiply(row, sign) for row in weights))), code, queries)


def _check_silent(terms: Terms, stored: Poly, pair: Poly) -> None:
    """Where no value follows a key, 0 is added."""
    grid = Grid(terms, [stored, pair])
    is_pair, added = grid.spread(pair), grid.spread(stored)
    if set(added) - {()} or set(is_pair) - {()}:
        raise Unproved("what is stored is no function of the present letter and the one before")
    here, more = np.broadcast_arrays(is_pair.get((), np.zeros(1, np.int64)), added.get((), np.zeros(1, np.int64)))
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
            part = exact.multiply(part, _at(terms, a, lag, now, before))
        total = exact.add(total, part)
    return total


def _at(terms: Terms, a: int, lag: int, now: Letters, before: Letters) -> Array:
    atom = terms.atoms[a]
    if atom.kind == "table" and lag <= 1:
        return atom.table[before if lag else now]
    if atom.kind != "relu" or lag:
        raise Unproved("a query or a key reads more than the present letter and the one before")
    return np.maximum(on_letters(terms, atom.of, now, before), 0)


def _most_pairs(ledger: Ledger, keys: Letters) -> list[Fraction]:
    """How often each key can stand in a sequence, by the potential that a claim names."""

    make = lambda number, potential: occurrences(ledger.terms, number, keys.tolist(), potential_of(potential))
    return ledger.single("the task", [_one_of(ledger.terms, keys)], "occurrences", 1, make)


def _weights(terms: Terms, stored: Stored, keys: Letters, most: list[Fraction]) -> tuple[int, Fraction]:
    """The least weight of a query's own pair, and the most that the weights of others are in sum."""
    before = np.flatnonzero(terms.language.used)
    if len(keys) ** 2 * len(before) > _MOST:
        raise Unproved("more queries and keys than the kernel goes through")
    one = lambda m: on_letters(terms, Poly({m: Fraction(1)}), keys[:, None], before[None, :])
    asked = np.stack(exact.alike(*map(one, stored.queries)))  # (groups, queries, letters before)
    low, others = None, Fraction(0)
    for i in range(len(keys)):
        weights = exact.matmul(asked[:, i].T, stored.weights)  # (letters before, keys)
        own = int(weights[:, i].min())
        low = own if low is None else min(low, own)
        sizes = np.abs(weights).astype(object) * np.array(most, object)
        others = max(others, max(sizes.sum(axis=1) - sizes[:, i]))
    if low is None or low <= 0:
        raise Unproved("a query does not read its own key")
    return low, others


def _check_leads(read: Array, values: Letters, low: int, others: Fraction) -> None:
    """low · (G_vv − G_uv) > others · max_w |G_vw − G_uw| for every value v and every other letter u."""
    top, bottom = read.max(axis=1), read.min(axis=1)
    near, far = exact.integers([low * others.denominator]), exact.integers([others.numerator])
    for i, v in enumerate(values.tolist()):
        noise = np.maximum(top[v] - bottom, top - bottom[v])
        lead = exact.add(exact.multiply(near, read[v, i] - read[:, i]), -exact.multiply(far, noise))
        lead[v] = 1
        if (lead <= 0).any():
            raise Unproved(f"letter {int(np.argmin(lead))} may score as high as the value {i}")
