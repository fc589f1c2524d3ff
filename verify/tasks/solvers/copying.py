"""Copying a string behind a separator (Jelassi et al.'s task): `x1 x0 |` is answered `x1 x0 .`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from verify.tasks.chain import Solver
from verify.tasks.solvers.words import drawn_word, number_of_words, words


class CopySolver(Solver):
    """Strings of at most `longest` of the letters."""

    name = "copy"

    def __init__(self, longest: int, letters: Sequence[str]):
        self.longest, self.letters = longest, tuple(letters)

    def chain(self, prompt: Sequence[str]) -> list[str]:
        return [*prompt[: list(prompt).index("|")], "."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for word in words(self.letters, self.longest):
            yield (*word, "|")

    def count(self) -> int:
        return number_of_words(len(self.letters), self.longest)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        return (*drawn_word(rng, self.letters, self.longest), "|")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        turns = tuple(self.letters[i % len(self.letters)] for i in range(self.longest))
        yield "nothing to copy", ("|",)
        yield "one token", (self.letters[-1], "|")
        yield "as long as it may be, all alike", (*(self.letters[-1],) * self.longest, "|")
        yield "as long as it may be, tokens in turn", (*turns, "|")

    def describe(self) -> str:
        return f"copies of at most {self.longest} tokens over {len(self.letters)}"
