"""Operations that add up or compare the past: running sums, counts, running maxima."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from compiler.language.kinds import kinds_of, number_type, of_kinds
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise
from compiler.language.operations.wording import called, needs, same_width
from compiler.language.types import Bool, Int, OneHot, Type
from compiler.lattice.domain import Domain, with_zero
from compiler.lattice.intervals import Value, grown

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Cumsum(Operation):
    """The running sum, the present position included (a state column with A = 0)."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    accumulates: ClassVar[bool] = True
    whole_state: ClassVar[bool] = True
    core: ClassVar[bool] = True

    def written(self, x: str) -> str:
        return f"{called(x)}.cumsum()"

    def result_type(self, x: Type) -> Type:
        return number_type(x)

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number

    def domain(self, stream: Operand, known: Known) -> Domain:
        d = known.of(stream.inputs[0])
        return known.lanes(d.units, np.where(d.low < 0, -d.totals, 0), np.where(d.high > 0, d.totals, 0))

    def step(self, memory: Any, counted: int, x: Value) -> tuple[Value | None, Any]:
        if any(lo < 0 for lo, _ in x):
            return None, memory or "lost"
        if memory == "lost":
            return None, memory
        total = grown(((0, 0),) * len(x) if memory is None else memory, x, counted)
        return total, total

    def evaluate(self, x: Array) -> Array:
        return np.cumsum(x, axis=1)


@dataclass(frozen=True)
class ScaledSum(Operation):
    """gate_t · Σ_{s≤t} value_s · weight_s, lane by lane: a state column written through Δ and read through the gate."""

    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    halved: ClassVar[bool] = True
    core: ClassVar[bool] = True

    @property
    def symbol(self) -> str:
        return "scaled_sum"

    def result_type(self, value: Type, weight: Type, gate: Type) -> Type:
        return number_type(value, weight, gate)

    def problems(self, value: Type, weight: Type, gate: Type) -> list[str]:
        return same_width(value, weight, gate)

    @staticmethod
    def state(value: Domain, weight: Domain) -> Fraction:
        """A bound on what it adds up."""
        return min(value.total * weight.bound, value.bound * weight.total)

    def formed(self, stream: Operand, known: Known) -> Fraction:
        value, weight = (known.of(s) for s in stream.inputs[:2])
        return self.state(value, weight) / (value.step * weight.step) if value.step * weight.step else _ZERO

    def domain(self, stream: Operand, known: Known) -> Domain:
        value, weight, gate = (known.of(s) for s in stream.inputs)
        reach = gate.bound * self.state(value, weight)
        signed = min(value.lo, weight.lo, gate.lo) < 0
        return known.interval(value.step * weight.step * gate.step, -reach if signed else _ZERO, reach, stream.width)

    def evaluate(self, value: Array, weight: Array, gate: Array) -> Array:
        return gate * np.cumsum(value * weight, axis=1)


@dataclass(frozen=True)
class Count(Operation):
    """How often the first flag held since the second last did (a reset itself counts 0)."""

    followed: ClassVar[bool] = True
    counts: ClassVar[bool] = True
    whole_state: ClassVar[bool] = True
    core: ClassVar[bool] = True

    def written(self, when: str, reset: str) -> str:
        return f"count({when}, reset={reset})"

    def result_type(self, when: Type, reset: Type) -> Type:
        return Int(0, None)

    def problems(self, when: Type, reset: Type) -> list[str]:
        found = needs(Bool, "a Bool", when=when, reset=reset)
        return (
            found
            if when.width == reset.width == 1
            else [*found, "it counts single flags, and its inputs have more lanes"]
        )

    def domain(self, stream: Operand, known: Known) -> Domain:
        when, reset = stream.inputs
        path = known.heaviest(when, reset)
        most = min(known.of(when).total, Fraction(path)) if np.isfinite(path) else known.of(when).total
        return known.interval(_ONE, _ZERO, most, stream.width)

    def step(self, memory: Any, counted: int, when: Value, reset: Value) -> tuple[Value | None, Any]:
        ((least, most),) = reset
        ((lo, hi),) = grown(((0, 0),) if memory is None else memory, when, counted)
        kept = ((0, 0),) if least >= 1 else ((0 if most >= 1 else lo, hi),)
        return kept, kept

    def evaluate(self, when: Array, reset: Array) -> Array:
        out = np.empty_like(when)
        running = np.zeros_like(when[:, 0])
        for t in range(when.shape[1]):
            running = (running + when[:, t]) * (1 - reset[:, t])
            out[:, t] = running
        return out


@dataclass(frozen=True)
class RunningMax(Operation):
    """The largest value so far at positions where the flag holds; 0 before there is one."""

    lane_wise: ClassVar[LaneWise] = LaneWise.EACH

    @property
    def symbol(self) -> str:
        return "running_max"

    def written(self, value: str, when: str) -> str:
        return f"running_max({value}, when={when})"

    def result_type(self, value: Type, when: Type) -> Type:
        if isinstance(value, (Bool, OneHot)):
            return Bool(value.width)
        return of_kinds(kinds_of(value))

    def problems(self, value: Type, when: Type) -> list[str]:
        found = needs(Bool, "a Bool condition", when=when)
        return found if when.width in (1, value.width) else found + same_width(value, when)

    def domain(self, stream: Operand, known: Known) -> Domain:
        d = with_zero(known.of(stream.inputs[0]))
        return known.lanes(d.units, d.low, d.high)

    def evaluate(self, value: Array, when: Array) -> Array:
        out = np.empty_like(value)
        best = np.zeros_like(value[:, 0])
        seen = np.zeros(best.shape, dtype=bool)
        for t in range(value.shape[1]):
            flag = np.broadcast_to(when[:, t] != 0, best.shape)
            best = np.where(flag & (~seen | (value[:, t] > best)), value[:, t], best)
            seen = seen | flag
            out[:, t] = best
        return out
