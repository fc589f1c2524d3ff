"""Edit distance and longest common subsequence of two words, table by rows; copying a word.

A table is written with its borders: row r of the first word holds entries 0 … n of the second one, rows end with `;`,
the last with `.`; its last number is the answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from verify.tasks.chain import Solver


def words(letters: Sequence[str], longest: int) -> Iterator[tuple[str, ...]]:
    """Every word of at most `longest` letters, short ones first."""
    for length in range(longest + 1):
        yield from product(letters, repeat=length)


def number_of_words(letters: int, longest: int) -> int:
    return sum(letters**length for length in range(longest + 1))


def drawn_word(rng: np.random.Generator, letters: Sequence[str], longest: int) -> tuple[str, ...]:
    """A word of a random length, longer ones more often."""
    length = max(rng.integers(longest + 1), rng.integers(longest + 1))
    return tuple(letters[i] for i in rng.integers(len(letters), size=length))


class TwoWords(Solver):
    """Prompts `a b | b c ;` of two words of at most `length` letters."""

    def __init__(self, length: int, letters: Sequence[str]):
        self.length, self.letters = length, tuple(letters)

    @abstractmethod
    def table(self, first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
        """Rows 0 … m of entries 0 … n."""

    def chain(self, prompt: Sequence[str]) -> list[str]:
        text = " ".join(prompt)
        first, second = text.removesuffix(";").split("|")
        rows = self.table(first.split(), second.split())
        return (" ; ".join(" ".join(map(str, row)) for row in rows) + " .").split()

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for first in words(self.letters, self.length):
            for second in words(self.letters, self.length):
                yield (*first, "|", *second, ";")

    def count(self) -> int:
        return number_of_words(len(self.letters), self.length) ** 2

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        first = drawn_word(rng, self.letters, self.length)
        if rng.random() < 0.5:
            return (*first, "|", *drawn_word(rng, self.letters, self.length), ";")
        return (*first, "|", *self._changed(rng, first), ";")

    def _changed(self, rng: np.random.Generator, word: tuple[str, ...]) -> tuple[str, ...]:
        """The word with a few letters dropped, changed or put in: pairs that are close to each other."""
        second = list(word)
        for _ in range(int(rng.integers(1 + max(1, self.length // 4)))):
            place = int(rng.integers(len(second) + 1))
            second[place : place + int(rng.integers(2))] = [
                self.letters[i] for i in rng.integers(len(self.letters), size=rng.integers(2))
            ]
        return tuple(second[: self.length])

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        a, z = self.letters[0], self.letters[-1]
        full, other = (a,) * self.length, (z,) * self.length
        yield "two empty words", ("|", ";")
        yield "the first word empty", ("|", *full, ";")
        yield "the second word empty", (*full, "|", ";")
        yield "equal words, all letters alike", (*full, "|", *full, ";")
        yield "no letter in common", (*full, "|", *other, ";")
        mixed = tuple(self.letters[i % len(self.letters)] for i in range(self.length))
        yield "one word is the other reversed", (*mixed, "|", *reversed(mixed), ";")
        yield "one word is the other moved by one", (*mixed, "|", *mixed[1:], a, ";")

    def describe(self) -> str:
        return f"{self.name} of two words of at most {self.length} letters over {len(self.letters)}"


class EditDistanceSolver(TwoWords):
    """The least number of letters put in, dropped or changed that makes one word the other (Wagner and Fischer)."""

    name = "edit-distance"

    def table(self, first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
        rows = [list(range(len(second) + 1))]
        for r, a in enumerate(first, start=1):
            row = [r]
            for c, b in enumerate(second, start=1):
                row.append(min(rows[-1][c] + 1, row[-1] + 1, rows[-1][c - 1] + (a != b)))
            rows.append(row)
        return rows


class LongestCommonSubsequenceSolver(TwoWords):
    """The length of the longest word that is left over from both words when letters are dropped."""

    name = "lcs"

    def table(self, first: Sequence[str], second: Sequence[str]) -> list[list[int]]:
        rows = [[0] * (len(second) + 1)]
        for a in first:
            row = [0]
            for c, b in enumerate(second, start=1):
                row.append(rows[-1][c - 1] + 1 if a == b else max(rows[-1][c], row[-1]))
            rows.append(row)
        return rows
