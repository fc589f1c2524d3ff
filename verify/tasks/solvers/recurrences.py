"""Sequences whose entries come from the last few: Fibonacci numbers mod q, the fewest coins of an amount, and problems
of one's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from compiler.language.arguments import shown, spanned
from verify.arguments import Given, run_own, whole
from verify.tasks.chain import Solver


class Counted(Solver):
    """Prompts `n ;` for n up to `terms`; entries 0 … n."""

    def __init__(self, terms: int):
        self.terms = terms

    @abstractmethod
    def entries(self, last: int) -> list[str]:
        """Entries 0 … last."""

    def chain(self, prompt: Sequence[str]) -> list[str]:
        return [*self.entries(int(prompt[0])), "."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for n in range(self.terms + 1):
            yield str(n), ";"

    def count(self) -> int:
        return self.terms + 1

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        return str(rng.integers(self.terms + 1)), ";"

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "nothing but the first entry", ("0", ";")
        yield "as long as it may be", (str(self.terms), ";")

    def describe(self) -> str:
        return f"{self.name}, entries 0 to at most {self.terms}"


class FibonacciSolver(Counted):
    """F(0) = 0, F(1) = 1, F(n) = F(n − 1) + F(n − 2), mod q."""

    name = "fibonacci"

    def __init__(self, terms: int, modulus: int):
        super().__init__(terms)
        self.modulus = modulus

    def entries(self, last: int) -> list[str]:
        a, b, found = 0, 1, []
        for _ in range(last + 1):
            found.append(str(a % self.modulus))
            a, b = b, a + b
        return found


class CoinChangeSolver(Counted):
    """The fewest coins that make 0, 1, …, n; `-` where none do. By breadth: amounts that one coin more reaches."""

    name = "coin-change"

    def __init__(self, terms: int, coins: Sequence[int]):
        super().__init__(terms)
        self.coins = tuple(coins)

    def entries(self, last: int) -> list[str]:
        fewest, reached, coins = {0: 0}, {0}, 0
        while reached:
            coins += 1
            reached = {a + c for a in reached for c in self.coins if a + c <= last} - fewest.keys()
            fewest |= dict.fromkeys(reached, coins)
        return [str(fewest[a]) if a in fewest else "-" for a in range(last + 1)]


class LocalSolver(Counted):
    """problem: has name, reach, terms, largest, missing and plain(index, values)."""

    def __init__(self, problem: Any):
        super().__init__(problem.terms)
        self.problem, self.name = problem, problem.name

    def entries(self, last: int) -> list[str]:
        return _entries(self.problem, last + 1, lambda index: ())


class LocalSolverOnLetters(Solver):
    """The same over the words of a problem: prompts `a c d ;`, an entry for each letter.

    problem: also has letters, lengths, reads and blank, and plain takes the letters' ranks behind the values.
    """

    def __init__(self, problem: Any):
        self.problem, self.name = problem, problem.name
        self.letters, self.lengths = tuple(problem.letters), problem.lengths

    def chain(self, prompt: Sequence[str]) -> list[str]:
        word, problem = [self.letters.index(name) for name in prompt[:-1]], self.problem

        def read(index: int) -> tuple[list[int]]:
            places = [index + offset for offset in problem.reads]
            ranks = (word[at] if 0 <= at < len(word) else problem.blank for at in places)
            return (Given(ranks, "letters", f"reads = {tuple(problem.reads)}"),)

        return [*_entries(problem, len(word), read), "."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for length in self.lengths:
            for word in product(self.letters, repeat=length):
                yield (*word, ";")

    def count(self) -> int:
        return sum(len(self.letters) ** length for length in self.lengths)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        length = self.lengths[rng.integers(len(self.lengths))]
        return (*(self.letters[i] for i in rng.integers(len(self.letters), size=length)), ";")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for length in (self.lengths[0], self.lengths[-1]):
            yield f"{length} times the first letter", (*[self.letters[0]] * length, ";")
            yield f"{length} times the last letter", (*[self.letters[-1]] * length, ";")
            yield f"{length} letters in turn", (*(self.letters[i % len(self.letters)] for i in range(length)), ";")

    def describe(self) -> str:
        return f"{self.name}, words of {spanned(self.lengths)} letter{'s' * (self.lengths[-1] != 1)}"


def _entries(problem: Any, count: int, read: Callable[[int], tuple]) -> list[str]:
    """The entries by the problem's own transition on integers; read: what it is given behind index and values."""
    found: list[int] = []
    for index in range(count):
        before = (found[index - d] if d <= index else problem.missing for d in range(1, problem.reach + 1))
        values = Given(before, "values", f"reach = {problem.reach}")
        value = run_own(f"{problem.name}: plain of entry {index}", problem.plain, index, values, *read(index))
        if not whole(value) or not 0 <= value <= problem.largest:
            raise ValueError(
                f"{problem.name}: plain gives {shown(value)} for entry {index}, and values are declared to be "
                f"whole numbers from 0 to {problem.largest}"
            )
        found.append(int(value))
    return [str(value) for value in found]
