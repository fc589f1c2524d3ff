"""Division of integers by a positive integer constant, as Python divides: the quotient is rounded down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from compiler.language.kinds import Kind, kinds_of
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise, Sees
from compiler.language.operations.wording import grouped
from compiler.language.types import Int, Type
from compiler.lattice.domain import Domain, outward


@dataclass(frozen=True)
class FloorDivide(Operation):
    """⌊x / divisor⌋ on every lane, of negative integers too: −1 // 3 = −1."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    divisor: int

    def written(self, x: str) -> str:
        return f"{grouped(x)} // {self.divisor}"

    def result_type(self, x: Type) -> Type:
        return Int(width=x.width)

    def problems(self, x: Type) -> list[str]:
        real = np.flatnonzero(kinds_of(x) == Kind.REAL)
        lanes = f"lane {real[0]} of " if 0 < len(real) < x.width else ""
        found = [f"it divides {lanes}{x}, and an integer is needed"] if len(real) else []
        return found if self.divisor >= 1 else [*found, f"its divisor is {self.divisor}, and it must be at least 1"]

    def domain(self, stream: Operand, known: Known) -> Domain:
        d, n = known.of(stream.inputs[0]), float(self.divisor)
        low, high = outward(np.floor_divide(d.low, n), np.floor_divide(d.high, n), d.bounds, 1.0, 1)
        domain = known.lanes(np.ones(stream.width), low, high)
        return replace(domain, l1=min(domain.l1, d.l1), totals=np.minimum(domain.totals, d.totals))

    def evaluate(self, x: Array) -> Array:
        return x // self.divisor


@dataclass(frozen=True)
class Modulo(FloorDivide):
    """x − divisor·⌊x / divisor⌋ on every lane, in 0 … divisor − 1: −1 % 3 = 2."""

    followed: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    zero_preserving: ClassVar[bool] = True

    def written(self, x: str) -> str:
        return f"{grouped(x)} % {self.divisor}"

    def result_type(self, x: Type) -> Type:
        return Int(0, max(self.divisor - 1, 0), x.width)

    def domain(self, stream: Operand, known: Known) -> Domain:
        d, last = known.of(stream.inputs[0]), float(self.divisor - 1)
        high = np.where(d.low < 0, last, np.minimum(d.high, last))
        domain = known.lanes(np.ones(stream.width), np.zeros(stream.width), high)
        if d.lo < 0:
            return domain
        return replace(domain, l1=min(domain.l1, d.l1), totals=np.minimum(domain.totals, d.totals))

    def evaluate(self, x: Array) -> Array:
        return x % self.divisor
