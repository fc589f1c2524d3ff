"""Products of one position."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from compiler.language.kinds import number_type
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array, is_dyadic
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise, Sees
from compiler.language.operations.wording import grouped, same_width
from compiler.language.types import Int, Real, Type
from compiler.lattice.domain import Domain, outward, products

_ZERO, _ONE = Fraction(0), Fraction(1)

if TYPE_CHECKING:
    from compiler.lattice.domain import Domain


@dataclass(frozen=True)
class Multiply(Operation):
    """The product, lane by lane; a single lane multiplies all lanes of the other operand."""

    followed: ClassVar[bool] = True
    multiplies: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    vanishes: ClassVar[bool] = True
    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} * {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return number_type(a, b)

    def problems(self, a: Type, b: Type) -> list[str]:
        return [] if 1 in (a.width, b.width) else same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        a, b = (known.of(s) for s in stream.inputs)
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        ends = np.minimum.reduce(corners), np.maximum.reduce(corners)
        low, high = outward(*ends, a.bounds * b.bounds, a.grain * b.grain, 1)
        still = np.isinf(a.units) | np.isinf(b.units)
        return known.lanes(np.where(still, np.inf, products(a.units, b.units)), low, high)

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class SiluProduct(Operation):
    """The product by four values of silu (paper B, Lemma 1), right within (|a| + |b|)⁴/(48·scale²) and rounding.

    With f(z) = silu(z) + silu(−z) = z·tanh(z/2) it is g = (λ²/2)·(f((a + b)/λ) − f((a − b)/λ)), λ the scale, a power of
    two. f(z) lies between z²/2 − z⁴/24 and z²/2. `Multiply` is exact and as small; this is what the paper does.
    """

    approximate: ClassVar[bool] = True
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
        """Of a product that is 0 as far as four silus are: where they do not cancel, its numbers are on no lattice."""
        reach = a.bound * b.bound or (a.bound + b.bound) ** 4 / (48 * self.scale**2)
        exact = not reach and a.step > 0 and b.step > 0  # of zeros alone
        return Fraction(int(exact)), -reach if min(a.lo, b.lo) < 0 else Fraction(0), reach

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class Dot(Operation):
    """Σ_n a_n · b_n over the lanes of one position: one number. Quadratic forms xᵀQx are dot(x, Qx)."""

    vanishes: ClassVar[bool] = True
    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def result_type(self, a: Type, b: Type) -> Type:
        return Int() if a.integral and b.integral else Real()

    def problems(self, a: Type, b: Type) -> list[str]:
        return same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        a, b = (known.of(s) for s in stream.inputs)
        reach = min(a.l1 * b.bound, a.bound * b.l1)
        return known.interval(a.step * b.step, -reach if min(a.lo, b.lo) < 0 else _ZERO, reach, 1)

    def evaluate(self, a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)
