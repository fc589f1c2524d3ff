"""m-local dynamic programs: every entry depends on the last m tokens only (after paper B, Theorem 4).

Statement. For every T, such a program that meets Assumption 2 is solved with a chain of thought by Mamba layers of size
O(m), if the answer is no longer than T. Of ours one model is right for every length that its promise covers.

Our choices. The chain must end by itself, so its length n stands in the prompt (`7 ;`) and is compared with a count:
that takes log2 T bits of one number, not O(T) entries. In the paper the token of an entry carries its state. An entry
before the first one reads as “some special token” there (A.3, block 3), whose value is open: here it is what stands
there, a number of the prompt at times, and the circuit takes it out.

Circuit. A value d entries back is the present token's, d − 1 positions earlier: the block's own convolution sees three.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from compiler.language.alphabet import Alphabet
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import count, latch, minimum, present
from constructions.construction import parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, numbers, repeated, written
from constructions.copy_dp.sizes import with_our_constant
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import Solver
from verify.tasks.solvers.recurrences import CoinChangeSolver, FibonacciSolver

ASK, NONE = ";", "-"


@dataclass(frozen=True)
class Recurrence(ChainConstruction):
    """Prompts `n ;`; entries 0 … n, each from the last few."""

    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 4"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B
    a_column_each: ClassVar[str] = "of the last m entries"

    @abstractmethod
    def terms(self) -> int:
        """The largest n."""

    @abstractmethod
    def entries(self) -> dict[str, int]:
        """The tokens of entries and their numbers."""

    @abstractmethod
    def reach(self) -> int:
        """m: how many entries back an entry reads."""

    @abstractmethod
    def following(self, value: Stream, index: Stream, first: Stream) -> Stream:
        """Entry `index`, where `value` is the entry before it; first: whether it is entry 0.

        value.shift(d − 1) is the entry d before it; where there is none it can be any number of the prompt.
        """

    def marks(self, following: Stream) -> list[tuple[Stream, str]]:
        """What is written in the place of an entry, below the end: (flag, token)."""
        return []

    def alphabet(self) -> Alphabet:
        names = dict.fromkeys([*numbers(self.terms()), *self.entries()])
        return Alphabet.of(ASK, END, number=[*names])

    def edges(self) -> Edges:
        chain, in_chain = repeated("chain", [*self.entries()], self.terms() + 1)
        asked = [("start", "asked", numbers(self.terms())), ("asked", "chain", [ASK])]
        return [*asked, *in_chain, *leaving(chain[1:], "end", [END])]

    def prompts(self) -> str:
        return f"the last index, at most {self.terms()}"

    def table(self) -> int:
        return self.terms() + 1

    def longest(self) -> int:
        return 2 + self.table() + 1

    def otherwise(self) -> str:
        """The end depends on n, which no entry tells."""
        return "with the last index kept from the prompt"

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Theorem 4 copies from O(m) places: ours are the entries that are read."""
        return {"d_state": self.reach()}, with_our_constant(self.theorem, self.a_column_each)

    def scores(self) -> Stream:
        x = Tokens(self.alphabet())
        entry, mark = x.is_in("number"), x.is_in([ASK])
        asked = present(mark)
        index = count(entry, reset=mark).named("index")
        last = latch(x.number({n: int(n) for n in numbers(self.terms())}, "n").shift(1), when=mark).named("last index")
        value = x.number(self.entries(), "value")
        following = self.following(value, index, mark)
        rules = [(asked & (index > last), END), *self.marks(following)]
        return written(x.alphabet, following, self.entries(), rules, self.dtype)


@dataclass(frozen=True)
class Fibonacci(Recurrence):
    """Fibonacci numbers mod q."""

    name: ClassVar[str] = "fibonacci"

    modulus: int = parameter("q", most=1 << 12, default=10)
    length: int = parameter("the largest index", most=1 << 16, default=20)

    def __post_init__(self) -> None:
        at_least("modulus", self.modulus, 2, "mod 1 every number is 0")
        at_least("length", self.length, 1, "a chain has an entry")

    def terms(self) -> int:
        return self.length

    def entries(self) -> dict[str, int]:
        return {name: int(name) for name in numbers(self.modulus - 1)}

    def reach(self) -> int:
        return 2

    def following(self, value: Stream, index: Stream, first: Stream) -> Stream:
        """The sum of the last two, once q less where it reaches q; 0 first, then 1."""
        total = value + value.shift(1) + first.shift(1) - self.modulus * first
        return total.relu() - self.modulus * (total >= self.modulus)

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "modulus": self.modulus}

    def solver(self) -> Solver:
        return FibonacciSolver(self.length, self.modulus)


@dataclass(frozen=True)
class CoinChange(Recurrence):
    """The fewest coins of each amount; `-` where none make it."""

    name: ClassVar[str] = "coin-change"

    amount: int = parameter("the largest amount", most=1 << 12, default=20, option="--length")
    coins: str = parameter("their values, by commas", default="1,3,4")

    def __post_init__(self) -> None:
        at_least("length", self.amount, 1, "an amount is not empty")
        for coin in self.coins.split(","):
            if not coin.strip().isdecimal() or int(coin) < 1:
                raise ValueError(f"coins = {self.coins!r} has {coin!r}, and a coin is a whole number of at least 1")

    def prompts(self) -> str:
        return f"the largest amount, at most {self.terms()} ({NONE} is written for an amount that no coins make)"

    def values(self) -> list[int]:
        return sorted({int(coin) for coin in self.coins.split(",")})

    def terms(self) -> int:
        return self.amount

    def most(self) -> int:
        """The most coins that an amount can take."""
        return max(1, self.amount // self.values()[0])

    def entries(self) -> dict[str, int]:
        return {name: int(name) for name in numbers(self.most())} | {NONE: self.most() + 1}

    def reach(self) -> int:
        return self.values()[-1]

    def following(self, value: Stream, index: Stream, first: Stream) -> Stream:
        """One coin more than the best entry that a coin leads back to; entries before the first are out of reach."""
        none = self.most() + 1
        fewest = none - 1
        for coin in self.values():
            fewest = minimum(value.shift(coin - 1) + none * (index < coin), fewest)
        return fewest + 1 - none * first

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "coins": self.values(), "most": self.most()}

    def solver(self) -> Solver:
        return CoinChangeSolver(self.amount, self.values())
