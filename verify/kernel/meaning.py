"""The scores of the weights are those of the circuit, letter by letter, at every position of every sequence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import lcm
from typing import Any

import numpy as np

from verify.kernel.circuit import Circuit, Decided
from verify.kernel.claims import Ledger, entries, fraction
from verify.kernel.exact import integers, matmul
from verify.kernel.facts import Weighed
from verify.kernel.floats import Unproved, dyadic
from verify.kernel.mixers import Number
from verify.kernel.normal import Normal
from verify.kernel.rules import weighed
from verify.kernel.terms import Mono, Poly, Terms

_MOST_ROWS, _MOST_PRODUCTS = 1 << 10, 1 << 32
Column = np.ndarray  # one exact number for each letter


def check_meaning(ledger: Ledger, lanes: Sequence[Number], head: np.ndarray, circuit: Circuit) -> None:
    """Σ head · lane − Σ matrix · stream is 0 for each letter.

    Both are brought into normal form (`Normal`) and added up, monomial by monomial, as columns over the letters. What
    is left of a letter is a polynomial. A claim must show that it is 0 in every case, or the difference itself is.
    """
    letters, terms = ledger.terms.language.tokens, ledger.terms
    columns: dict[tuple, Column] = {}
    polys: dict[tuple, Poly] = {}
    parts = [(head[:letters, i], lane.poly) for i, lane in enumerate(lanes)]
    scored = circuit.scores()
    if len({matrix.shape[0] for matrix, _ in scored}) > 1:
        raise Unproved("the matrices of the output have different heights")
    for matrix, held in scored:
        if matrix.shape[0] > letters or matrix.shape[1] != len(held):
            raise Unproved(f"the output has {matrix.shape[0]} scores, and the language {letters} letters")
        padded = np.zeros((letters, matrix.shape[1]))
        padded[: len(matrix)] = -matrix
        parts += [(padded[:, j], p) for j, p in enumerate(held)]
    decided = _rules(ledger, circuit, lambda r: _score(ledger.terms, parts, r))
    parts += [(-np.eye(letters)[token] * added, flag) for token, added, flag in decided]
    for numbers, p in parts:
        if p.terms and numbers.any():
            c, q = p.primitive
            column = np.array([c * dyadic(x) if x else Fraction(0) for x in numbers], object)
            columns[q.key] = columns[q.key] + column if q.key in columns else column
            polys[q.key] = q
    normal, left = Normal(terms), defaultdict(list)
    for key, column in columns.items():
        if column.any():
            left[normal.of(polys[key])].append(column)
    for r, p in _rows(ledger, left, normal):
        ways = [_score(terms, parts, r), p]
        ledger.until(f"the score of letter {r}", ways, partial(_check_zero, ledger, ways, r))
    circuit.decided = decided


def _score(terms: Terms, parts: Sequence[tuple[Column, Poly]], r: int) -> Poly:
    return terms.add([(dyadic(numbers[r]), p) for numbers, p in parts if numbers[r]])


def _rules(ledger: Ledger, circuit: Circuit, missing: Callable[[int], Poly]) -> list[Decided]:
    """(token, what it adds, flag) of each rule: rule i of n adds 2^(n − 1 − i)·W, with one W that is larger than every
    lead of a score over that of a token with a rule. So the first rule whose flag is 1 decides, whatever W is.

    missing: what the weights score, less the scores that the rules decide over.
    """
    rules, terms = circuit.rules(), ledger.terms
    if not rules:
        return []
    known: list[Weighed] = []

    def make(number: int, claim: Any) -> Weighed:
        kind, weight = entries(claim, 2)
        if kind != "weight" or known:
            raise Unproved("the rules over scores need one weight")
        known.append(weighed(number, fraction(weight)))
        return known[0]

    lanes = [(m, p) for matrix, held in circuit.scores() for m, p in zip(matrix.T, held, strict=True)]
    if any(len(m) > terms.language.tokens for m, _ in lanes):
        raise Unproved("the rules decide over more scores than there are letters")
    padded = [(np.pad(m, (0, terms.language.tokens - len(m))), p) for m, p in lanes]
    scores = [_score(terms, padded, r) for r in range(terms.language.tokens)]
    if any(token >= len(scores) for token, _ in rules):
        raise Unproved("a rule names no letter of the language")
    leads = [terms.add([(Fraction(1), s), (Fraction(-1), scores[token])]) for token, _ in rules for s in scores]

    def check() -> Fraction:
        if not known or any(terms.range(lead)[1] >= known[0].weight for lead in leads):
            raise Unproved("the weight of the rules over scores is not shown to exceed every lead")
        known[0].used = True
        return known[0].weight

    token, flag = rules[-1]
    weight = ledger.until("the rules", [missing(token), flag, *leads], check, make)
    found = [(t, weight * 2 ** (len(rules) - 1 - i), f) for i, (t, f) in enumerate(rules)]
    for t, added, _ in found:
        if Fraction(float(added)) != added:
            raise Unproved(f"a rule adds {added} to the score of letter {t}")
    return [(t, float(added), f) for t, added, f in found]


def _rows(ledger: Ledger, left: dict[Poly, list[Column]], normal: Normal) -> list[tuple[int, Poly]]:
    """What is left of the scores, as different polynomials, each with the first letter that has it."""
    by_mono: dict[Mono, Column] = {}
    for p, columns in left.items():
        for m, c in p.terms.items():
            part = c * sum(columns[1:], columns[0])
            by_mono[m] = by_mono[m] + part if m in by_mono else part
    by_mono = _uncancelled(ledger.terms, {m: column for m, column in by_mono.items() if column.any()})
    if not by_mono:
        return []
    found: dict[tuple, tuple[int, Poly]] = {}
    for r in np.flatnonzero(np.any([column != 0 for column in by_mono.values()], axis=0)).tolist():
        p = normal.gathered(Poly({m: column[r] for m, column in by_mono.items()}), joined=True)
        if p.terms:
            found.setdefault(p.primitive[1].key, (r, p))
    if len(found) > _MOST_ROWS:
        raise Unproved(f"the scores of {len(found)} letters differ from the circuit's")
    return list(found.values())


def _uncancelled(terms: Terms, by_mono: dict[Mono, Column]) -> dict[Mono, Column]:
    """Without the groups of states that add up to 0 for all letters at once.

    States are linear (States.states_are_linear): of one kind and flag, at one lag, multiplied by the same, and storing
    table_k(present letter) · the same, they add up to 0 where Σ_k column_k · table_k is 0 for each letter that is
    scored and each that is stored.
    """
    groups: dict[tuple, list[tuple[Mono, Column]]] = defaultdict(list)
    for m in by_mono:
        states = [f for f in m if terms.atoms[f[0]].kind in ("sum", "count", "latch")]
        if len(states) == 1:
            ((a, lag),), atom = states, terms.atoms[states[0][0]]
            (of,) = atom.of.terms
            present = [f for f in of if f[1] == 0 and terms.atoms[f[0]].kind == "table"]
            rest = tuple(f for f in of if f not in present)
            stored = np.asarray(terms.atoms[present[0][0] if present else 0].table)
            groups[tuple(f for f in m if f != (a, lag)), lag, atom.kind, atom.flag.key, rest].append((m, stored))
    left = dict(by_mono)
    for found in groups.values():
        scored = np.stack([by_mono[m] for m, _ in found], axis=1)
        below = lcm(*(x.denominator for x in scored.reshape(-1)))
        numbers = integers([int(x * below) for x in scored.reshape(-1)]).reshape(scored.shape)
        tables = np.stack([stored[terms.language.used] for _, stored in found])
        if numbers.size * tables.shape[1] <= _MOST_PRODUCTS and not matmul(numbers, tables).any():
            for m, _ in found:
                del left[m]
    return left


def _check_zero(ledger: Ledger, ways: Sequence[Poly], r: int) -> None:
    if all(any(ledger.terms.range(p)) for p in ways):
        raise Unproved(f"the score of letter {r} is not shown to be the circuit's")
