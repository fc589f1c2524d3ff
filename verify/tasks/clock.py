"""Absolute time (paper A, Proposition 1): the answer at position t is t, whatever the tokens are.

Token ids: 0..vocab-1 are input tokens, vocab+i-1 says "position i", the last one "position `horizon` or later".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from verify.arguments import at_least
from verify.tasks.task import Batch, Task


@dataclass(frozen=True)
class Clock(Task):
    """Sequences of `length` tokens out of `vocab`, asked everywhere."""

    vocab: int
    horizon: int
    length: int

    name = "absolute-time"

    def __post_init__(self):
        at_least("vocab", self.vocab, 1, "a sequence needs a token")
        at_least("horizon", self.horizon, 1, "the first position is 1")
        at_least("length", self.length, 1, "a sequence has at least one token")

    def answers(self, length: int) -> list[int]:
        """The right tokens of a sequence of this length."""
        return [self.vocab + (t if t < self.horizon else self.horizon) - 1 for t in range(1, length + 1)]

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Uniform tokens."""
        rows = rng.integers(self.vocab, size=(count, self.length)).tolist()
        return Batch.of((row, self.answers(len(row))) for row in rows)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every string."""
        for tokens in product(range(self.vocab), repeat=self.length):
            yield tokens, self.answers(self.length)

    def exhaustive_count(self) -> int:
        """vocab ** length."""
        return self.vocab**self.length

    def adversarial(self) -> Iterator[Batch]:
        """One token over and over: nothing in the input tells positions apart."""
        for token in range(self.vocab):
            yield Batch.of([([token] * self.length, self.answers(self.length))], f"token {token} only")

    def describe(self) -> str:
        """One line for a report."""
        return f"absolute time up to {self.horizon}, {self.length} tokens out of {self.vocab}"
