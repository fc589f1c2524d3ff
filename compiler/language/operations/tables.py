"""Functions of one position that a table gives: look-ups, one-hots, codewords."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import ClassVar

import numpy as np
from scipy import sparse

from compiler.language.arguments import Exact
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array, apply
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import Sees
from compiler.language.operations.wording import called, needs
from compiler.language.types import Bool, Int, OneHot, Type
from compiler.lattice.domain import Domain

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Lookup(Operation):
    """table[x] of an Int (0 beside the table, as `one_hot` is absent there), or of a OneHot (0 if absent).

    symbols: whether x is a OneHot.
    """

    followed: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE

    table: tuple[Exact, ...]
    symbols: bool = False

    def written(self, x: str) -> str:
        return f"{called(x)}.lookup({list(self.table) if len(self.table) < 7 else '…'})"

    def result_type(self, x: Type) -> Type:
        return Int(floor(min((*self.table, 0))), ceil(max((*self.table, 0))))

    def problems(self, x: Type) -> list[str]:
        if not self.table or any(v != int(v) for v in self.table):
            return [f"its table {self.table} must hold integers, at least one"]
        if self.symbols:
            return (
                [] if x.width == len(self.table) else [f"its table has {len(self.table)} entries for OneHot({x.width})"]
            )
        return needs((Int, Bool), "an Int, a Bool or a OneHot", x) + (
            [] if x.width == 1 else ["it looks up one lane at a time"]
        )

    def domain(self, stream: Operand, known: Known) -> Domain:
        entries = [Fraction(v) for v in self.table]
        return known.interval(_ONE, min(*entries, _ZERO), max(*entries, _ZERO), 1)

    def evaluate(self, x: Array) -> Array:
        entries = np.array(self.table, dtype=x.dtype)
        if self.symbols:
            return (x * entries).sum(axis=-1, keepdims=True)
        inside = (x >= 0) & (x < len(self.table))
        return entries[np.where(inside, x, 0).astype(np.int64)] * inside.astype(np.int64).astype(x.dtype)


@dataclass(frozen=True)
class OneHotOf(Operation):
    """OneHot(n) of an Int; absent where the value is outside 0…n−1."""

    followed: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE

    n: int

    @property
    def symbol(self) -> str:
        return "one_hot"

    def written(self, x: str) -> str:
        return f"{called(x)}.{self.symbol}({self.n})"

    def result_type(self, x: Type) -> Type:
        return OneHot(self.n)

    def problems(self, x: Type) -> list[str]:
        return needs((Int, Bool), "an Int", x) + (
            [] if x.width == 1 else [f"it has {x.width} lanes, and one is needed"]
        )

    @property
    def alternatives(self) -> int:
        return self.n

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))

    def evaluate(self, x: Array) -> Array:
        return (x == np.arange(self.n)).astype(np.int64).astype(x.dtype)


@dataclass(frozen=True, eq=False)
class Decode(Operation):
    """OneHot of the codeword that is present, absent where none is, for words c with <c, c> = q and <c, c'> ≤ q − 1.

    x = c exactly where <c, x> = q = <x, x>, for then |x − c|² = 0.
    """

    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True
    foldable: ClassVar[bool] = False  # it is asked for where a code is cheaper to carry than its one-hot

    words: sparse.csr_array = field(repr=False)

    def result_type(self, x: Type) -> Type:
        return OneHot(self.words.shape[0])

    def problems(self, x: Type) -> list[str]:
        if x.width != self.words.shape[1]:
            return [f"it decodes words of {self.words.shape[1]} lanes, and its input has {x.width}"]
        gram = (self.words @ self.words.T).toarray()
        others = gram - np.diag(np.full(len(gram), np.inf))
        if (np.diag(gram) != self.norm).any() or others.max() > self.norm - 1:
            return [
                "its words must have one length <c, c> = q and <c, c'> ≤ q − 1; use codebook.signs or codebook.balanced"
            ]
        return []

    @property
    def norm(self) -> int:
        """q = <c, c>."""
        return int(abs(self.words[[0]]).sum())

    def unmet(self, x: Domain) -> str | None:
        return None if x.bound <= 1 else f"it decodes numbers up to {x.bound}; a codeword has entries −1, 0 and 1"

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))

    def evaluate(self, x: Array) -> Array:
        equal = (apply(self.words, x) == self.norm) & ((x * x).sum(axis=-1, keepdims=True) == self.norm)
        return equal.astype(np.int64).astype(x.dtype)
