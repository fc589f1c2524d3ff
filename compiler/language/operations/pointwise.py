"""Functions of one position: rectifiers, comparisons, logic, look-ups, products."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import sparse

from compiler.language.arguments import Exact
from compiler.language.operations.base import (
    Array,
    Operation,
    Sees,
    apply,
    grouped,
    is_dyadic,
    needs,
    same_width,
)
from compiler.language.types import Bool, Int, OneHot, Real, Type

if TYPE_CHECKING:
    from compiler.analysis.domain import Domain


@dataclass(frozen=True)
class Relu(Operation):
    """max(x, 0) on every lane."""

    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, x: str) -> str:
        return f"{grouped(x)}.{self.symbol}()"

    def result_type(self, x: Type) -> Type:
        return Int(0, None, x.width) if x.integral else Real(0, None, x.width)

    def evaluate(self, x: Array) -> Array:
        return np.maximum(x, 0)


@dataclass(frozen=True)
class Half(Relu):
    """silu(Sx)/S, which is within 0.2785/S of relu(x): what a block makes of real numbers.

    As a pair half(x) − half(−x) = x it carries a number exactly (exact-arithmetic E3); alone it stands for relu of a
    real number, within that error. The split_reals pass alone makes these, and chooses the scale S.
    """

    scale: float = 128.0
    alone: bool = False  # whether it stands for relu, or is one of a pair of which only the difference is read


@dataclass(frozen=True)
class Clip(Operation):
    """min(max(x, lo), hi) on every lane."""

    sees: ClassVar[Sees] = Sees.POINTWISE

    lo: int
    hi: int

    def written(self, x: str) -> str:
        return f"{grouped(x)}.clip({self.lo}, {self.hi})"

    def result_type(self, x: Type) -> Type:
        return Int(self.lo, self.hi, x.width) if x.integral else Real(self.lo, self.hi, x.width)

    def problems(self, x: Type) -> list[str]:
        return [f"clip({self.lo}, {self.hi}) has its bounds the wrong way round"] if self.lo > self.hi else []

    def evaluate(self, x: Array) -> Array:
        return np.minimum(np.maximum(x, self.lo), self.hi)


_COMPARISONS = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True)
class Compare(Operation):
    """Whether a ∘ b, lane by lane, for integers."""

    sees: ClassVar[Sees] = Sees.POINTWISE

    relation: str

    @property
    def symbol(self) -> str:
        return f"compare[{self.relation}]"

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} {self.relation} {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        found = same_width(a, b)
        if not (a.integral and b.integral):
            found.append(
                f"it compares {a} with {b}; comparisons are exact on integers only; of "
                "real numbers use exceeds(a, b, gap)"
            )
        return found

    def evaluate(self, a: Array, b: Array) -> Array:
        return _COMPARISONS[self.relation](a, b).astype(np.int64).astype(a.dtype)


@dataclass(frozen=True)
class SameSymbol(Operation):
    """1 where two OneHots of the same alternatives are both present and equal: Σ_i a_i·b_i."""

    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} == {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool()

    def problems(self, a: Type, b: Type) -> list[str]:
        return needs(OneHot, "a OneHot", a, b) + same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class And(Operation):
    """Both flags; a single flag is shared by all lanes of the other operand. Some of a one-hot is one-hot."""

    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} & {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        width = max(a.width, b.width)
        some_of_one_hot = any(isinstance(t, OneHot) and t.width == width for t in (a, b))
        return OneHot(width) if some_of_one_hot else Bool(width)

    def problems(self, a: Type, b: Type) -> list[str]:
        found = needs((Bool, OneHot), "a Bool or a OneHot", a, b)
        return found if 1 in (a.width, b.width) else found + same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class Or(Operation):
    """Either flag, lane by lane."""

    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} | {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return needs((Bool, OneHot), "a Bool or a OneHot", a, b) + same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Not(Operation):
    """1 − flag at every position of the sequence."""

    sees: ClassVar[Sees] = Sees.POINTWISE

    def written(self, a: str) -> str:
        return f"~{grouped(a)}"

    def result_type(self, a: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type) -> list[str]:
        return needs((Bool, OneHot), "a Bool or a OneHot", a)

    def evaluate(self, a: Array) -> Array:
        return 1 - a


@dataclass(frozen=True)
class Select(Operation):
    """The second input where the condition holds, else the third."""

    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def result_type(self, condition: Type, yes: Type, no: Type) -> Type:
        flags = (Bool, OneHot)
        if isinstance(yes, flags) and isinstance(no, flags):
            whole = isinstance(yes, OneHot) and isinstance(no, OneHot) and condition.width == 1
            return OneHot(yes.width) if whole else Bool(yes.width)
        return Int(width=yes.width) if yes.integral and no.integral else Real(width=yes.width)

    def problems(self, condition: Type, yes: Type, no: Type) -> list[str]:
        found = needs(Bool, "a Bool condition", condition) + same_width(yes, no)
        if condition.width not in (1, yes.width):
            found.append(f"its condition has {condition.width} lanes, and 1 or {yes.width} are needed")
        return found

    def evaluate(self, condition: Array, yes: Array, no: Array) -> Array:
        return no + condition * (yes - no)


@dataclass(frozen=True)
class Lookup(Operation):
    """table[x] of an Int (0 beside the table, as `one_hot` is absent there), or of a OneHot (0 if absent).

    symbols: whether x is a OneHot.
    """

    sees: ClassVar[Sees] = Sees.POINTWISE

    table: tuple[Exact, ...]
    symbols: bool = False

    def written(self, x: str) -> str:
        return f"{grouped(x)}.lookup({list(self.table) if len(self.table) < 7 else '…'})"

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

    def evaluate(self, x: Array) -> Array:
        entries = np.array(self.table, dtype=x.dtype)
        if self.symbols:
            return (x * entries).sum(axis=-1, keepdims=True)
        inside = (x >= 0) & (x < len(self.table))
        return entries[np.where(inside, x, 0).astype(np.int64)] * inside.astype(np.int64).astype(x.dtype)


@dataclass(frozen=True)
class OneHotOf(Operation):
    """OneHot(n) of an Int; absent where the value is outside 0…n−1."""

    sees: ClassVar[Sees] = Sees.POINTWISE

    n: int

    def written(self, x: str) -> str:
        return f"{grouped(x)}.one_hot({self.n})"

    def result_type(self, x: Type) -> Type:
        return OneHot(self.n)

    def problems(self, x: Type) -> list[str]:
        return needs((Int, Bool), "an Int", x) + (
            [] if x.width == 1 else [f"it has {x.width} lanes, and one is needed"]
        )

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

    def evaluate(self, x: Array) -> Array:
        equal = (apply(self.words, x) == self.norm) & ((x * x).sum(axis=-1, keepdims=True) == self.norm)
        return equal.astype(np.int64).astype(x.dtype)


@dataclass(frozen=True)
class Min(Operation):
    """The smaller of two integers, lane by lane."""

    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def result_type(self, a: Type, b: Type) -> Type:
        return Int(width=a.width) if a.integral and b.integral else Real(width=a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


@dataclass(frozen=True)
class Max(Min):
    """The larger of two integers, lane by lane."""

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Multiply(Operation):
    """The product, lane by lane; a single lane multiplies all lanes of the other operand."""

    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} * {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        width = max(a.width, b.width)
        return Int(width=width) if a.integral and b.integral else Real(width=width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return [] if 1 in (a.width, b.width) else same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class SiluProduct(Operation):
    """The product by four values of silu (paper B, Lemma 1), right within (|a| + |b|)⁴/(48·scale²) and rounding.

    With f(z) = silu(z) + silu(−z) = z·tanh(z/2) it is g = (λ²/2)·(f((a + b)/λ) − f((a − b)/λ)), λ the scale, a power of
    two. f(z) lies between z²/2 − z⁴/24 and z²/2. `Multiply` is exact and as small; this is what the paper does.
    """

    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True
    foldable: ClassVar[bool] = False  # it is asked for to be computed so

    scale: Fraction

    @property
    def symbol(self) -> str:
        return "silu_product"

    def result_type(self, a: Type, b: Type) -> Type:
        return Real(width=a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        if self.scale <= 0 or self.scale.numerator & (self.scale.numerator - 1) or not is_dyadic(self.scale):
            return [f"its scale is {self.scale}, and a power of two is needed, such as 128"]
        return same_width(a, b)

    def bounds(self, a: Domain, b: Domain, length: int) -> tuple[Fraction, Fraction, Fraction]:
        reach = a.bound * b.bound
        return Fraction(0), -reach if min(a.lo, b.lo) < 0 else Fraction(0), reach

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class Dot(Operation):
    """Σ_n a_n · b_n over the lanes of one position: one number. Quadratic forms xᵀQx are dot(x, Qx)."""

    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def result_type(self, a: Type, b: Type) -> Type:
        return Int() if a.integral and b.integral else Real()

    def problems(self, a: Type, b: Type) -> list[str]:
        return same_width(a, b)

    def evaluate(self, a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)
