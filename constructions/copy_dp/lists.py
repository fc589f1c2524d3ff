"""Longest increasing subsequence and maximum subarray: an entry for each number of a list, then the answer.

Statement. After Theorem 3, with a table of one entry for each number.

Outside of its Assumption 2, as both are usually written. The answer of both is the best of all entries, as many as
there are numbers. An entry of the subsequence needs unboundedly many as well, and which ones depends on the numbers.
One of the subarray needs only the entry before. They compile because a query may depend on data, and because "the best
among …" can be stored as levels: level k under value v says that a subsequence of k + 1 numbers ends with v, so that
one read over all smaller v finds the longest.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.language.words import count, latch, present, running_max, select
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, numbers, repeated, written
from constructions.copy_dp.sizes import BEYOND
from constructions.papers import OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import Solver
from verify.tasks.solvers.sequences import LongestIncreasingSubsequenceSolver, MaximumSubarraySolver

ASK = ";"


@dataclass(frozen=True)
class NumberList(ChainConstruction, WithMemory):
    """Prompts `3 1 2 ;`; an entry for each number, then the answer."""

    theorem: ClassVar[str] = BEYOND
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    length: int = parameter("numbers of a prompt, at most", most=1 << 12, default=8)
    values: int = parameter("how many values a number has", most=1 << 12, default=8)

    def __post_init__(self) -> None:
        at_least("length", self.length, 1, "a list has a number")
        at_least("values", self.values, 1, "a number has a value")

    def given(self) -> range:
        """The values that a number of the prompt can have."""
        return range(self.values)

    @abstractmethod
    def largest(self) -> int:
        """The largest entry."""

    def alphabet(self) -> Alphabet:
        low, high = min(0, self.given()[0]), max(self.largest(), self.given()[-1])
        return Alphabet.of(ASK, END, number=[str(i) for i in range(low, high + 1)])

    def edges(self) -> Edges:
        prompt, in_prompt = repeated("start", [str(v) for v in self.given()], self.length)
        chain, in_chain = repeated("chain", numbers(self.largest()), self.length + 1)
        return in_prompt + leaving(prompt, "chain", [ASK]) + in_chain + leaving(chain[1:], "end", [END])

    def table(self) -> int:
        return self.length + 1

    def longest(self) -> int:
        return 2 * self.length + 3

    def prompts(self) -> str:
        return f"at most {self.length} numbers from {self.given()[0]} to {self.given()[-1]}"

    def read(self, x: Tokens) -> tuple[Stream, Stream, Stream, Stream, Stream]:
        """(in the chain, number that the next entry is for, no such number is left, the answer stands, its place)."""
        number, mark = x.is_in("number"), x.is_in([ASK])
        asked = present(mark)
        place = count(number, reset=mark).named("place")
        length = latch(number.cumsum(), when=mark).named("length")
        value = x.number({str(v): v for v in self.given()}, "value")
        held = memory.write(self._place(place - 1), value, when=number & ~asked, policy="once", name="numbers")
        return asked, held.read(self._place(place)), asked & (place >= length), asked & (place > length), place

    def _place(self, place: Stream) -> Stream:
        return place.one_hot(self.length)

    def written(self, entry: Stream, over: Stream) -> Stream:
        values = {name: int(name) for name in numbers(self.largest())}
        return written(self.alphabet(), entry, values, [(over, END)], self.dtype)


@dataclass(frozen=True)
class LongestIncreasingSubsequence(NumberList):
    """The longest strictly increasing subsequence that ends at each number, and the longest of all."""

    name: ClassVar[str] = "lis"

    def largest(self) -> int:
        return self.length

    def scores(self) -> Stream:
        """Levels under values: at the end, where no number is left, one read over all values finds the answer."""
        x = Tokens(self.alphabet())
        asked, asking, done, over, _ = self.read(x)
        lengths = range(x.alphabet.index("0"), x.alphabet.size)
        rows = np.array([[float(k > level) for level in range(self.length)] for k, _ in enumerate(lengths)])
        reached = x.rows("number", rows, "levels")
        levels = memory.write(asking.shift(1).one_hot(self.values), reached, when=asked, name="levels")
        copies, thresholds = np.ones((self.values, 1)), np.arange(self.values, dtype=float)[:, None]
        smaller = copies @ (asking + self.values * done) - thresholds @ constant(1) > 0
        longest = levels.read(smaller).clip(0, 1).sum()
        return self.written(longest + 1 - done, over)

    def solver(self) -> Solver:
        return LongestIncreasingSubsequenceSolver(self.length, self.given())


@dataclass(frozen=True)
class MaximumSubarray(NumberList):
    """The largest sum of numbers in a row that ends at each number (0: of none), and the largest of all.

    values: numbers from −⌊V/2⌋ on, half of them negative.
    """

    name: ClassVar[str] = "max-subarray"

    def given(self) -> range:
        return range(-(self.values // 2), self.values - self.values // 2)

    def largest(self) -> int:
        return max(1, self.given()[-1] * self.length)

    def scores(self) -> Stream:
        """Kadane: the present token is the sum so far. The answer is the largest entry that was written."""
        x = Tokens(self.alphabet())
        asked, asking, done, over, _ = self.read(x)
        sums = x.number({name: int(name) for name in numbers(self.largest())}, "sum")
        return self.written(select(done, running_max(sums, when=asked), (sums + asking).relu()), over)

    def solver(self) -> Solver:
        return MaximumSubarraySolver(self.length, self.given())
