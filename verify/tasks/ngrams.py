"""Copying by n-grams, with the answers that the rule itself gives: what most often stood behind the context so far.

Written, by counting, from what the text below paper D's Theorem D.2 says of the proof of Theorem 3.1; it shares no code
with any circuit. Where a context has two continuations the rule is not the copy, and here the answers are the rule's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from verify.tasks.task import IGNORED, Batch, Task

BEGIN, BAR, END, FIRST = 0, 1, 2, 3  # token ids; FIRST + v is the v-th of those that are copied


@dataclass(frozen=True)
class NgramLookup(Task):
    """`^ x_1 … x_N |` and x_1 … x_N again: asked from `|` on, where one follower of the context leads the others.

    n: tokens of a context; vocab: how many there are to copy; word: N.
    """

    n: int
    vocab: int
    word: int

    name = "n-gram lookup"

    @property
    def length(self) -> int:  # type: ignore[override]
        return 2 * self.word + 2

    def labels(self, tokens: Sequence[int]) -> list[int]:
        """By counting: a context is the last n tokens, or all since `^` or `|` where these are fewer."""
        followed: dict[tuple[int, ...], Counter[int]] = {}
        context: tuple[int, ...] = (BEGIN,)
        out = [IGNORED]
        for t, token in enumerate(tokens[1:], start=1):
            followed.setdefault(context, Counter())[token] += 1
            context = (BEGIN,) if token == BAR else (*context, token)[-self.n :]
            out.append(self._leading(followed.get(context, Counter())) if t > self.word else IGNORED)
        return out

    @staticmethod
    def _leading(counts: Counter[int]) -> int:
        """The one follower that was seen most often; IGNORED where two lead, or none was seen."""
        most = [token for token, count in counts.items() if count == max(counts.values())]
        return IGNORED if len(most) != 1 else END if most == [BAR] else most[0]

    def _row(self, word: Sequence[int]) -> tuple[list[int], list[int]]:
        copied = [FIRST + v for v in word]
        tokens = [BEGIN, *copied, BAR, *copied]
        return tokens, self.labels(tokens)

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Uniform words; every second one has no n-gram twice, where there are enough of them."""
        distinct = self.word <= self.vocab**self.n
        return Batch.of(
            self._row(
                self.without_repeats(rng) if distinct and i % 2 else rng.integers(self.vocab, size=self.word).tolist()
            )
            for i in range(count)
        )

    def without_repeats(self, rng: np.random.Generator) -> list[int]:
        """Of a random walk over all n-grams that takes each once (Hierholzer); N + n − 1 would do, and N are taken."""
        left = {node: rng.permutation(self.vocab).tolist() for node in product(range(self.vocab), repeat=self.n - 1)}
        stack: list[tuple[tuple[int, ...], int]] = [((0,) * (self.n - 1), -1)]
        walk: list[int] = []
        while stack:
            node, taken = stack[-1]
            if left[node]:
                token = left[node].pop()
                stack.append(((*node, token)[1:], token))
            else:
                walk.append(taken)
                stack.pop()
        return walk[-2::-1][: self.word]

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for word in product(range(self.vocab), repeat=self.word):
            yield self._row(word)

    def exhaustive_count(self) -> int:
        return self.vocab**self.word

    def adversarial(self) -> Iterator[Batch]:
        last = self.vocab - 1
        words = {
            "all alike": [last] * self.word,
            "tokens in turn": [i % self.vocab for i in range(self.word)],
            "one other token at the start": [0, *[last] * (self.word - 1)],
            "one other token at the end": [*[last] * (self.word - 1), 0],
        }
        for case, word in words.items():
            yield Batch.of([self._row(word)], case)

    def describe(self) -> str:
        return f"what {self.n} tokens were followed by, words of {self.word} out of {self.vocab}"
