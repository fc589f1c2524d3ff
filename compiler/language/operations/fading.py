"""States that keep a factor of themselves at every step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise
from compiler.language.operations.wording import same_width
from compiler.language.types import Real, Type
from compiler.lattice.domain import Domain, summed, times

_ZERO, _ONE = Fraction(0), Fraction(1)

_SLOWEST = 1 << 64  # 1/(1 − decay) of states that fade more slowly than any module's


@dataclass(frozen=True)
class FadingSum(Operation):
    """Σ_{s≤t} decay^(t−s) · value_s: a state that keeps this factor of itself at every step (paper B, Theorem 1).

    decay: between 0 and 1, both excluded. The module keeps the nearest factor that a float32 A_log gives, so
    the result is a real number with a bounded error, whatever the value is.
    """

    lane_wise: ClassVar[LaneWise] = LaneWise.VALUE
    approximate: ClassVar[bool] = True
    core: ClassVar[bool] = True

    decay: Fraction

    @property
    def symbol(self) -> str:
        return "fading_sum"

    def written(self, value: str) -> str:
        return f"fading_sum({value}, {self.decay})"

    def result_type(self, value: Type) -> Type:
        return Real(width=value.width)

    def problems(self, value: Type) -> list[str]:
        return no_fading(self.decay)

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number

    def domain(self, stream: Operand, known: Known) -> Domain:
        """At most 1/(1 − decay) of the largest value at any one position, and of the sum of all over the whole
        sequence. Of T positions it is at most T of them: so the gain is a float for a decay however near to 1.
        """
        d = known.of(stream.inputs[0])
        gain = min(1 / (1 - self.decay), Fraction(max(known.max_length, _SLOWEST)))
        low, high = (np.minimum(times(b, gain), d.totals) for b in (np.maximum(-d.low, 0), np.maximum(d.high, 0)))
        units = np.where(np.isinf(d.units), np.inf, 0.0)
        return Domain(units, -low, high, summed(np.maximum(low, high)), times(d.totals, gain))

    def evaluate(self, value: Array) -> Array:
        decay = self.decay if value.dtype == object else float(self.decay)
        out = np.empty_like(value)
        state = np.zeros_like(value[:, 0])
        for t in range(value.shape[1]):
            state = decay * state + value[:, t]
            out[:, t] = state
        return out


@dataclass(frozen=True)
class SelectiveSum(Operation):
    """h ← decay^Δ · h + Δ · value with Δ = max(2·level − 1, 0): a state whose factor depends on the token (paper B,
    Theorem 1 with a_t = exp(Δ_t·A) and v_t = Δ_t·x_t).

    inputs: value (w lanes), level (1): whole numbers. Level 0 or less leaves the state as it is, bit for bit; level 1
    is one step of FadingSum, level 2 three, level 3 five of them, and so much is added of the value.
    """

    lane_wise: ClassVar[LaneWise] = LaneWise.VALUE
    approximate: ClassVar[bool] = True
    core: ClassVar[bool] = True

    decay: Fraction

    @property
    def symbol(self) -> str:
        return "selective_sum"

    def written(self, value: str, level: str) -> str:
        return f"fading_sum({value}, {self.decay}, level={level})"

    def result_type(self, value: Type, level: Type) -> Type:
        return Real(width=value.width)

    def problems(self, value: Type, level: Type) -> list[str]:
        found = [] if level.integral else [f"its level is {level}, and a whole number is needed"]
        if level.width != 1:
            found.append(f"its level has {level.width} lanes, and one for all lanes of the value is needed")
        return found + no_fading(self.decay)

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number

    def domain(self, stream: Operand, known: Known) -> Domain:
        """Between two positions that add something the state fades by a step at least: 1/(1 − decay) of the largest."""
        value, level = (known.of(s) for s in stream.inputs)
        most = max(2 * level.hi - 1, _ZERO)
        gain = most * min(1 / (1 - self.decay), Fraction(known.max_length))
        units = np.where(np.isinf(value.units), np.inf, 0.0)
        return known.lanes(units, -times(np.maximum(-value.low, 0), gain), times(np.maximum(value.high, 0), gain))

    def evaluate(self, value: Array, level: Array) -> Array:
        exact = value.dtype == object
        out = np.empty_like(value)
        state = np.zeros_like(value[:, 0])
        for t in range(value.shape[1]):
            steps = np.maximum(2 * level[:, t] - 1, 0)
            kept = np.array([[self.decay ** int(s) if exact else float(self.decay) ** s for s in r] for r in steps])
            state = kept.reshape(steps.shape) * state + steps * value[:, t]
            out[:, t] = state
        return out


@dataclass(frozen=True)
class FadingMemory(Operation):
    """Σ_{s≤t} decay^(t−s) · value_s · <key_s, query_t>: the output (6) of paper B's state, with one decay.

    inputs: value (w lanes), key (n), query (n). With `decay` as for FadingSum.
    """

    lane_wise: ClassVar[LaneWise] = LaneWise.VALUE
    approximate: ClassVar[bool] = True
    core: ClassVar[bool] = True

    decay: Fraction

    @property
    def symbol(self) -> str:
        return "fading_memory"

    def result_type(self, value: Type, key: Type, query: Type) -> Type:
        return Real(width=value.width)

    def problems(self, value: Type, key: Type, query: Type) -> list[str]:
        return same_width(key, query) + no_fading(self.decay)

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number

    def domain(self, stream: Operand, known: Known) -> Domain:
        """|Σ| ≤ |value| · Σ_n |key_n|·|query_n| · min(1/(1 − decay), T)."""
        value, key, query = (known.of(s) for s in stream.inputs)
        reach = min(key.l1 * query.bound, key.bound * query.l1) * min(1 / (1 - self.decay), Fraction(known.max_length))
        high = times(value.bounds, reach)
        signed = min(value.lo, key.lo, query.lo) < 0
        units = np.where(np.isinf(value.units), np.inf, 0.0)
        return known.lanes(units, -high if signed else 0 * high, high)

    def evaluate(self, value: Array, key: Array, query: Array) -> Array:
        entries = value[..., None, :] * key[..., None]
        batch, length = value.shape[:2]
        held = FadingSum(self.decay).evaluate(entries.reshape(batch, length, -1)).reshape(entries.shape)
        return (query[..., None] * held).sum(axis=2)


def no_fading(decay: Fraction) -> list[str]:
    """The complaint about a factor by which no state fades; [] for one between 0 and 1."""
    if 0 < decay < 1:
        return []
    instead = "a state without decay" if decay == 1 else "a factor between them"
    return [f"its decay is {decay}, and a state fades by a factor between 0 and 1, both excluded; use {instead}"]
