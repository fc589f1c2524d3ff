"""Answers as a step function in plain Python, and the table of its states where they are few enough for a proof."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.language.input_language import InputLanguage
from verify.tasks.forms import Automaton

_MOST_STATES = 1000  # of a table: the checker takes 4,096, and minutes for some of them


@dataclass(frozen=True)
class Machine:
    """start: what is remembered before the first token; step: (remembered, token) → remembered; answer: of what is
    remembered, the token that is right behind the last one (None: nobody asks).
    """

    start: Hashable
    step: Callable[[Any, str], Hashable]
    answer: Callable[[Any], str | None]

    def __call__(self, tokens: Sequence[str]) -> str | None:
        state = self.start
        for token in tokens:
            state = self.step(state, token)
        return self.answer(state)

    def answers(self, tokens: Sequence[str]) -> list[str | None]:
        """What is right behind each token."""
        state, found = self.start, []
        for token in tokens:
            state = self.step(state, token)
            found.append(self.answer(state))
        return found

    def over(self, language: InputLanguage) -> Automaton | None:
        """The same as a table, which the checker can read; None where it has too many states.

        Only what sequences of the language lead to is in it: along its edges, as many tokens as it promises.
        """
        transitions: dict[str, dict[str, str]] = {}
        names: dict[Hashable, str] = {self.start: "0"}
        seen = {(language.start, self.start)}
        front = list(seen)
        for _ in range(language.max_length):
            ahead = []
            for place, state in front:
                for edge in (edge for edge in language.edges if edge.source == place):
                    for token in (language.alphabet.tokens[i] for i in sorted(edge.tokens)):
                        after = self.step(state, token)
                        name = names.setdefault(after, str(len(names)))
                        transitions.setdefault(names[state], {})[token] = name
                        if (edge.target, after) not in seen:
                            seen.add((edge.target, after))
                            ahead.append((edge.target, after))
                if len(names) > _MOST_STATES:
                    return None
            if not ahead:
                break
            front = ahead
        entered = {name for by in transitions.values() for name in by.values()}  # the start may never be
        told = ((name, self.answer(state)) for state, name in names.items() if name in entered)
        answers = {name: said for name, said in told if said is not None}
        return Automaton("0", transitions, answers)
