"""Tasks that are machines: what is remembered of a text, how a letter moves it, and which letter is right then.

A machine and the input language run side by side: the language of both has a state for each pair that is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, atom, entries
from verify.kernel.facts import Answered
from verify.kernel.floats import Unproved, dyadic
from verify.kernel.language import Edge, Language
from verify.kernel.readout import numbered, state_scores
from verify.kernel.rules import answered

_MOST_STATES = 1 << 14


class Machine(NamedTuple):
    """start: before any letter. step: (what is remembered, letter) to what is then. right: the letter that is to score
    highest, None where nothing is asked.
    """

    start: Hashable
    step: Callable[[Any, int], Hashable]
    right: Callable[[Any], int | None]


def beside(language: Language, machine: Machine) -> tuple[Language, list[int | None]]:
    """The sequences of the language, through states of both; and the letter that is right in each state."""
    numbers: dict[tuple[int, Hashable], int] = {(0, machine.start): 0}
    edges, todo = [], [(0, machine.start)]
    while todo:
        state, held = todo.pop()
        for edge in language.edges:
            moved: dict[Hashable, list[int]] = {}
            for a in np.flatnonzero(edge.letters).tolist() if edge.source == state else ():
                moved.setdefault(machine.step(held, a), []).append(a)
            for new, letters in moved.items():
                if (edge.target, new) not in numbers:
                    numbers[edge.target, new] = len(numbers)
                    todo.append((edge.target, new))
                mask = np.isin(np.arange(language.tokens), letters)
                edges.append(Edge(numbers[state, held], numbers[edge.target, new], mask, edge.distinct))
        if len(numbers) > _MOST_STATES:
            raise Unproved(f"the task remembers more than {_MOST_STATES} things")
    both = Language(language.tokens, len(numbers), tuple(edges), language.length)
    return both, [machine.right(held) for _, held in numbers]


def check_machine(ledger: Ledger, circuit: Circuit, machine: Machine) -> None:
    """Unproved where another letter may score as high as one that the machine asks for."""
    terms, (head, lanes) = ledger.terms, state_scores(ledger.terms, circuit)
    both, right = beside(terms.language, machine)
    rows = [[(dyadic(x), p) for x, p in zip(row, lanes, strict=True) if x] for row in head.tolist()]
    asked = sorted({v for v in right if v is not None})
    if not asked:
        raise Unproved("no sequence of the language asks for a letter")
    less = lambda row: [(-x, p) for x, p in row]
    leads = {(v, u): terms.add([*rows[v], *less(rows[u])]) for v in asked for u in range(len(rows)) if u != v}
    found: list[Answered] = []

    def make(number: int, claim: Any) -> Answered:
        kind, *ways = entries(claim, 3)
        if kind != "answers" or found:
            raise Unproved("the task needs one claim on which states are followed")
        followed, bounded = ([atom(terms, a) for a in entries(states)] for states in ways)
        found.append(answered(terms, number, leads, both, right, followed, bounded))
        return found[0]

    def check() -> None:
        if not found:
            raise Unproved("nothing is claimed on which states are followed")
        found[0].used = True

    ledger.until("the answers", list(leads.values()), check, make)


def selective_copy(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """Behind the first bar: the letters x0, x1, … before it in their order, then the end. Each of them that is written
    there counts as one, right or not; behind an end nothing is asked.
    """
    if set(claim) != {"name"} or not {"|", ".", "_"} <= set(names):
        raise Unproved("the letters |, . and _ are not there, or the task has parameters")
    text, bar, end = {int(a) for a in numbered(names, "x")}, names["|"], names["."]

    def step(held: Any, a: int) -> Hashable:
        if held is None or a == end and held[1] is not None:
            return None
        letters, written = held
        if a in text:
            return ((*letters, a), None) if written is None else (letters, written + 1)
        return (letters, 0) if a == bar and written is None else held

    def right(held: Any) -> int | None:
        if held is None or held[1] is None:
            return None
        letters, written = held
        return int(letters[written]) if written < len(letters) else end

    check_machine(ledger, circuit, Machine(((), None), step, right))
    return "behind the first '|': the letters x0, x1, … before it in their order, then '.'"
