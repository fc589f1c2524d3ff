"""KEEP n-th (paper A, Corollary 2, App. D.2): at every position from n on, which token stood at n?

Token ids: 0..vocab-1 are the tokens v0...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from verify.arguments import at_least
from verify.tasks.task import IGNORED, Batch, Task


def keep_oracle(tokens: Sequence[int], n: int) -> list[int]:
    """IGNORED before position n (the first position is 1), then the token that stood there."""
    return [tokens[n - 1] if t >= n else IGNORED for t in range(1, len(tokens) + 1)]


@dataclass(frozen=True)
class Keep(Task):
    """Sequences of `length` uniform tokens out of `vocab`, asked from position `n` on."""

    n: int
    vocab: int
    length: int

    name = "keep-nth"

    def __post_init__(self):
        at_least("n", self.n, 1, "the first position is 1")
        at_least("vocab", self.vocab, 1, "a sequence needs a token")
        at_least("length", self.length, self.n, f"the token at n = {self.n} must be there")

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Uniform tokens."""
        tokens = rng.integers(self.vocab, size=(count, self.length))
        return self._labelled(tokens.tolist())

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every string."""
        for tokens in product(range(self.vocab), repeat=self.length):
            yield tokens, keep_oracle(tokens, self.n)

    def exhaustive_count(self) -> int:
        """vocab ** length."""
        return self.vocab**self.length

    def adversarial(self) -> Iterator[Batch]:
        """The kept token alone among others, one position early or late, and every token kept once."""
        first, last = 0, self.vocab - 1
        for case, at in {"kept": self.n, "one too early": self.n - 1, "one too late": self.n + 1}.items():
            row = [last if t == at else first for t in range(1, self.length + 1)]
            yield self._labelled([row], f"another token at position n: {case}")
        counting = [[(t + shift) % self.vocab for t in range(self.length)] for shift in range(self.vocab)]
        yield self._labelled(counting, "every token kept, a different one after it")

    def _labelled(self, rows: list[list[int]], case: str = "") -> Batch:
        return Batch.of(((row, keep_oracle(row, self.n)) for row in rows), case)

    def describe(self) -> str:
        """One line for a report."""
        return f"KEEP n-th, n = {self.n}, {self.length} tokens out of {self.vocab}"
