"""What a finite automaton answers behind every token: its own table in plain Python.

Token ids: 0 … letters − 1 are the letters, in the order of the table's columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from compiler.language.arguments import counted
from verify.arguments import at_least
from verify.tasks.task import Batch, Task

_STAYS = 0.95  # how often a drawn letter leaves an answer open, where one does
_MOST_STATES = 64  # of which each is gone to, and left, by a hand-made word


@dataclass(frozen=True)
class Recognition(Task):
    """Sequences of `length` letters, asked everywhere.

    following: [state][letter], the next state; answers: for each state the token that is right there.
    """

    following: tuple[tuple[int, ...], ...]
    start: int
    answers: tuple[int, ...]
    length: int

    name = "automaton"

    def __post_init__(self):
        at_least("length", self.length, 1, "a sequence has at least one letter")

    @property
    def letters(self) -> int:
        return len(self.following[0])

    def labels(self, word: Sequence[int]) -> list[int]:
        """The right token behind each letter."""
        state, found = self.start, []
        for letter in word:
            state = self.following[state][letter]
            found.append(self.answers[state])
        return found

    @cached_property
    def _open(self) -> list[list[int]]:
        """For each state the letters behind which more than one answer is still possible; all, where none is."""
        before: list[list[int]] = [[] for _ in self.following]
        for state, row in enumerate(self.following):
            for to in row:
                before[to].append(state)
        # The answer changes at some step from here, or on the way from a state that a letter leads to.
        waiting = [s for s, row in enumerate(self.following) if any(self.answers[to] != self.answers[s] for to in row)]
        alive = set(waiting)
        for state in waiting:
            new = set(before[state]) - alive
            alive |= new
            waiting += new
        kept = [[a for a, to in enumerate(row) if to in alive] for row in self.following]
        return [letters or list(range(self.letters)) for letters in kept]

    def word(self, rng: np.random.Generator, length: int) -> list[int]:
        """Letters at random, most of them such that the answer stays open."""
        state, word = self.start, []
        stays, picks = rng.random(length) < _STAYS, rng.random(length)
        for stay, pick in zip(stays.tolist(), picks.tolist(), strict=True):
            choices = self._open[state] if stay else range(self.letters)
            letter = choices[int(pick * len(choices))]
            state = self.following[state][letter]
            word.append(letter)
        return word

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Half of them uniform, half mostly where answers differ."""
        uniform = rng.integers(self.letters, size=((count + 1) // 2, self.length)).tolist()
        words = uniform + [self.word(rng, self.length) for _ in range(count // 2)]
        return self._labelled(words)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every word."""
        for word in product(range(self.letters), repeat=self.length):
            yield word, self.labels(word)

    def exhaustive_count(self) -> int:
        """letters ** length."""
        return self.letters**self.length

    def adversarial(self) -> Iterator[Batch]:
        """One letter over and over; and each state by a shortest word, then stayed around by each letter in turn."""
        for letter in range(self.letters):
            yield self._labelled([[letter] * self.length], f"letter {letter} only")
        for state, word in list(self._shortest().items())[:_MOST_STATES]:
            rows = []
            for first in range(self.letters):
                turn = [(first + i) % self.letters for i in range(self.letters)]
                rows.append((word + turn * self.length)[: self.length])
            yield self._labelled(rows, f"to state {state}, then letters in turn")

    def _shortest(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {self.start: []}
        waiting = [self.start]
        for state in waiting:
            for letter, to in enumerate(self.following[state]):
                if to not in found:
                    found[to] = [*found[state], letter]
                    waiting.append(to)
        return found

    def _labelled(self, rows: list[list[int]], case: str = "") -> Batch:
        return Batch.of(((row, self.labels(row)) for row in rows), case)

    def describe(self) -> str:
        """One line for a report."""
        letters = counted(self.length, "letter")
        states = counted(len(self.following), "state")
        return f"a finite automaton of {states}, sequences of {letters}, alphabet of {self.letters}"
