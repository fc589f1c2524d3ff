"""Rectifiers of one position, and what they bound: cuts, minima, maxima."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from compiler.language.kinds import lane_by_lane, number_type, of_kinds
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise, Sees
from compiler.language.operations.wording import called, same_width
from compiler.language.types import Bool, Type
from compiler.lattice.domain import Domain, down, up
from compiler.lattice.intervals import Value
from compiler.lattice.units import unit_of

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Relu(Operation):
    """max(x, 0) on every lane."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    rectifies: ClassVar[bool] = True
    keeps_sizes: ClassVar[bool] = True
    core: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, x: str) -> str:
        return f"{called(x)}.{self.symbol}()"

    def result_type(self, x: Type) -> Type:
        return of_kinds(lane_by_lane(x), 0)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.rectified(stream)

    def step(self, memory: Any, counted: int, x: Value) -> tuple[Value | None, Any]:
        return tuple((max(lo, 0), max(hi, 0)) for lo, hi in x), None

    def evaluate(self, x: Array) -> Array:
        return np.maximum(x, 0)


@dataclass(frozen=True)
class Settled(Relu):
    """relu of numbers that are 1, or at most −1: the last step of a decision about a real number, a flag.

    The input is 1 − relu(u) for a u that is never between −2 and 2, so that what u is off by is gone (the represent
    pass alone makes these, where it has proved that).
    """

    followed: ClassVar[bool] = False
    lane_wise: ClassVar[LaneWise] = LaneWise.TOGETHER
    core: ClassVar[bool] = False

    def result_type(self, x: Type) -> Type:
        return Bool(x.width)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))


@dataclass(frozen=True)
class Half(Relu):
    """silu(Sx)/S, which is within 0.2785/S of relu(x): what a block makes of real numbers.

    As a pair half(x) − half(−x) = x it carries a number exactly (exactness E3); alone it stands for relu of a
    real number, within that error. The split_reals pass alone makes these, and chooses the scale S.
    """

    followed: ClassVar[bool] = False
    lane_wise: ClassVar[LaneWise] = LaneWise.TOGETHER

    scale: float = 128.0
    alone: bool = False  # whether it stands for relu, or is one of a pair of which only the difference is read
    settled: bool = False  # whether it stands for Settled

    @property
    def silu_scale(self) -> float:
        return self.scale


@dataclass(frozen=True)
class Clip(Operation):
    """min(max(x, lo), hi) on every lane."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE

    lo: int
    hi: int

    def written(self, x: str) -> str:
        return f"{called(x)}.clip({self.lo}, {self.hi})"

    def result_type(self, x: Type) -> Type:
        return of_kinds(lane_by_lane(x), self.lo, self.hi)

    def problems(self, x: Type) -> list[str]:
        return [f"clip({self.lo}, {self.hi}) has its bounds the wrong way round"] if self.lo > self.hi else []

    def domain(self, stream: Operand, known: Known) -> Domain:
        d = known.of(stream.inputs[0])
        lo, hi = Fraction(self.lo), Fraction(self.hi)
        ends = float(unit_of(_ONE, lo, hi))
        low, high = np.clip(d.low, down(lo), up(hi)), np.clip(d.high, down(lo), up(hi))
        return known.lanes(np.minimum(d.units, ends), low, high)

    def evaluate(self, x: Array) -> Array:
        return np.minimum(np.maximum(x, self.lo), self.hi)


@dataclass(frozen=True)
class Min(Operation):
    """The smaller of two integers, lane by lane."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def result_type(self, a: Type, b: Type) -> Type:
        return number_type(a, b)

    def problems(self, a: Type, b: Type) -> list[str]:
        return same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        a, b = (known.of(s) for s in stream.inputs)
        return known.lanes(np.minimum(a.units, b.units), np.minimum(a.low, b.low), np.minimum(a.high, b.high))

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


@dataclass(frozen=True)
class Max(Min):
    """The larger of two integers, lane by lane."""

    followed: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    zero_preserving: ClassVar[bool] = True

    def domain(self, stream: Operand, known: Known) -> Domain:
        a, b = (known.of(s) for s in stream.inputs)
        return known.lanes(np.minimum(a.units, b.units), np.maximum(a.low, b.low), np.maximum(a.high, b.high))

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)
