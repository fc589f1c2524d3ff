"""Operations that remember: running sums, latches, keyed memories, counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from compiler.language.operations.base import (
    Array,
    Operation,
    grouped,
    needs,
    same_width,
)
from compiler.language.types import Bool, Code, Int, OneHot, Real, Type


@dataclass(frozen=True)
class Cumsum(Operation):
    """The running sum, the present position included (a state column with A = 0)."""

    core: ClassVar[bool] = True

    def written(self, x: str) -> str:
        return f"{grouped(x)}.cumsum()"

    def result_type(self, x: Type) -> Type:
        return Int(width=x.width) if x.integral else Real(width=x.width)

    def evaluate(self, x: Array) -> Array:
        return np.cumsum(x, axis=1)


@dataclass(frozen=True)
class FadingSum(Operation):
    """Σ_{s≤t} decay^(t−s) · value_s: a state that keeps this factor of itself at every step (paper B, Theorem 1).

    decay: between 0 and 1, both excluded. The module keeps the nearest factor that a float32 A_log gives, so
    the result is a real number with a bounded error, whatever the value is.
    """

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

    def evaluate(self, value: Array) -> Array:
        decay = self.decay if value.dtype == object else float(self.decay)
        out = np.empty_like(value)
        state = np.zeros_like(value[:, 0])
        for t in range(value.shape[1]):
            state = decay * state + value[:, t]
            out[:, t] = state
        return out


@dataclass(frozen=True)
class FadingMemory(Operation):
    """Σ_{s≤t} decay^(t−s) · value_s · <key_s, query_t>: the outer-product state of paper B, (6), with one decay.

    inputs: value (w lanes), key (n), query (n). With `decay` as for FadingSum.
    """

    core: ClassVar[bool] = True

    decay: Fraction

    @property
    def symbol(self) -> str:
        return "fading_memory"

    def result_type(self, value: Type, key: Type, query: Type) -> Type:
        return Real(width=value.width)

    def problems(self, value: Type, key: Type, query: Type) -> list[str]:
        return same_width(key, query) + no_fading(self.decay)

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


@dataclass(frozen=True)
class ScaledSum(Operation):
    """gate_t · Σ_{s≤t} value_s · weight_s, lane by lane: a state column written through Δ and read through the gate."""

    core: ClassVar[bool] = True

    def result_type(self, value: Type, weight: Type, gate: Type) -> Type:
        whole = value.integral and weight.integral and gate.integral
        return Int(width=value.width) if whole else Real(width=value.width)

    def problems(self, value: Type, weight: Type, gate: Type) -> list[str]:
        return same_width(value, weight, gate)

    def evaluate(self, value: Array, weight: Array, gate: Array) -> Array:
        return gate * np.cumsum(value * weight, axis=1)


def _stored(value: Array, when: Array, t: int, bank: Array) -> Array:
    """The bank (batch, flags, width) after step t, whose flagged entries take the value."""
    flag = when[:, t][:, :, None]
    return np.where(flag, value[:, t][:, None, :], bank)


@dataclass(frozen=True)
class Latch(Operation):
    """For each flag of `when`, the value at the last position where it held; zeros before.

    inputs: value (w lanes), when (K flags); output K·w lanes, the flag's index outermost.
    A flag holds where it is at least 1, so that passes may hand over an integer that
    exceeds 0 exactly where the flag is 1 (softplus does the rectifying).
    """

    core: ClassVar[bool] = True

    @property
    def forgets(self) -> bool:
        """Whether a write erases what was there."""
        return True

    @property
    def symbol(self) -> str:
        return "latch" if self.forgets else "sum_where"

    def written(self, value: str, when: str) -> str:
        return f"present({when})" if value == "1" and self.forgets else f"{self.symbol}({value}, when={when})"

    def result_type(self, value: Type, when: Type) -> Type:
        if isinstance(value, (OneHot, Code)) and when.width == 1:
            return value
        width = value.width * when.width
        if isinstance(value, Bool):
            return Bool(width)
        return Int(width=width) if value.integral else Real(width=width)

    def problems(self, value: Type, when: Type) -> list[str]:
        return needs((Bool, OneHot), "a Bool or OneHot condition", when)

    def evaluate(self, value: Array, when: Array) -> Array:
        when = when >= 1
        batch, length, width = value.shape
        bank = np.zeros((batch, when.shape[-1], width), dtype=value.dtype)
        out = np.empty((batch, length, when.shape[-1] * width), dtype=value.dtype)
        for t in range(length):
            bank = _stored(value, when, t, bank)
            out[:, t] = bank.reshape(batch, -1)
        return out


@dataclass(frozen=True)
class SumWhere(Latch):
    """For each flag of `when`, the sum of the values at the positions where it held so far; lanes as for Latch.

    A latch that does not forget: the step Δ writes, and there is no decay (paper A, Theorem 1, with Δ for the
    Heaviside).
    """

    @property
    def forgets(self) -> bool:
        return False

    def result_type(self, value: Type, when: Type) -> Type:
        width = value.width * when.width
        return Int(width=width) if value.integral else Real(width=width)

    def evaluate(self, value: Array, when: Array) -> Array:
        held = (when >= 1).astype(np.int64).astype(value.dtype)
        return np.cumsum((held[..., None] * value[:, :, None, :]).reshape(*value.shape[:2], -1), axis=1)


@dataclass(frozen=True)
class GateSum(Operation):
    """Σ_k gate_k · bank_k: of a bank of K·w lanes, the entry (w lanes) that a one-hot gate selects."""

    core: ClassVar[bool] = True

    def result_type(self, bank: Type, gate: Type) -> Type:
        width = bank.width // gate.width
        return Int(width=width) if bank.integral else Real(width=width)

    def problems(self, bank: Type, gate: Type) -> list[str]:
        found = needs((Bool, OneHot), "a Bool or OneHot gate", gate)
        if bank.width % gate.width:
            found.append(f"its bank has {bank.width} lanes, which {gate.width} gates do not divide")
        return found

    def evaluate(self, bank: Array, gate: Array) -> Array:
        entries = bank.reshape(*gate.shape, -1)
        return (gate[..., None] * entries).sum(axis=2)


@dataclass(frozen=True)
class MemoryRead(Operation):
    """What a keyed memory answers to a query; a read sees the write of its own position.

    inputs: value (w lanes), key (n), query (n) and, optionally, a flag `when`.
    policy "sum":   Σ_{s≤t} when_s · value_s · <key_s, query_t>   (an outer-product state, A = 0)
    policy "first": the first value written under the queried alternative
    policy "last":  the last one
    policy "once":  the only one; a circuit is refused where it is not proved that no slot is written twice. A query
                    of several alternatives reads the sum of their values
    Nothing written under the query reads as zeros.

    writes: a bound on the number of writes under one key, where the author can prove a
    better one than the input language gives; None leaves it to the domains pass.
    skip: adds skip · value_t to what is read (y = C·h + D·x̂); the skip-path pass sets it.
    """

    core: ClassVar[bool] = True

    policy: str
    writes: int | None = None
    skip: Fraction = Fraction(0)

    @property
    def symbol(self) -> str:
        return f"memory[{self.policy}]"

    def written(self, value: str, key: str, query: str, *when: str) -> str:
        return f"memory.read({query})"

    def result_type(self, value: Type, key: Type, query: Type, *when: Type) -> Type:
        if self.skip:
            return Real(width=value.width)
        if self.policy != "sum" and isinstance(query, OneHot):
            return value
        if not (value.integral and key.integral and query.integral):
            return Real(width=value.width)
        return value if isinstance(value, Code) else Int(width=value.width)

    def problems(self, value: Type, key: Type, query: Type, *when: Type) -> list[str]:
        found = same_width(key, query)
        if self.policy not in ("sum", "first", "last", "once"):
            found.append(f"its write policy is {self.policy!r}, and it must be 'sum', 'first', 'last' or 'once'")
        elif self.policy != "sum":
            one_hots = (key,) if self.policy == "once" else (key, query)
            found += needs(OneHot, f"a OneHot key (the policy is {self.policy!r})", *one_hots)
            if not isinstance(key, OneHot) and isinstance(value, OneHot):
                found.append(f"its value is {value} and its key {key}; are key and value swapped?")
        for flag in when:
            found += needs(Bool, "a Bool condition", flag)
            found += [] if flag.width == 1 else [f"its condition has {flag.width} lanes, and one is needed"]
        return found

    def evaluate(self, value: Array, key: Array, query: Array, *when: Array) -> Array:
        masked = key * when[0] if when else key
        step = self._add if self.policy in ("sum", "once") else self._store
        state = np.zeros((value.shape[0], key.shape[-1], value.shape[-1]), dtype=value.dtype)
        written = np.zeros((value.shape[0], key.shape[-1], 1), dtype=bool)
        out = np.empty_like(value)
        for t in range(value.shape[1]):
            state, written = step(state, written, masked[:, t], value[:, t])
            out[:, t] = (query[:, t, :, None] * state).sum(axis=1)
        if not self.skip:
            return out
        return out + (self.skip if value.dtype == object else float(self.skip)) * value

    def _add(self, state: Array, written: Array, key: Array, value: Array) -> tuple[Array, Array]:
        return state + key[:, :, None] * value[:, None, :], written

    def _store(self, state: Array, written: Array, key: Array, value: Array) -> tuple[Array, Array]:
        here = (key != 0)[:, :, None]
        taken = here & ~written if self.policy == "first" else here
        return np.where(taken, value[:, None, :], state), written | here


@dataclass(frozen=True)
class Count(Operation):
    """How often the first flag held since the second last did (a reset itself counts 0)."""

    core: ClassVar[bool] = True

    def written(self, when: str, reset: str) -> str:
        return f"count({when}, reset={reset})"

    def result_type(self, when: Type, reset: Type) -> Type:
        return Int(0, None)

    def problems(self, when: Type, reset: Type) -> list[str]:
        found = needs(Bool, "a Bool", when, reset)
        return (
            found
            if when.width == reset.width == 1
            else [*found, "it counts single flags, and its inputs have more lanes"]
        )

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

    @property
    def symbol(self) -> str:
        return "running_max"

    def written(self, value: str, when: str) -> str:
        return f"running_max({value}, when={when})"

    def result_type(self, value: Type, when: Type) -> Type:
        if isinstance(value, (Bool, OneHot)):
            return Bool(value.width)
        return Int(width=value.width) if value.integral else Real(width=value.width)

    def problems(self, value: Type, when: Type) -> list[str]:
        found = needs(Bool, "a Bool condition", when)
        return found if when.width in (1, value.width) else found + same_width(value, when)

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
