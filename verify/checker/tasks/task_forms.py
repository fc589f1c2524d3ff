"""Tasks of general forms, for circuits of one's own: a finite automaton, a look-up, a count.

Their claims name letters themselves, for there is no table of names: who reads the verdict reads them there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.letters import Held, Ids
from verify.checker.tasks.listing import FEW, LONG, digest, runs
from verify.checker.tasks.names import Names, Stated
from verify.checker.tasks.paths import OVER, Asked, Known
from verify.checker.tasks.task_copies import Choices, always, letter, nothing, number

_MOST_STATES, _MOST_MOVES = 1 << 12, 1 << 22
_MOST_PAIRS = 12
KEY, VALUE = 1, 2
ONCE = "that was so exactly once"


@dataclass(frozen=True, eq=False)
class States:
    """A finite automaton. following: (states, kinds) the next state, −1 for none; answers: (states,) the letter that is
    right in a state, −1 where nothing is asked. Nothing is asked behind a letter that a state does not lead on by.
    """

    kinds: np.ndarray
    start: int
    following: np.ndarray
    answers: np.ndarray

    def begin(self) -> Known:
        return Known(self.start)

    def step(self, known: Known, kind: int, here: int) -> Known:
        state = int(self.following[known.control, kind])
        return OVER if state < 0 else Known(state)

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        answer = int(self.answers[known.control])
        return nothing() if answer < 0 else [always(answer)]


@dataclass(frozen=True, eq=False)
class Pairs:
    """At a key: the value of one of the pairs of this key so far; a pair is a value right after a key.

    kinds: KEY, VALUE, both added, or 0. which: "first", "last", "only" or the number of the pair, from 1 on. blank: the
    letter where there is none, −1 where nothing is asked then.
    """

    kinds: np.ndarray
    which: str | int
    blank: int

    def begin(self) -> Known:
        return Known((0, False))

    def step(self, known: Known, kind: int, here: int) -> Known:
        """control: how many pairs, whether the last letter is a key. letters: keys and values in turn, that key."""
        pairs, key_before = known.control
        letters = known.letters
        if key_before:
            pairs, letters = (pairs + 1, (*letters, here)) if kind & VALUE else (pairs, letters[:-1])
        if kind & KEY:
            letters = (*letters, here)
        if pairs > _MOST_PAIRS:
            raise Rejected(f"a look-up is gone through with at most {_MOST_PAIRS} pairs in a sequence")
        return Known((pairs, bool(kind & KEY)), letters)

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        """The same of a text of any length whose letters are known, without its situations: None where nobody asks."""
        found: list[int | None] = []
        values: dict[int, list[int]] = {}  # of each key, in their order
        before = 0
        for t, here in enumerate(letters):
            kind = int(self.kinds[here])
            if before & KEY and kind & VALUE:
                values.setdefault(letters[t - 1], []).append(here)
            found.append(self._right(values.get(here, [])) if kind & KEY else None)
            before = kind
        return found

    def _right(self, values: Sequence[int]) -> int | None:
        """Of the values of a key so far the one that is asked for."""
        if self.which == "only" and len(values) > 1:
            return None
        place = self.which - 1 if isinstance(self.which, int) else len(values) - 1 if self.which == "last" else 0
        if 0 <= place < len(values):
            return values[place]
        return None if self.blank < 0 else self.blank

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        pairs, asks = known.control
        if not asks:
            return nothing()
        keys, values, now = known.letters[0 : 2 * pairs : 2], known.letters[1 : 2 * pairs : 2], known.letters[-1]
        found = []
        for place in range(pairs):
            for others in self._beside(place, pairs):
                right = letter(values[place], choices)
                given = [_same(keys[i], now, choices, i == place or i in others[0]) for i in (place, *sum(others, ()))]
                found.append(Asked(right.letters, right.right, tuple(given)))
        if self.blank >= 0:
            most = self.which - 1 if isinstance(self.which, int) else 0
            for count in range(min(most, pairs) + 1):
                for equal in combinations(range(pairs), count):
                    given = [_same(keys[i], now, choices, i in equal) for i in range(pairs)]
                    found.append(Asked((), np.array(self.blank), tuple(given)))
        return found

    def _beside(self, place: int, pairs: int) -> list[tuple[Ids, Ids]]:
        """Where this pair is the answer: (other pairs that have the key as well, those that have not), in each case."""
        before, after = tuple(range(place)), tuple(range(place + 1, pairs))
        if self.which == "first":
            return [((), before)]
        if self.which == "last":
            return [((), after)]
        if self.which == "only":
            return [((), before + after)]
        chosen = combinations(before, int(self.which) - 1)
        return [(equal, tuple(i for i in before if i not in equal)) for equal in chosen]


def _same(one: int, other: int, choices: Choices, same: bool) -> Held:
    return (one, other), (choices[one][:, None] == choices[other][None, :]) == same


# From the claim of a manifest -----------------------------------------------------------------------------------


def read_automaton(claim: dict, names: Names) -> tuple[States, str, np.ndarray]:
    """{"start": S, "transitions": {S: {LETTER: S}}, "classes": {S: LETTER}}, or "accept": [S, …] for yes and no.

    The last: ids of the letters that some state leads on by.
    """
    table, start = claim["transitions"], claim["start"]
    if not isinstance(table, dict) or not all(isinstance(by, dict) for by in table.values()):
        raise ValueError("transitions is no object of objects")
    states = list(dict.fromkeys([start, *table, *(to for by in table.values() for to in by.values())]))
    if not all(isinstance(s, str) for s in states) or len(states) > _MOST_STATES:
        raise ValueError(f"an automaton has at most {_MOST_STATES} states, which are texts")
    if len(states) * names.count > _MOST_MOVES:
        raise ValueError(f"an automaton has at most {_MOST_MOVES} moves, of each state by each letter")
    place = {state: i for i, state in enumerate(states)}
    columns = np.full((names.count, len(states)), -1, dtype=np.int64)
    for state, by in table.items():
        for name, to in by.items():
            columns[names.one(name), place[state]] = place[to]
    kept, kinds = np.unique(columns, axis=0, return_inverse=True)
    stated = _classes(claim, states)
    for answer in stated.values():
        names.one(answer)
    classes = _ever_asked(stated, start, table)
    answers = np.array([names.one(classes[s]) if s in classes else -1 for s in states], dtype=np.int64)
    moving = np.flatnonzero((columns >= 0).any(axis=1))
    return States(kinds.reshape(-1), 0, kept.T, answers), _automaton_says(table, states, classes), moving


def _automaton_says(table: dict, states: list[str], classes: dict[str, str]) -> str:
    """The whole table where it is small: its answers are nothing without it."""
    size = f"{len(states)} state{'s' * (len(states) != 1)}"
    said = f"what the state of a finite automaton of {size} answers; it starts in {states[0]!a}"
    letters = list(dict.fromkeys(name for by in table.values() for name in by))
    lines = []
    for state in states:
        by: dict[str, list[str]] = {}
        for name, to in table.get(state, {}).items():
            by.setdefault(to, []).append(name)
        moves = ", ".join(f"{' '.join(map(ascii, names))} to {to!a}" for to, names in by.items()) or "nothing leads on"
        answer = f"answers {ascii(classes[state])}" if state in classes else "asks nothing"
        lines.append(f"{state!a} {answer} ({moves})")
    partial = any(len(table.get(state, {})) < len(letters) for state in states)
    rest = "; behind a letter that leads nowhere nothing is asked" * partial
    whole = "; ".join(lines)
    if len(whole) <= LONG:
        return f"{said}: {whole}{rest}"
    mark = hashlib.sha256(json.dumps([table, classes], sort_keys=True).encode()).hexdigest()[:16]
    return f"{said}; its table stands in construction.json (SHA-256 of transitions and classes {mark}…){rest}"


def _classes(claim: dict, states: list[str]) -> dict[str, str]:
    if "accept" not in claim:
        classes = claim["classes"]
        if not isinstance(classes, dict) or not set(classes) <= set(states):
            raise ValueError("classes names a state that is none")
        return classes
    accept = claim["accept"]
    if not isinstance(accept, list) or not set(accept) <= set(states):
        raise ValueError("accept names a state that is none")
    return {state: "yes" if state in accept else "no" for state in states}


def _ever_asked(classes: dict[str, str], start: str, table: dict) -> dict[str, str]:
    """Without the answers that no letter leads to: the start alone has them, where it is asked nothing, or a state that
    is never come to.
    """
    entered: set[str] = set()
    pending = [start]
    while pending:
        new = {*table.get(pending.pop(), {}).values()} - entered
        entered |= new
        pending += sorted(new)
    given = {classes[state] for state in entered if state in classes}
    return {state: answer for state, answer in classes.items() if answer in given}


@dataclass(frozen=True, eq=False)
class Found:
    """What a claim of a look-up names: ids of keys and values, which pair, the blank's id or None."""

    keys: np.ndarray
    values: np.ndarray
    which: str | int
    blank: int | None

    def machine(self, count: int) -> Pairs:
        kinds = np.zeros(count, dtype=np.int64)
        kinds[self.keys] += KEY
        kinds[self.values] += VALUE
        return Pairs(kinds, self.which, -1 if self.blank is None else self.blank)


def read_lookup(claim: dict, names: Names) -> tuple[Found, str]:
    """{"keys": [LETTER], "values": [LETTER], "which": "first" | "last" | "only" | n, "blank": LETTER or null}."""
    which, blank = claim["which"], claim["blank"]
    if which not in ("first", "last", "only"):
        number(which)
    keys, values = (_letters(names, claim[what]) for what in ("keys", "values"))
    place = "the one" if which == "only" else f"the {which}" if isinstance(which, str) else f"number {which}"
    none = "nothing is asked where there is none"
    if blank is not None:
        none = f"{names.said(names.one(blank))!r} where there is none"
    pair = f"of the letters of {names.shown(values)} that stood right after it before"
    says = f"at each of {names.shown(keys)}: {place} {pair}{f', where {ONCE}' * (which == 'only')}; {none}"
    return Found(keys, values, which, None if blank is None else names.one(blank)), says


@dataclass(frozen=True, eq=False)
class Tally:
    """What a claim of a count names: ids of the letters that count and that start it again, and the answers' ids."""

    of: np.ndarray
    since: np.ndarray
    answers: np.ndarray

    def machine(self, count: int) -> States:
        kinds = np.zeros(count, dtype=np.int64)
        kinds[self.of], kinds[self.since] = 1, 2
        here = np.arange(len(self.answers))
        return States(kinds, 0, np.stack([here, np.minimum(here + 1, here[-1]), 0 * here], axis=1), self.answers)


def read_count(claim: dict, names: Names) -> tuple[Tally, str]:
    """{"of": [LETTER], "since": [LETTER], "answers": [LETTER for 0, 1, …]}: the last answer for all larger counts."""
    of, since = (_letters(names, claim[what]) for what in ("of", "since"))
    answers = claim["answers"]
    if not isinstance(answers, list) or not answers:
        raise ValueError("answers is no list of letters")
    if not len(of) or set(of.tolist()) & set(since.tolist()):
        raise ValueError("a letter counts and starts the count again, or none counts")
    behind = f" since the last of {names.shown(since)}" if len(since) else ""
    ids = names.these(answers)
    return Tally(of, since, ids), f"how many of {names.shown(of)} there were{behind}: {_ranges(names, ids)}"


def _ranges(names: Names, answers: np.ndarray) -> str:
    """`no` for 0 to 8, `yes` from 9 on; where each count has its own letter, `0` … `7` for 0 … 7 in turn."""
    starts = [0, *(i for i in range(1, len(answers)) if answers[i] != answers[i - 1]), len(answers)]
    spans, said = [(a, b - 1) for a, b in pairwise(starts)], [names.said(answers[a]) for a in starts[:-1]]
    parts: list[str] = []
    for a, b in runs(said[:-1]):
        single = all(first == last for first, last in spans[a:b])
        if single and b - a > FEW:
            parts.append(f"`{said[a]}` … `{said[b - 1]}` for {spans[a][0]} … {spans[b - 1][0]} in turn")
        else:
            parts += [
                f"`{name}` for {first}" + f" to {last}" * (first < last)
                for name, (first, last) in zip(said[a:b], spans[a:b], strict=True)
            ]
    whole = ", ".join([*parts, f"`{said[-1]}` from {spans[-1][0]} on"])
    if len(whole) <= LONG:
        return whole
    return f"as `answers` of construction.json says ({digest([names.letters[i] for i in answers])} of it)"


def _letters(names: Names, listed: object) -> np.ndarray:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError("letters are listed by their names")
    return np.unique(names.these(listed))


def ends(
    claim: dict, names: Names, says: str, task, needed: np.ndarray | None = None, known: np.ndarray | None = None
) -> Stated:
    """The task with the letter that ends a text, which the claim names; null for none."""
    end = claim["end"]
    if end is not None:
        says = f"{says}; {names.said(names.one(end))!r} ends a text"
    return Stated(task, says, end, known, needed)
