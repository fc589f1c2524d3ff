"""Phonebook look-up, with answers of several tokens, and selective copying: noise is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import comb

import numpy as np

from verify.tasks.chain import Solver
from verify.tasks.solvers.words import number_of_words, words

DIGITS = tuple("0123456789")


class PhonebookSolver(Solver):
    """Prompts `n1 4 1 ; n0 7 ; ? n1` of at most `entries` entries with distinct names and numbers of 1 to `digits`
    digits.
    """

    name = "phonebook"

    def __init__(self, names: int, entries: int, digits: int):
        self.names, self.entries, self.digits = tuple(f"n{i}" for i in range(names)), entries, digits

    def chain(self, prompt: Sequence[str]) -> list[str]:
        book, asked = " ".join(prompt).split("?")
        for entry in book.split(";"):
            name, *number = entry.split() or [""]
            if name == asked.strip():
                return [*number, "."]
        return ["."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        numbers = [word for word in words(DIGITS, self.digits) if word]
        for size in range(self.entries + 1):
            for names in permutations(self.names, size):
                for chosen in product(numbers, repeat=size):
                    for asked in self.names:
                        yield self._prompt(names, chosen, asked)

    def count(self) -> int:
        total, ways = 0, 1
        for size in range(self.entries + 1):
            total += ways
            ways *= (len(self.names) - size) * (number_of_words(10, self.digits) - 1)
        return total * len(self.names)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        size = int(rng.integers(self.entries + 1))
        names = [self.names[i] for i in rng.permutation(len(self.names))[:size]]
        numbers = [[DIGITS[d] for d in rng.integers(10, size=rng.integers(1, self.digits + 1))] for _ in names]
        asked = names[rng.integers(size)] if size and rng.random() < 0.9 else self.names[rng.integers(len(self.names))]
        return self._prompt(names, numbers, asked)

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        names, full = self.names[: self.entries], [("9",) * self.digits] * self.entries
        yield "an empty book", self._prompt((), (), names[0])
        yield "the first of a full book", self._prompt(names, full, names[0])
        yield "the last of a full book", self._prompt(names, full, names[-1])
        yield "a name that is not there", self._prompt(names[1:], full[1:], names[0])
        yield "numbers of one digit", self._prompt(names, [("0",)] * len(names), names[-1])

    def describe(self) -> str:
        return (
            f"phonebooks of at most {self.entries} of {len(self.names)} names, numbers of at most {self.digits} digits"
        )

    def _prompt(self, names: Sequence[str], numbers: Sequence[Sequence[str]], asked: str) -> tuple[str, ...]:
        book = [token for name, number in zip(names, numbers, strict=True) for token in (name, *number, ";")]
        return (*book, "?", asked)


class SelectiveCopySolver(Solver):
    """Prompts of tokens with noise `_` between them: `_ x1 _ x0 |` is answered `x1 x0 .`."""

    name = "selective-copy"

    def __init__(self, longest: int, kept: int, letters: Sequence[str]):
        self.longest, self.kept, self.letters = longest, kept, tuple(letters)

    def chain(self, prompt: Sequence[str]) -> list[str]:
        return [*(name for name in prompt if name not in ("_", "|")), "."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for length in range(self.longest + 1):
            for word in self._words(length, self.kept):
                yield (*word, "|")

    def count(self) -> int:
        """Σ over lengths L and tokens k of (L choose k)·V^k."""
        return sum(
            comb(length, k) * len(self.letters) ** k
            for length in range(self.longest + 1)
            for k in range(min(length, self.kept) + 1)
        )

    def _words(self, length: int, kept: int) -> Iterator[tuple[str, ...]]:
        """Those of this length with so many tokens at most, noise first; with all other words they would be V^L."""
        if not length:
            yield ()
            return
        for name in ("_", *self.letters) if kept else ("_",):
            for rest in self._words(length - 1, kept - (name != "_")):
                yield (name, *rest)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        word = ["_"] * self.longest
        for place in rng.permutation(self.longest)[: int(rng.integers(self.kept + 1))]:
            word[place] = self.letters[rng.integers(len(self.letters))]
        return (*word, "|")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        noise, full = ("_",) * (self.longest - self.kept), (self.letters[-1],) * self.kept
        yield "nothing at all", ("|",)
        yield "noise only", (*("_",) * self.longest, "|")
        yield "all noise first", (*noise, *full, "|")
        yield "all noise last", (*full, *noise, "|")

    def describe(self) -> str:
        return f"at most {self.kept} of {len(self.letters)} tokens among {self.longest} positions of noise"
