"""Tasks of a few general forms, which the checker proves: a finite automaton, a look-up, a count.

Each is a plain Python function from the tokens so far to the token that must come next (None: nobody asks), so it can
be given as the task of a circuit; its `claim` states the same for the checker, which has a program of its own for it
(`verify/checker/tasks/task_forms.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compiler.language.arguments import counted


@dataclass(frozen=True)
class Automaton:
    """A finite automaton over the tokens: the answer belongs to the state in which it is.

    transitions: for each state the next one by token; answers: the token that is right in a state, at every position
    behind the first token; a state without one asks nothing. A token that a state does not lead on by asks nothing from
    there on. ValueError for a state that has neither transitions nor an answer, as a misspelt one has.
    """

    start: str
    transitions: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, str]

    def __post_init__(self) -> None:
        states = {self.start, *self.transitions, *(to for by in self.transitions.values() for to in by.values())}
        for name in (self.start, *self.answers, *states):
            if not isinstance(name, str):
                raise TypeError(f"the state {name!r} of an automaton is no text; states are named by texts")
        odd = sorted(set(self.answers) - states)
        if odd:
            raise ValueError(f"the automaton answers in state {odd[0]!r}, which no transition names")
        idle = sorted(states - set(self.transitions) - set(self.answers))
        if idle:
            raise ValueError(
                f"the automaton has a state {idle[0]!r} with neither transitions nor an answer; give it a row of "
                "transitions, {} where it has none, or leave out what leads there"
            )

    @property
    def tokens(self) -> list[str]:
        """The tokens that it reads."""
        return list(dict.fromkeys(token for by in self.transitions.values() for token in by))

    @property
    def __name__(self) -> str:
        return f"automaton of {counted(len(self.transitions), 'state')}"

    def __call__(self, tokens: Sequence[str]) -> str | None:
        state = self.start
        for token in tokens:
            if token not in self.transitions.get(state, {}):
                return None
            state = self.transitions[state][token]
        return self.answers.get(state)

    @property
    def claim(self) -> dict[str, Any]:
        """The same as the manifest states it, in the words that the checker reads."""
        transitions = {state: dict(by) for state, by in self.transitions.items()}
        return {"name": "automaton", "start": self.start, "transitions": transitions, "classes": dict(self.answers)}


@dataclass(frozen=True)
class Lookup:
    """At a key: the value that stood right after an earlier occurrence of it.

    A pair is a value right after a key. which: "first" or "last" of the pairs with this key, "only" (asked where there
    is exactly one), or n for the n-th of them, from 1 on. blank: the answer where there is no such pair; None: nobody
    asks there. An n-th value can be proved only where no sequence of the language holds more than 12 pairs; elsewhere
    it is asked of the sequences that are run.
    """

    keys: Sequence[str]
    values: Sequence[str]
    which: Literal["first", "last", "only"] | int = "last"
    blank: str | None = None

    def __post_init__(self) -> None:
        number = type(self.which) is int and self.which >= 1
        if not number and self.which not in ("first", "last", "only"):
            raise ValueError(f'which = {self.which!r}, and it must be "first", "last", "only" or a number from 1 on')

    @property
    def tokens(self) -> list[str]:
        """The tokens that it reads."""
        return list(dict.fromkeys((*self.keys, *self.values)))

    @property
    def __name__(self) -> str:
        return f"look-up of the {self.which} value" if isinstance(self.which, str) else f"look-up of value {self.which}"

    def __call__(self, tokens: Sequence[str]) -> str | None:
        asked = tokens[-1]
        if asked not in self.keys:
            return None
        found = [b for a, b in zip(tokens, tokens[1:]) if a == asked and b in self.values]
        if self.which == "only" and len(found) > 1:
            return None
        place = self.which - 1 if isinstance(self.which, int) else len(found) - 1 if self.which == "last" else 0
        return found[place] if 0 <= place < len(found) else self.blank

    @property
    def claim(self) -> dict[str, Any]:
        """The same as the manifest states it, in the words that the checker reads."""
        said = {"name": "lookup", "keys": list(self.keys), "values": list(self.values), "which": self.which}
        return said | {"blank": self.blank}


@dataclass(frozen=True)
class Counted:
    """How many tokens of a set there were since the last token of another set, as one of `answers`.

    of: the tokens that count; since: those that start the count again at 0 ([]: none, the whole text counts);
    answers: the token for 0, 1, 2, …; the last one also for all larger counts.
    """

    of: Sequence[str]
    answers: Sequence[str]
    since: Sequence[str] = ()

    def __post_init__(self) -> None:
        both = sorted(set(self.of) & set(self.since))
        if both:
            raise ValueError(f"the token {both[0]!r} counts and starts the count again; it can do one of these")
        if not self.of or not self.answers:
            raise ValueError("a count needs a token that counts (of) and an answer (answers)")

    @classmethod
    def at_least(cls, n: int, of: Sequence[str], yes: str, no: str, since: Sequence[str] = ()) -> Counted:
        """Whether there were n or more: `yes`, or else `no`."""
        if type(n) is not int or not 1 <= n <= 1 << 16:
            raise ValueError(f"n = {n!r}, and a count is compared with a number from 1 to {1 << 16}")
        return cls(of, [no] * n + [yes], since)

    @property
    def __name__(self) -> str:
        return f"count of {' '.join(self.of)}"

    def __call__(self, tokens: Sequence[str]) -> str:
        count = 0
        for token in tokens:
            count = 0 if token in self.since else count + (token in self.of)
        return self.answers[min(count, len(self.answers) - 1)]

    @property
    def claim(self) -> dict[str, Any]:
        """The same as the manifest states it, in the words that the checker reads."""
        said = {"of": list(self.of), "since": list(self.since), "answers": list(self.answers)}
        return {"name": "count"} | said
