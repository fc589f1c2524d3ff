"""COPY at every position: the token n places back, at the place that a pointer names, or that each token names itself.

Token ids: 0 and 1 are the separator and the end, 2 + v is token v, then come the tokens that name places: pointers
2 + V + (p − 1), or pairs 2 + V + v·n + (p − 1) of a token with the place (from 1 on) that it asks for. Where there is
nothing to copy the end is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from verify.tasks.task import IGNORED, Batch, Task

NOTHING, FIRST = 1, 2


@dataclass(frozen=True)
class CopyAt(Task):
    """Sequences of `length` tokens; pointers come behind the text, which has half of the length."""

    form: Literal["delay", "pointer", "place"]
    n: int
    vocab: int
    length: int

    name = "copy"

    def answers(self, tokens: Sequence[int]) -> list[int]:
        """By looking up each position."""
        if self.form == "delay":
            return [tokens[i - self.n] if i >= self.n else NOTHING for i in range(len(tokens))]
        after = FIRST + self.vocab
        if self.form == "place":
            text = [FIRST + (t - after) // self.n for t in tokens]
            asked = [(t - after) % self.n for t in tokens]
            return [text[p] if p <= i else NOTHING for i, p in enumerate(asked)]
        text = [t for t in tokens if t < after]
        return [IGNORED if t < after else text[t - after] if t - after < len(text) else NOTHING for t in tokens]

    def _choices(self) -> list[range]:
        """The tokens that each position may hold."""
        values, after = range(FIRST, FIRST + self.vocab), FIRST + self.vocab
        if self.form == "delay":
            return [values] * self.length
        if self.form == "place":
            return [range(after, after + self.n * self.vocab)] * self.length
        text = min(self.n, self.length // 2)
        return [values] * text + [range(after, after + self.n)] * (self.length - text)

    def _labelled(self, rows: Sequence[Sequence[int]], case: str = "") -> Batch:
        return Batch.of([(row, self.answers(row)) for row in rows], case)

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        columns = [rng.integers(choice.start, choice.stop, size=count) for choice in self._choices()]
        return self._labelled(np.stack(columns, axis=1).tolist())

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for row in product(*self._choices()):
            yield row, self.answers(row)

    def exhaustive_count(self) -> int:
        total = 1
        for choice in self._choices():
            total *= len(choice)
        return total

    def adversarial(self) -> Iterator[Batch]:
        choices = self._choices()
        yield self._labelled([[choice[0] for choice in choices]], "the first token everywhere")
        yield self._labelled([[choice[-1] for choice in choices]], "the last token everywhere")
        yield self._labelled([[c[i % len(c)] for i, c in enumerate(choices)]], "tokens and places in turn")
        if self.form == "pointer":
            after = FIRST + self.vocab
            yield self._labelled([[FIRST, after + self.n - 1, after]], "a place that holds nothing")

    def describe(self) -> str:
        return f"COPY ({self.form}), n = {self.n}, {self.vocab} tokens, sequences of {self.length}"
