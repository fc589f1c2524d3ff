"""Sequences of an input language without answers: what a model is run on to be compared with the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compiler.language.input_language import InputLanguage
from compiler.language.language_said import unchecked_words
from verify.tasks.task import IGNORED, Batch, Task

_LONGEST_WALK = 64
_SHORT_STRINGS = 1024  # of one length, at most
_TRIES = 32


class Walks(Task):
    """Random walks of an input language, and as hand-made cases all of its short strings, length by length.

    Walks are as long as the language allows, up to 64 tokens: where it has none so long, half as long, and so on.
    """

    name = "walks"

    def __init__(self, language: InputLanguage):
        self.language = language
        self.length = min(language.max_length, _LONGEST_WALK)
        while self.length > 1 and not self._lasts():
            self.length //= 2

    def describe(self) -> str:
        called = unchecked_words(self.language.description)
        return f"short strings and random walks of the input language ({called}), against the interpreter"

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        seeds = (int(rng.integers(2**62)) for _ in range(count))
        rows = [self.language.sample(1, self.length, seed)[0].tolist() for seed in seeds]
        return _unasked(rows)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for string in self.language.strings(self.length):
            yield string, (IGNORED,) * self.length

    def exhaustive_count(self) -> int:
        """A bound: every path of the language, which is as many as there are strings where each is spelled by one."""
        ways = {self.language.start: 1}
        for _ in range(self.length):
            after: dict[str, int] = {}
            for edge in self.language.edges:
                if ways.get(edge.source):
                    after[edge.target] = after.get(edge.target, 0) + ways[edge.source] * len(edge.tokens)
            ways = after
        return min(sum(ways.values()), 2**62)

    def adversarial(self) -> Iterator[Batch]:
        """Every string of 1, 2, … tokens, as long as there are at most 1,024 of that length."""
        for length, strings in enumerate(self.language.short_strings(self.length, _SHORT_STRINGS), start=1):
            yield _unasked(strings, f"all strings of {length} tokens")

    def _lasts(self) -> bool:
        try:
            self.language.sample(_TRIES, self.length, seed=0)
        except ValueError:
            return False
        return True


def _unasked(rows: Sequence[Sequence[int]], case: str = "") -> Batch:
    tokens = np.array(rows, dtype=np.int64)
    return Batch(tokens, np.full(tokens.shape, IGNORED), case)
