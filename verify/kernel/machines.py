"""Tasks that are machines: what is remembered of a text, how a letter moves it, and which letter is right then.

A machine and the input language run side by side: the language of both has a state for each pair that is reached.
Where nothing more is asked, however the sequence goes on, the machine stops, and the language of both with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, atom, entries, path_of
from verify.kernel.facts import Known
from verify.kernel.floats import Unproved, dyadic
from verify.kernel.language import MOST_LETTERS, Edge, Language
from verify.kernel.readout import state_scores
from verify.kernel.rules import answered, asked
from verify.kernel.terms import Poly, Terms

_MOST_STATES, _MOST_STEPS = 1 << 14, 1 << 20
_OF_A_STEP, _OF_AN_ENTRY = 1 << 9, 1 << 6  # numbers that take as long; of what is remembered, which is hashed anew


class Machine(NamedTuple):
    """start: before any letter. step: (what is remembered, letter) to what is then, None where nothing is asked from
    there on. right: the letter that is to score highest, None where nothing is asked here. end: the letter that ends a
    text, by its name. at: the only letter behind which something is asked, None where there are more.
    """

    start: Hashable
    step: Callable[[Any, int], Hashable | None]
    right: Callable[[Any], int | None]
    end: str | None = None
    at: int | None = None


def counted(terms: Terms, machine: Machine) -> Machine:
    """The machine, each of whose steps is counted with what is remembered behind it."""

    def step(held: Any, a: int) -> Hashable | None:
        found = machine.step(held, a)
        terms.spend(_OF_A_STEP + _OF_AN_ENTRY * _size(found))
        return found

    return machine._replace(step=step)


def _size(held: Hashable) -> int:
    return 1 + sum(map(_size, held)) if isinstance(held, (tuple, frozenset)) else 1


def beside(language: Language, machine: Machine) -> tuple[Language, list[int | None]]:
    """The sequences of the language up to where the machine stops, through states of both; and the letter that is right
    in each state. Every beginning of a sequence behind which something is asked is one of these.
    """
    numbers: dict[tuple[int, Hashable], int] = {(0, machine.start): 0}
    edges: list[Edge] = []
    newest, steps = [(0, machine.start)], 0
    for _ in range(language.length):
        todo, newest = newest, []
        for (state, held), edge in ((at, edge) for at in todo for edge in language.leaving.get(at[0], ())):
            moved: dict[Hashable, list[int]] = {}
            steps += int(edge.letters.sum())
            if steps > _MOST_STEPS or len(edges) * language.tokens > MOST_LETTERS:
                raise Unproved(f"task and language take more than {_MOST_STEPS} steps, or {MOST_LETTERS} letters")
            for a in np.flatnonzero(edge.letters).tolist():
                moved.setdefault(machine.step(held, a), []).append(a)
            moved.pop(None, None)
            for new, letters in moved.items():
                if (edge.target, new) not in numbers:
                    numbers[edge.target, new] = len(numbers)
                    newest.append((edge.target, new))
                mask = np.zeros(language.tokens, dtype=bool)
                mask[letters] = True
                edges.append(Edge(numbers[state, held], numbers[edge.target, new], mask, edge.distinct))
        if not newest:
            break
        if len(numbers) > _MOST_STATES:
            raise Unproved(f"the task remembers more than {_MOST_STATES} things")
    both = Language(language.tokens, len(numbers), tuple(edges), language.length)
    return both, [machine.right(held) for _, held in numbers]


def check_asked(ledger: Ledger, machine: Machine, place: str) -> None:
    """Some sequence of the language asks something at its end; a claim says which."""
    step = lambda held, a: None if held is None else machine.step(held, a)
    right = lambda letters: None if (held := reduce(step, letters, machine.start)) is None else machine.right(held)
    ledger.single(place, [], "asks", 1, lambda number, path: asked(ledger.terms, number, path_of(path), right))


def check_machine(ledger: Ledger, circuit: Circuit, machine: Machine) -> None:
    """Unproved where another letter may score as high as one that the machine asks for."""
    terms, (head, lanes), at = ledger.terms, state_scores(ledger.terms, circuit), machine.at
    both, right = beside(terms.language, machine)
    answers = sorted({v for v in right if v is not None})
    if at is not None:
        if any(np.delete(e.letters, at).any() for e in both.edges if right[e.target] is not None):
            raise Unproved("something is asked at another letter")
        lanes = [_present(terms, p, at) for p in lanes]
    rows = [[(dyadic(row[i]), lanes[i]) for i in np.flatnonzero(row).tolist()] for row in head]
    less = lambda row: [(-x, p) for x, p in row]
    leads = {(v, u): terms.add([*rows[v], *less(rows[u])]) for v in answers for u in range(len(rows)) if u != v}

    def make(number: int, *states: Any) -> Known:
        followed, bounded = ([atom(terms, a) for a in entries(names)] for names in states)
        return answered(terms, number, leads, both, right, followed, bounded)

    place = "the answers" if at is None else f"the answers at {circuit.data['alphabet'][at]}"
    ledger.single(place, list(leads.values()), "answers", 2, make)


def _present(terms: Terms, p: Poly, letter: int) -> Poly:
    """p where the present letter is this one: tables of it are numbers."""
    parts = []
    for m, c in p.terms.items():
        now = [f for f in m if not f[1] and terms.atoms[f[0]].kind == "table"]
        value = prod(int(terms.atoms[a].table[letter]) for a, _ in now)
        parts.append((c * value, Poly({tuple(f for f in m if f not in now): Fraction(1)})))
    return terms.add(parts)
