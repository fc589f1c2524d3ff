"""Longest increasing subsequence and maximum subarray of a list of numbers, an entry of the table for each number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from verify.tasks.chain import Solver
from verify.tasks.solvers.words import drawn_word, number_of_words, words


class NumberList(Solver):
    """Prompts `3 1 2 ;` of at most `length` numbers among `values`."""

    def __init__(self, length: int, values: Sequence[int]):
        self.length, self.values = length, tuple(values)
        self.names = tuple(map(str, values))

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for word in words(self.names, self.length):
            yield (*word, ";")

    def count(self) -> int:
        return number_of_words(len(self.names), self.length)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        word = drawn_word(rng, self.names, self.length)
        return (*(sorted(word, key=int) if rng.random() < 0.1 else word), ";")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        rising = sorted(self.names[i % len(self.names)] for i in range(self.length))
        rising.sort(key=int)
        yield "no number", (";",)
        yield "one number", (self.names[-1], ";")
        yield "as long as it may be, rising", (*rising, ";")
        yield "as long as it may be, falling", (*reversed(rising), ";")
        yield "the largest throughout", (*[self.names[-1]] * self.length, ";")
        yield "the smallest throughout", (*[self.names[0]] * self.length, ";")
        yield "the largest and the smallest in turn", (*[self.names[-(i % 2)] for i in range(self.length)], ";")

    def describe(self) -> str:
        return f"{self.name} of at most {self.length} numbers from {self.values[0]} to {self.values[-1]}"


class LongestIncreasingSubsequenceSolver(NumberList):
    """For each number the longest strictly increasing subsequence that ends there; then the longest of all."""

    name = "lis"

    def chain(self, prompt: Sequence[str]) -> list[str]:
        numbers = [int(name) for name in prompt[:-1]]
        ends: list[int] = []
        for i, x in enumerate(numbers):
            ends.append(1 + max((ends[j] for j in range(i) if numbers[j] < x), default=0))
        return [*map(str, ends), str(max(ends, default=0)), "."]


class MaximumSubarraySolver(NumberList):
    """For each number the largest sum of numbers in a row that ends there, 0 where none is above it.

    Then the largest of all.
    """

    name = "max-subarray"

    def chain(self, prompt: Sequence[str]) -> list[str]:
        numbers = [int(name) for name in prompt[:-1]]
        ends = [max(0, *(sum(numbers[j : i + 1]) for j in range(i + 1))) for i in range(len(numbers))]
        return [*map(str, ends), str(max(ends, default=0)), "."]
