"""Induction heads: after which token did the present one stand the last time? (paper A, Apps. C.2, D.4)

Token ids: 0 is the blank, which only answers hold, 1..vocab are the tokens v0.. of the input.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product

import numpy as np

from verify.arguments import at_least, at_most
from verify.tasks.task import Batch, Task

BLANK = 0


def induction_oracle(tokens: Sequence[int]) -> list[int]:
    """y_t = x_{j+1} for the latest j < t with x_j = x_t, BLANK where there is none; a walk backwards from every t."""
    answers = []
    for t, token in enumerate(tokens):
        earlier = [j for j in range(t) if tokens[j] == token]
        answers.append(tokens[earlier[-1] + 1] if earlier else BLANK)
    return answers


@dataclass(frozen=True)
class Induction(Task):
    """Sequences of `length` tokens out of `vocab`, asked at every position.

    hard: the share of sequences in the hard setting of App. D.4 (the paper's p): one special token stands at the
        positions r and length - r only, r uniform in 1 .. gamma * length, so that the answer lies far back.
    gamma: the paper's special range ratio (there at most 0.1).
    """

    vocab: int
    length: int
    hard: float = 0.75
    gamma: float = 0.1

    name = "induction-heads"

    def __post_init__(self):
        at_least("vocab", self.vocab, 1, "a sequence needs a token")
        at_least("length", self.length, 1, "a sequence has at least one token")
        at_least("hard", self.hard, 0, "it is a probability")
        at_most("hard", self.hard, 1, "it is a probability")
        at_least("gamma", self.gamma, 0, "it is a share of the length")
        at_most("gamma", self.gamma, 0.25, "the special token stands near both ends")

    @property
    def tokens(self) -> range:
        """Token ids of the input."""
        return range(1, self.vocab + 1)

    @property
    def reach(self) -> int:
        """The largest r of the hard setting; 0 where the sequences are too short or too poor for it."""
        return int(self.gamma * self.length) if self.vocab > 1 else 0

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Uniform tokens; in the hard setting the special token is drawn again wherever it is not placed."""
        tokens = rng.integers(1, self.vocab + 1, size=(count, self.length))
        special = rng.integers(1, self.vocab + 1, size=count)
        is_hard = rng.random(count) < self.hard
        others = rng.integers(1, max(2, self.vocab), size=(count, self.length))
        at = rng.integers(1, self.reach + 1, size=count) if self.reach else np.zeros(count, dtype=np.int64)
        for i in np.flatnonzero(is_hard if self.reach else np.zeros(count, dtype=bool)):
            row = others[i] + (others[i] >= special[i])  # uniform over the tokens but the special one
            row[[at[i] - 1, self.length - at[i] - 1]] = special[i]
            tokens[i] = row
        return Batch.of((row, induction_oracle(row)) for row in tokens.tolist())

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every string of tokens."""
        for tokens in product(self.tokens, repeat=self.length):
            yield tokens, induction_oracle(tokens)

    def exhaustive_count(self) -> int:
        """vocab ** length."""
        return self.vocab**self.length

    def adversarial(self) -> Iterator[Batch]:
        """What goes wrong with fading memories, wrong resets, codes that contain each other, and the first position."""
        first, last = self.tokens[0], self.tokens[-1]
        everything = list(self.tokens)
        patterns = {
            "one token only": [first],
            "the token with the longest code only": [last],
            "two tokens in turn": [first, last],
            "every token in order": everything,
            "every token in order and back": everything + everything[::-1],
            "each token twice": [token for token in everything for _ in range(2)],
            "rebound at every turn": [token for other in everything for token in (first, other)],
        }
        rows = {case: list(islice(cycle(pattern), self.length)) for case, pattern in patterns.items()}
        rows["first token again at the very end"] = self._far_apart()
        for case, tokens in rows.items():
            yield Batch.of([(tokens, induction_oracle(tokens))], case)

    def _far_apart(self) -> list[int]:
        """The special token at both ends, all else between."""
        between = list(islice(cycle(list(self.tokens)[1:] or [self.tokens[0]]), max(0, self.length - 2)))
        return ([self.tokens[0], *between, self.tokens[0]])[: self.length]

    def describe(self) -> str:
        """One line for a report."""
        share = f"{self.hard:.0%} in the hard setting (r up to {self.reach})" if self.reach else "standard setting"
        return f"induction heads, {self.length} tokens out of {self.vocab}, {share}"
