"""What a stream holds, and the random choices that every word draws from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
Number = int | Fraction
SMALL = (0, 1, 1, 1, 2, 2, 3, 4, 5, 7, -1, -1, -2, -3)
LARGE = (
    10, 11, 20, 21, 32, 100, 127, 129, 255, 257, 1000, 2047, 2049, 4097, 4099, 5000, 65_537, 999_983, 10**6, 2**20,
    2**24 - 1, 2**24, 2**24 + 1, 2**27 + 1, 2**31, 2**52 + 1, 2**53, 2**53 + 1, 2**54 + 2**28, 2**60, 2**62 + 1, 10**30,
)  # fmt: skip
PARTS = (0.5, 0.25, 0.75, Fraction(1, 8), Fraction(3, 8), 1.5, -0.5, 0.125)
ODD_PARTS = (
    0.1, 1 / 3, Fraction(1, 3), Fraction(1, 10), Fraction(2, 7), 2.0**-10, 2.0**-20, 2.0**-24, 2.0**-30, 2.0**-60,
    2.0**-100, Fraction(1, 2**149), Fraction(2**24 + 1, 2**24), 1e-3, 3e38,
)  # fmt: skip


class Kind(NamedTuple):
    """flag, int, real, symbol (a one-hot) or code; and how many lanes."""

    name: str
    width: int = 1

    @property
    def whole(self) -> bool:
        return self.name != "real"


FLAG, INT, REAL = Kind("flag"), Kind("int"), Kind("real")


class Matrix(tuple):
    """Rows of numbers, written as an array."""


@dataclass(frozen=True)
class Written:
    """Code that stands for itself: a codebook, a type."""

    code: str


def shown(value: object) -> str:
    """A parameter as code."""
    if isinstance(value, Written):
        return value.code
    if isinstance(value, Fraction):
        return f"Fraction({value.numerator}, {value.denominator})"
    if isinstance(value, Matrix):
        rows = ", ".join(f"[{', '.join(map(shown, row))}]" for row in value)
        # NumPy would round a large integer that stands beside a float.
        wide = any(isinstance(v, Fraction) or abs(v) > 2**53 for row in value for v in row)
        kind = ", dtype=object" if wide else ""
        return f"np.array([{rows}]{kind})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def exact(value: int | float | Fraction) -> Number:
    """A literal of a program as the number that it is."""
    fraction = Fraction(value)
    return fraction.numerator if fraction.denominator == 1 else fraction


def codewords(book: Written) -> list[tuple[int, ...]]:
    """The words of a codebook, which are data and no meaning of a stream."""
    import compiler

    words = eval(book.code, {"np": np, **vars(compiler)}).words
    return [tuple(int(v) for v in word) for word in words]


class Draw:
    """Random choices of one program.

    wild:    how likely a number is extreme.
    careless: how likely an operand is of the wrong kind.
    letters: the alphabet.
    scales:  powers of two that numbers which need not be whole are multiples of, however small or large; none: as in
             people's circuits.
    """

    def __init__(self, seed: int, letters: Sequence[str] = ()):
        self.random = Random(seed)
        self.wild = self.one((0.0, 0.0, 0.05, 0.2, 0.5))
        self.careless = self.one((0.0, 0.0, 0.0, 0.02, 0.1))
        self.letters = tuple(letters)
        self.scales: tuple[float, ...] = ()

    def one(self, options: Sequence[T]) -> T:
        return options[self.random.randrange(len(options))]

    def below(self, n: int) -> int:
        return self.random.randrange(n)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def whole(self) -> int:
        if not self.chance(self.wild):
            return self.one(SMALL)
        return self.one((1, 1, -1)) * self.one(LARGE)

    def part(self) -> int | float | Fraction:
        """A number that need not be whole."""
        if self.scales and self.chance(0.6):
            return self.one((1, 1, 3, 5, 7, -1, -3)) * self.one(self.scales)
        if self.chance(0.6):
            return self.whole()
        return self.one(ODD_PARTS) if self.chance(self.wild) else self.one(PARTS)

    def factor(self) -> int | float | Fraction:
        return self.part() or 2

    def matrix(self, rows: int, columns: int) -> Matrix:
        number = self.whole if self.chance(0.7) and not self.scales else self.part
        sparse = self.chance(0.5)
        return Matrix(
            tuple(0 if sparse and self.chance(0.5) else number() for _ in range(columns)) for _ in range(rows)
        )

    def members(self) -> list[str]:
        """Some letters, in any order."""
        return self.random.sample(self.letters, 1 + self.below(len(self.letters)))

    def book(self, length: int | None = None, size: int | None = None) -> Written:
        """A codebook of so many words, or of words of this length."""
        if size is not None:
            return Written(f"{self.one(('signs', 'bits', 'balanced', 'signs'))}({size})")
        least = 2 ** (length - 1) + 1 if length > 1 else 1
        options = [f"signs({self.random.randint(least, 2**length)})"]
        options += [f"bits({self.random.randint(2 ** (length - 1), 2**length - 1)})"]
        if length % 2 == 0 and length <= 4:
            options.append(f"balanced({ {2: 2, 4: 5}[length] })")
        return Written(self.one(options))
