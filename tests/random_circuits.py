"""Random small circuits: every operation of the language over a three-letter alphabet.

`build(choose)` asks `choose(n)` for a number below n whenever it has a choice, so that the
same builder serves a seeded generator and hypothesis (which then shrinks what fails).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import signs
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import (
    concatenate,
    count,
    decode,
    latch,
    latch_bank,
    lti,
    maximum,
    minimum,
    present,
    running_max,
    select,
    sum_where,
)

ALPHABET = Alphabet.of("a", "b", "c")
BOOK = signs(3)
LENGTH = 12
Choose = Callable[[int], int]


class Pool:
    """The streams built so far, by kind; `width-1` flags and integers, and one-hots of three."""

    def __init__(self, choose: Choose):
        self.choose = choose
        tokens = Tokens(ALPHABET)
        self.flags = [tokens.is_in(["a"]), tokens.is_in(["b"]), tokens.is_in(["b", "c"])]
        self.numbers = [tokens.number({"a": 2, "c": 3}), tokens.number({"a": -1, "b": 2, "c": 1})]
        self.symbols = [tokens.one_hot()]

    def flag(self) -> Stream:
        return self.flags[self.choose(len(self.flags))]

    def number(self) -> Stream:
        return self.numbers[self.choose(len(self.numbers))]

    def symbol(self) -> Stream:
        return self.symbols[self.choose(len(self.symbols))]

    def small(self, bound: int) -> int:
        return self.choose(2 * bound + 1) - bound

    def policy(self) -> str:
        return ("sum", "first", "last")[self.choose(3)]

    def code(self) -> Stream:
        code = Tokens(ALPHABET).code(None, BOOK)
        return (code, code.shift(1), code.shift(2))[self.choose(3)]

    def rows(self) -> Stream:
        rows = Tokens(ALPHABET).rows(None, np.array([[2, -1], [0, 3], [1, 1]]), "rows")
        return rows.shift(1) if self.choose(2) else rows

    def when(self) -> Stream | None:
        return self.flag() if self.choose(2) else None


FLAGS = [
    lambda p: p.flag() & p.flag(),
    lambda p: p.flag() | p.flag(),
    lambda p: ~p.flag(),
    lambda p: p.number() > p.small(3),
    lambda p: p.number() >= p.number(),
    lambda p: p.number() < p.small(3),
    lambda p: p.number() <= p.number(),
    lambda p: p.number() == p.small(2),
    lambda p: p.number() != p.number(),
    lambda p: p.number() > 10 ** p.choose(8) - 2 ** p.choose(12),
    lambda p: p.flag() | p.flag() | (p.flag() & ~p.flag() & p.flag()),
    lambda p: p.symbol() == p.symbol(),
    lambda p: p.symbol() != p.symbol(),
    lambda p: p.symbol()[p.choose(3)],
    lambda p: p.flag().shift(1 + p.choose(5)),
    lambda p: select(p.flag(), p.flag(), p.flag()),
    lambda p: present(p.flag()),
    lambda p: latch(p.flag(), p.flag(), first=bool(p.choose(2))),
]

NUMBERS = [
    lambda p: p.number() + p.number(),
    lambda p: p.number() - p.flag(),
    lambda p: 2 * p.number() - p.small(3),
    lambda p: p.number() / 2 + p.flag() / 4,
    lambda p: p.number().relu(),
    lambda p: p.number().clip(-1, p.choose(4)),
    lambda p: minimum(p.number(), p.number()),
    lambda p: maximum(p.number(), p.small(3)),
    lambda p: p.number() * p.number(),
    lambda p: p.flag() * p.number(),
    lambda p: select(p.flag(), p.number(), p.number()),
    lambda p: p.number().clip(-2, 4).lookup([3, -1, 4, 1]),
    lambda p: p.number().lookup([3, -1, 4, 1][: 1 + p.choose(4)]),
    lambda p: p.number() * 2 ** p.choose(12) + 10 ** p.choose(6),
    lambda p: p.number().shift(11 + 10 ** p.choose(5)),
    lambda p: p.number() // (1 + p.choose(5)),
    lambda p: p.number() % (1 + p.choose(5)),
    lambda p: p.symbol().lookup([2, 0, -3]),
    lambda p: p.number().shift(1 + p.choose(7)),
    lambda p: p.flag().cumsum(),
    lambda p: p.number().cumsum(),
    lambda p: lti(p.number(), [1, 0, -2, Fraction(1, 2), 0, 3][: 1 + p.choose(6)]),
    lambda p: latch(p.number(), p.flag(), first=bool(p.choose(2))),
    lambda p: count(p.flag(), p.flag()),
    lambda p: running_max(p.number().clip(0, 3), p.flag()),
    lambda p: latch_bank(p.number(), p.symbol(), p.when())[p.choose(3)],
    lambda p: sum_where(p.number(), p.symbol())[p.choose(3)],
    lambda p: sum_where(p.number(), p.flag()),
    lambda p: memory.write(p.symbol(), p.number(), p.when(), p.policy()).read(p.symbol()),
    lambda p: memory.outer_sum(p.number(), write=p.symbol(), read=p.symbol()),
    lambda p: memory.outer_sum(p.number(), write=p.number(), read=p.number()),
    lambda p: memory.write(p.number(), p.number(), p.when()).read(p.number()),
    lambda p: memory.write(p.number(), p.flag(), p.when()).read(p.number()),
    lambda p: memory.write(p.code(), p.number(), p.when()).read(p.code()),
    lambda p: memory.write(p.symbol(), p.flag(), p.when(), p.policy()).read(p.symbol()),
    lambda p: memory.write(p.symbol(), p.code(), p.when(), p.policy()).read(p.symbol())[p.choose(BOOK.length)],
    lambda p: memory.write(p.rows(), p.number(), p.when()).read(p.rows()),
]

SYMBOLS = [
    lambda p: p.symbol() & p.flag(),
    lambda p: p.symbol().shift(1 + p.choose(4)),
    lambda p: p.number().one_hot(3),
    lambda p: latch(p.symbol(), p.flag()),
    lambda p: decode(p.code(), BOOK),
    lambda p: decode(select(p.flag(), p.code(), p.code()), BOOK),
    lambda p: decode(latch(p.code(), p.flag()), BOOK),
    lambda p: decode(memory.write(p.symbol(), p.code(), p.when(), p.policy()).read(p.symbol()), BOOK),
    lambda p: memory.write(p.symbol(), p.symbol(), p.when(), ("first", "last")[p.choose(2)]).read(p.symbol()),
]


def build(choose: Choose, steps: int = 6) -> Circuit:
    """A circuit of about this many random operations; all that nothing reads is in its output."""
    pool = Pool(choose)
    for _ in range(1 + choose(steps)):
        kind, kept = ((FLAGS, pool.flags), (NUMBERS, pool.numbers), (SYMBOLS, pool.symbols))[choose(3)]
        kept.append(kind[choose(len(kind))](pool))
    made = pool.flags[3:] + pool.numbers[2:] + pool.symbols[1:]
    read = {source for stream in made for source in stream.inputs}
    output = concatenate(*(s for s in made if s not in read))
    return Circuit("random", output, InputLanguage.everything(ALPHABET, LENGTH))


def random_tokens(rng: np.random.Generator, batch: int) -> np.ndarray:
    return rng.integers(0, ALPHABET.size, (batch, LENGTH))
