"""Tasks that are machines: what is remembered of a text, how a letter moves it, and which letter is right then.

A machine and the input language run side by side: the language of both has a state for each pair that is reached.
Where nothing more is asked, however the sequence goes on, the machine stops, and the language of both with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, atom, entries
from verify.kernel.facts import Known
from verify.kernel.floats import Unproved, dyadic
from verify.kernel.language import MOST_LETTERS, Edge, Language
from verify.kernel.readout import numbered, state_scores
from verify.kernel.rules import answered

_MOST_STATES, _MOST_STEPS = 1 << 14, 1 << 20
Letters = tuple[int, ...]


class Machine(NamedTuple):
    """start: before any letter. step: (what is remembered, letter) to what is then, None where nothing is asked from
    there on. right: the letter that is to score highest, None where nothing is asked here.
    """

    start: Hashable
    step: Callable[[Any, int], Hashable | None]
    right: Callable[[Any], int | None]


def beside(language: Language, machine: Machine) -> tuple[Language, list[int | None]]:
    """The sequences of the language up to where the machine stops, through states of both; and the letter that is right
    in each state. Every beginning of a sequence behind which something is asked is one of these.
    """
    numbers: dict[tuple[int, Hashable], int] = {(0, machine.start): 0}
    edges: list[Edge] = []
    todo, steps = [(0, machine.start)], 0
    while todo:
        state, held = todo.pop()
        for edge in language.leaving.get(state, ()):
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

    def make(number: int, *states: Any) -> Known:
        followed, bounded = ([atom(terms, a) for a in entries(names)] for names in states)
        return answered(terms, number, leads, both, right, followed, bounded)

    ledger.single("the answers", list(leads.values()), "answers", 2, make)


def selective_copy(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """Behind the first bar: the letters x0, x1, … before it in their order, then the end. Each of them that is written
    there counts as one, right or not; behind an end nothing is asked.
    """
    if set(claim) != {"name"} or not {"|", ".", "_"} <= set(names):
        raise Unproved("the letters |, . and _ are not there, or the task has parameters")
    text, bar, end = {int(a) for a in numbered(names, "x")}, names["|"], names["."]

    def step(held: Any, a: int) -> Hashable | None:
        letters, written = held
        if a == end and written is not None:
            return None
        if a in text:
            return ((*letters, a), None) if written is None else (letters, written + 1)
        return (letters, 0) if a == bar and written is None else held

    def right(held: Any) -> int | None:
        letters, written = held
        if written is None:
            return None
        return int(letters[written]) if written < len(letters) else end

    check_machine(ledger, circuit, Machine(((), None), step, right))
    return "behind the first '|': the letters x0, x1, … before it in their order, then '.'"


def answering(ask: int, answer: Callable[[Letters], Letters | None]) -> Machine:
    """A text up to the letter `ask`, then what `answer` makes of it, letter by letter, the last one its end; None where
    it is no such text. What is remembered: (whether the text is over, the text so far or what is still to be written).
    Behind a wrong letter nothing is asked.
    """

    def step(held: tuple[bool, Letters], a: int) -> tuple[bool, Letters] | None:
        over, letters = held
        if over:
            return (True, letters[1:]) if letters[0] == a and len(letters) > 1 else None
        found = answer(letters) if a == ask else (*letters, a)
        return None if found is None else (a == ask, found)

    return Machine((False, ()), step, lambda held: held[1][0] if held[0] else None)


def edit_distance(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """Two words of a, b, … with | between, then ; and the rows of a table with ; between, then the end. Entry c of row
    r, both from 0 on: how many letters must be put in, dropped or changed, at least, to make the first r letters of
    the first word the first c of the second.
    """
    if set(claim) != {"name"} or not {"|", ";", ".", "a"} <= set(names):
        raise Unproved("the letters |, ;, . and a are not there, or the task has parameters")
    spelled = {names[x] for x in ascii_lowercase if x in names}
    numbers, (bar, ask, end) = numbered(names, "").tolist(), (names[x] for x in "|;.")

    def answer(text: Letters) -> Letters | None:
        if text.count(bar) != 1 or not spelled | {bar} >= set(text):
            return None
        first, second = text[: text.index(bar)], text[text.index(bar) + 1 :]
        rows = [list(range(len(second) + 1))]
        for a in first:
            above, row = rows[-1], [len(rows)]
            for c, b in enumerate(second):
                row.append(min(above[c + 1] + 1, row[c] + 1, above[c] + (a != b)))
            rows.append(row)
        if max(map(max, rows)) >= len(numbers):
            raise Unproved("a distance has no letter")
        written = [letter for row in rows for letter in (*(numbers[d] for d in row), ask)]
        return (*written[:-1], end)

    check_machine(ledger, circuit, answering(ask, answer))
    return (
        "behind two words of a, b, … with '|' between and ';': the rows of the table of their edit distances with ';' "
        "between, then '.'; each letter as long as those before it are right"
    )


def automaton(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """What a finite automaton answers in the state that the letters so far lead to: the manifest lists it, letters by
    their names. Behind a letter by which a state does not lead on nothing is asked.
    """
    if set(claim) != {"name", "start", "transitions", "classes", "end"}:
        raise Unproved("an automaton has start, transitions, classes and end")
    table, answers = claim["transitions"], claim["classes"]
    moves = [(state, name, to) for state, by in table.items() for name, to in by.items()]
    if any(type(to) is not str for _, _, to in moves) or not {x for _, x, _ in moves} | {*answers.values()} <= set(
        names
    ):
        raise Unproved("the automaton names a state that is no text, or a letter that circuit.json has not")
    if not {to for _, _, to in moves} <= {*table, *answers}:
        raise Unproved("a move of the automaton leads to a state that it says nothing of")
    following = {(state, names[x]): to for state, x, to in moves}
    right = {state: names[x] for state, x in answers.items()}
    check_machine(ledger, circuit, Machine(claim["start"], lambda state, a: following.get((state, a)), right.get))
    mark = hashlib.sha256(json.dumps(claim, sort_keys=True).encode()).hexdigest()[:16]
    return f"what the automaton of construction.json answers (SHA-256 of `task` {mark}…), {len(following)} moves"
