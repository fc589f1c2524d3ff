"""The scores of the weights are those of the circuit, letter by letter, at every position of every sequence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from functools import partial
from math import lcm

import numpy as np

from verify.kernel.circuit import Circuit, Decided
from verify.kernel.claims import Ledger, fraction
from verify.kernel.exact import add, alike, integers, matmul, multiply, size, whole
from verify.kernel.floats import Unproved, dyadic, whole_number
from verify.kernel.mixers import Number
from verify.kernel.rules import weighed
from verify.kernel.terms import Atom, Mono, Poly, Terms, constant

_MOST_ROWS, _MOST_PRODUCTS, _MOST_NUMBERS = 1 << 10, 1 << 32, 1 << 28
Column = np.ndarray  # one exact number for each letter
Array = np.ndarray
Times = dict[int, int]  # how often something stands in a sum, by its number


def check_meaning(ledger: Ledger, lanes: Sequence[Number], head: np.ndarray, circuit: Circuit) -> None:
    """Σ head · lane − Σ matrix · stream is 0 for each letter.

    They are added up, polynomial by polynomial and then monomial by monomial, as columns over the letters. What is
    left of a letter is a polynomial, and claims must show that it is 0 in every case.
    """
    letters, terms = ledger.terms.language.tokens, ledger.terms
    parts = [(head[:letters, i], lane.poly) for i, lane in enumerate(lanes)]
    parts += [(-column, p) for column, p in circuit.scores]
    decided = _rules(ledger, circuit, lambda r: _score(ledger.terms, parts, r))
    parts += [(-weight * (np.arange(letters) == token), flag) for token, weight, flag in decided]
    for r, p in _rows(terms, [(numbers, p) for numbers, p in parts if p.terms and numbers.any()]):
        held = _together(terms, p)
        subjects = [q for q, _ in held.values()]
        ledger.until(f"the score of letter {r}", subjects, partial(_check_zero, terms, held, p, r))
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
    decided = circuit.scores
    scores = [_score(terms, decided, r) for r in range(terms.language.tokens)]
    if any(token >= len(scores) for token, _ in rules):
        raise Unproved("a rule names no letter of the language")
    leads = [terms.add([(Fraction(1), s), (Fraction(-1), scores[token])]) for token, _ in rules for s in scores]

    def check(weight: Fraction) -> None:
        if any(terms.range(lead)[1] >= weight for lead in leads):
            raise Unproved("the weight of the rules over scores is not shown to exceed every lead")

    token, flag = rules[-1]
    make = lambda number, weight: weighed(number, fraction(weight))
    weight = ledger.single("the rules", [missing(token), flag, *leads], "weight", 1, make, check)
    found = [(t, weight * 2 ** (len(rules) - 1 - i), f) for i, (t, f) in enumerate(rules)]
    for t, added, _ in found:
        if Fraction(float(added)) != added:
            raise Unproved(f"a rule adds {added} to the score of letter {t}")
    return [(t, float(added), f) for t, added, f in found]


def _rows(terms: Terms, left: Sequence[tuple[Column, Poly]]) -> list[tuple[int, Poly]]:
    """What is left of the scores, times one number > 0, as different polynomials, each with the first letter that has
    it."""
    by_poly: dict[tuple, Column] = {}
    below = lcm(*(p.primitive[0].denominator for _, p in left))
    columns = whole(np.stack([numbers for numbers, _ in left]))[0] if left else np.zeros(0)
    for column, (_, p) in zip(columns, left, strict=True):
        c, q = p.primitive
        by_poly[q.key] = add(by_poly.get(q.key, column * 0), multiply(integers([int(c * below)]), column))
    by_poly = {key: column for key, column in by_poly.items() if column.any()}
    if not by_poly:
        return []
    by_mono: dict[Mono, Times] = defaultdict(dict)
    for i, terms_of in enumerate(by_poly):
        for m, c in terms_of:
            by_mono[m][i] = int(c)
    return _by_letter(terms, np.stack(alike(*by_poly.values()), axis=1), by_mono)


def _by_letter(terms: Terms, columns: Array, by_mono: dict[Mono, Times]) -> list[tuple[int, Poly]]:
    """The polynomials Σ monomial · (the sum of its columns, so often each) of the letters, each with its first letter.

    columns: (letters, columns).
    """
    by_mono = _uncancelled(terms, columns, by_mono)
    if len(columns) * len(by_mono) > _MOST_NUMBERS:
        raise Unproved(f"the scores of {len(columns)} letters differ from the circuit's by {len(by_mono)} products")
    numbers = matmul(columns, _dense(by_mono.values(), columns.shape[1]).T)
    found: dict[tuple, tuple[int, Poly]] = {}
    for r in np.flatnonzero(numbers.any(axis=1)).tolist():
        row = zip(by_mono, numbers[r].tolist(), strict=True)
        p = terms.add([(Fraction(1), Poly({m: Fraction(number) for m, number in row}))])
        if p.terms:
            found.setdefault(p.primitive[1].key, (r, p))
    if len(found) > _MOST_ROWS:
        raise Unproved(f"the scores of {len(found)} letters differ from the circuit's")
    return list(found.values())


def _dense(rows: Collection[Times], width: int) -> Array:
    """These rows as a matrix."""
    at = [(i, j) for i, row in enumerate(rows) for j in row]
    numbers = integers([x for row in rows for x in row.values()])
    found = np.zeros((len(rows), width), numbers.dtype)
    found[tuple(np.array(at, int).reshape(-1, 2).T)] = numbers
    return found


def _shadow(a: Array) -> Array:
    """A matrix, small where it can be, that makes 0 of the same vectors: aᵀa, for |ax|² = xᵀaᵀax (Columns.shadows)."""
    fits = a.dtype == np.int64 and size(a) ** 2 * len(a) < 1 << 62
    return matmul(a.T, a) if fits and len(a) > a.shape[1] else a


def _groups(terms: Terms, monomials: Iterable[Mono]) -> dict[tuple, list[tuple[Mono, Atom]]]:
    """Those with one state, by what multiplies it, its lag, its kind and its flag."""
    groups = defaultdict[tuple, list[tuple[Mono, Atom]]](list)
    for m in monomials:
        states = [f for f in m if terms.atoms[f[0]].kind in ("sum", "count", "latch")]
        if len(states) == 1:
            ((a, lag),), atom = states, terms.atoms[states[0][0]]
            groups[tuple(f for f in m if f != (a, lag)), lag, atom.kind, atom.flag.key].append((m, atom))
    return groups


def _uncancelled(terms: Terms, columns: Array, by_mono: dict[Mono, Times]) -> dict[Mono, Times]:
    """Without the groups of states that add up to 0 for all letters at once.

    States are linear (States.states_are_linear). Those of one kind and flag, at one lag, multiplied by the same, may
    store Σ_k table_k(present letter) · k, for monomials k that read nothing of the present letter. They add up to 0
    where for each k, each letter that is scored and each that is stored the sum over the states of column · table_k is
    0: the product of the matrices columns · scored · held · tables.
    """
    groups: dict[tuple, list[tuple[Mono, dict[Mono, Times]]]] = defaultdict(list)
    for (others, lag, kind, _), members in _groups(terms, by_mono).items():
        for m, atom in members:
            stored, flag = _by_present(terms, atom.of), _upright(terms, atom.flag).key
            groups[others, lag, kind, flag, frozenset(stored)].append((m, stored))
    gone: set[Mono] = set()
    columns, work, known = _shadow(columns), 0, dict[tuple[int, ...], Array]()
    for (*_, kinds), found in groups.items():
        scored = matmul(columns, _dense([by_mono[m] for m, _ in found], columns.shape[1]).T)
        added = []
        for k in kinds:
            tables = tuple(sorted({a for _, stored in found for a in stored[k]}))
            if tables not in known:
                known[tables] = _shadow(np.stack([terms.atoms[a].table[terms.language.used] for a in tables], axis=1))
            held = _dense([{tables.index(a): c for a, c in stored[k].items()} for _, stored in found], len(tables))
            work += len(scored) * len(tables) * (len(found) + len(known[tables]))
            added.append((held, known[tables].T))
        if work <= _MOST_PRODUCTS and not any(matmul(matmul(scored, held), of).any() for held, of in added):
            gone.update(m for m, _ in found)
    return {m: times for m, times in by_mono.items() if m not in gone}


def _upright(terms: Terms, p: Poly) -> Poly:
    """relu(q) as relu(−q) + q where the first coefficient of q is below 0: flags bent from either side become one."""
    parts = []
    for m, c in p.terms.items():
        found = constant(c)
        for a, lag in m:
            q, factor = terms.atoms[a].of, Poly({((a, 0),): Fraction(1)})
            if terms.atoms[a].kind == "relu" and q.primitive[0] < 0:
                factor = terms.add([(Fraction(1), terms.relu(terms.add([(Fraction(-1), q)]))), (Fraction(1), q)])
            found = terms.product(found, terms.earlier(factor, lag))
        parts.append((Fraction(1), found))
    return terms.add(parts)


def _by_present(terms: Terms, p: Poly) -> dict[Mono, Times]:
    """p, with whole coefficients, as Σ table(present letter) · monomial, each table so often, where the monomials read
    nothing else of the present letter."""
    found: dict[Mono, Times] = defaultdict(dict)
    for m, c in p.terms.items():
        present = [f for f in m if f[1] == 0 and terms.atoms[f[0]].kind == "table"]
        found[tuple(f for f in m if f not in present)][present[0][0] if present else 0] = whole_number(c)
    return found


def _together(terms: Terms, p: Poly) -> dict[tuple, tuple[Poly, list[tuple]]]:
    """By its key p, and all that its parts have as parts: each with the keys of its parts.

    The parts of a polynomial are what reads no state, or several, and what each group of its states stores in sum. A
    group is of one kind and flag, at one lag, and multiplied by the same.
    """
    found: dict[tuple, tuple[Poly, list[tuple]]] = {}
    todo = [p]
    while todo:
        q = todo.pop()
        groups = _groups(terms, q.terms).values()
        parts = [terms.replaced(terms.add([(q.terms[m], atom.of) for m, atom in group])) for group in groups]
        held = {m for group in groups for m, _ in group}
        parts += [Poly({m: c for m, c in q.terms.items() if m not in held})] if held else []
        found[q.key] = q, [part.key for part in parts]
        todo += [part for part in parts if part.key not in found]
        if len(found) > _MOST_ROWS:
            raise Unproved(f"what cancels has more than {_MOST_ROWS} parts")
    return found


def _check_zero(terms: Terms, parts: dict[tuple, tuple[Poly, list[tuple]]], p: Poly, r: int) -> None:
    """p is 0 at every position: it, or each of its parts. States are linear (States.states_are_linear), so a group of
    them is 0 where what it stores in sum is 0 at every position.
    """
    zero: dict[tuple, bool] = {}

    def vanishes(key: tuple) -> bool:
        if key not in zero:
            q, own = parts[key]
            zero[key] = not any(terms.range(q)) or bool(own) and all(map(vanishes, own))
        return zero[key]

    if not vanishes(p.key):
        raise Unproved(f"the score of letter {r} is not shown to be the circuit's")
