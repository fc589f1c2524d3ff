"""A complete finite automaton with an output for each state (a Moore machine), and its minimal form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

MOST_STATES = 1 << 12
MOST_TRANSITIONS = 1 << 16  # some five processor seconds
MOST_LETTERS = 1 << 12  # each has a row of the embedding and one of the head, and is tried among all others
YES, NO = "yes", "no"


@dataclass(frozen=True)
class Table:
    """letters: the symbols, by index; following: [state][letter], the next state; start: the state before any letter.

    outputs: for each state what it answers; names: what its author calls each state.
    """

    letters: tuple[str, ...]
    following: tuple[tuple[int, ...], ...]
    start: int
    outputs: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def states(self) -> int:
        return len(self.following)

    def run(self, word: Sequence[str]) -> str:
        """The output behind a word."""
        state, place = self.start, {letter: i for i, letter in enumerate(self.letters)}
        for letter in word:
            state = self.following[state][place[letter]]
        return self.outputs[state]

    def transitions(self) -> dict[str, dict[str, str]]:
        """{state: {letter: state}}, by names."""
        return {
            self.names[s]: {letter: self.names[to] for letter, to in zip(self.letters, row, strict=True)}
            for s, row in enumerate(self.following)
        }


def with_others(table: Table) -> Table:
    """The same with a letter "" before all others, which leaves every state as it is."""
    following = tuple((s, *row) for s, row in enumerate(table.following))
    return Table(("", *table.letters), following, table.start, table.outputs, table.names)


def table_of(
    transitions: Mapping[str, Mapping[str, str]],
    start: str,
    outputs: Mapping[str, str],
) -> Table:
    """The table by names; ValueError, in one sentence, where it is not total or names a state that is none."""
    if not transitions:
        raise ValueError("the table has no state, and at least one is needed")
    if len(transitions) > MOST_STATES:
        raise ValueError(f"the table has {len(transitions)} states, and {MOST_STATES} are the most")
    letters = tuple(dict.fromkeys(letter for row in transitions.values() for letter in row))
    if not letters:
        raise ValueError("the table has no letter, and at least one is needed")
    if len(letters) > MOST_LETTERS:
        raise ValueError(f"the table has {len(letters):,} letters, and {MOST_LETTERS:,} are the most")
    if (count := len(letters) * len(transitions)) > MOST_TRANSITIONS:
        parts = f"{len(transitions):,} states of {len(letters):,} letters"
        raise ValueError(f"the table has {count:,} transitions, {parts}, and {MOST_TRANSITIONS:,} are the most")
    place = {state: i for i, state in enumerate(transitions)}
    if start not in place:
        raise ValueError(f"the start {start!r} is no state of the table; its states are {_some(transitions)}")
    for state, row in transitions.items():
        missing = [letter for letter in letters if letter not in row]
        if missing:
            raise ValueError(
                f"the table is not total: state {state!r} has no transition for letter {missing[0]!r}; give it one, "
                "such as one to a state that is never left"
            )
        wrong = [to for to in row.values() if to not in place]
        if wrong:
            raise ValueError(
                f"state {state!r} leads to {wrong[0]!r}, which has no transitions of its own; give it some"
            )
    odd = [state for state in outputs if state not in place]
    if odd:
        raise ValueError(f"{odd[0]!r} has an answer and is no state of the table; its states are {_some(transitions)}")
    silent = [state for state in transitions if state not in outputs]
    if silent:
        raise ValueError(f"state {silent[0]!r} has no class; every state of a table of classes needs one")
    following = tuple(tuple(place[row[letter]] for letter in letters) for row in transitions.values())
    return Table(letters, following, place[start], tuple(outputs[s] for s in transitions), tuple(transitions))


def _some(names: Mapping[str, object]) -> str:
    shown = [repr(name) for name in list(names)[:8]]
    return ", ".join(shown) + ", …" * (len(names) > len(shown))


def minimal(table: Table) -> Table:
    """The least automaton with the same outputs behind every word; its states in the order of their first words."""
    reached = reached_states(table)
    kind: dict[int, Hashable] = {s: table.outputs[s] for s in reached}
    count = len(set(kind.values()))
    while True:  # two states stay together while no letter tells them apart
        finer = {s: (kind[s], *(kind[to] for to in table.following[s])) for s in reached}
        number: dict[Hashable, int] = {}
        kind = {s: number.setdefault(finer[s], len(number)) for s in reached}
        if len(number) == count:
            break
        count = len(number)
    first: dict[Hashable, int] = {}
    for s in reached:
        first.setdefault(kind[s], s)
    place = {of: i for i, of in enumerate(first)}
    following = tuple(tuple(place[kind[to]] for to in table.following[s]) for s in first.values())
    outputs, names = (tuple(known[s] for s in first.values()) for known in (table.outputs, table.names))
    return Table(table.letters, following, place[kind[table.start]], outputs, names)


def reached_states(table: Table) -> list[int]:
    """The states that words lead to, the start first, by the length of the shortest word."""
    found = {table.start: None}
    waiting = [table.start]
    for state in waiting:
        for to in table.following[state]:
            if to not in found:
                found[to] = None
                waiting.append(to)
    return waiting
