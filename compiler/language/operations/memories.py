"""Operations that keep what was written: latches, banks of them, keyed memories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from compiler.language.kinds import kinds_of, lane_by_lane, number_type, of_kinds
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise
from compiler.language.operations.wording import needs, same_width
from compiler.language.types import Bool, Code, Int, OneHot, Real, Type
from compiler.lattice.domain import Domain, products, raised, times, with_zero
from compiler.lattice.intervals import Value, hull
from compiler.lattice.units import unit_of

_ZERO, _ONE = Fraction(0), Fraction(1)


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

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.VALUE
    latches: ClassVar[bool] = True
    whole_state: ClassVar[bool] = True
    keeps_sizes: ClassVar[bool] = True
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
        if isinstance(value, Bool):
            return Bool(value.width * when.width)
        return of_kinds(np.tile(kinds_of(value), when.width))

    def problems(self, value: Type, when: Type) -> list[str]:
        return needs((Bool, OneHot), "a Bool or OneHot condition", when=when)

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number % widths[0]

    def lanes_read(self, read: Array, *widths: int) -> list[Array]:
        entries = read.reshape(-1, widths[0])
        return [np.logical_or.reduce(entries, axis=0), np.logical_or.reduce(entries, axis=1)]

    def domain(self, stream: Operand, known: Known) -> Domain:
        d, copies = with_zero(known.of(stream.inputs[0])), stream.inputs[1].width
        units, low, high = (np.tile(a, copies) for a in (d.units, d.low, d.high))
        return known.lanes(units, low, high, d.l1 * copies)

    def step(self, memory: Any, counted: int, value: Value, when: Value) -> tuple[Value | None, Any]:
        bank = memory or ((0, 0),) * (len(value) * len(when))
        new = value * len(when)
        flags = [flag for flag in when for _ in value]
        kept = tuple(
            v if f[0] >= 1 else old if f[1] < 1 else hull(old, v) for old, v, f in zip(bank, new, flags, strict=True)
        )
        return kept, kept

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

    A latch that does not forget: the step Δ writes, and there is no decay (in paper A's Theorem 1 it makes the
    Heaviside).
    """

    core: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.VALUE
    latches: ClassVar[bool] = True
    whole_state: ClassVar[bool] = True

    @property
    def forgets(self) -> bool:
        return False

    def result_type(self, value: Type, when: Type) -> Type:
        return of_kinds(np.tile(lane_by_lane(value), when.width))

    carries = Latch.carries
    lanes_read = Latch.lanes_read

    def domain(self, stream: Operand, known: Known) -> Domain:
        value, when = (known.of(s) for s in stream.inputs)
        most = np.tile(value.totals, stream.inputs[1].width)
        if when.is_flag:
            held = np.outer(when.totals, value.bounds).reshape(-1)
            most = np.minimum(most, raised(held, when.grain * value.grain, 1))
        low, high, units = (np.tile(a, stream.inputs[1].width) for a in (value.low, value.high, value.units))
        return known.lanes(units, np.where(low < 0, -most, 0), np.where(high > 0, most, 0))

    def evaluate(self, value: Array, when: Array) -> Array:
        held = (when >= 1).astype(np.int64).astype(value.dtype)
        return np.cumsum((held[..., None] * value[:, :, None, :]).reshape(*value.shape[:2], -1), axis=1)


@dataclass(frozen=True)
class GateSum(Operation):
    """Σ_k gate_k · bank_k: of a bank of K·w lanes, the entry (w lanes) that a one-hot gate selects."""

    opens_bank: ClassVar[bool] = True
    core: ClassVar[bool] = True

    def result_type(self, bank: Type, gate: Type) -> Type:
        width = bank.width // gate.width
        return Int(width=width) if bank.integral else Real(width=width)

    def problems(self, bank: Type, gate: Type) -> list[str]:
        found = needs((Bool, OneHot), "a Bool or OneHot gate", gate=gate)
        if bank.width % gate.width:
            found.append(f"its bank has {bank.width} lanes, which {gate.width} gates do not divide")
        return found

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number

    def domain(self, stream: Operand, known: Known) -> Domain:
        bank, gate = (known.of(s) for s in stream.inputs)
        entries = stream.inputs[1].width
        low, high, units = (a.reshape(entries, -1) for a in (bank.low, bank.high, bank.units))
        units = units.min(axis=0)
        units = np.where(np.isinf(units), np.inf, units * float(gate.step))
        high = times(np.maximum(high.max(axis=0), 0), gate.l1)
        return known.lanes(units, -times(np.maximum(-low.min(axis=0), 0), gate.l1), high)

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

    lane_wise: ClassVar[LaneWise] = LaneWise.VALUE
    keyed: ClassVar[bool] = True
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
        if not (key.integral and query.integral):
            return Real(width=value.width)
        return value if isinstance(value, Code) else number_type(value)

    def problems(self, value: Type, key: Type, query: Type, *when: Type) -> list[str]:
        found = same_width(key, query)
        if self.policy not in ("sum", "first", "last", "once"):
            found.append(f"its write policy is {self.policy!r:.60}, and it must be 'sum', 'first', 'last' or 'once'")
        elif self.policy != "sum":
            one_hots = {"key": key} if self.policy == "once" else {"key": key, "query": query}
            found += needs(OneHot, f"a OneHot key (the policy is {self.policy!r:.60})", **one_hots)
            if not isinstance(key, OneHot) and isinstance(value, OneHot):
                found.append(f"its value is {value} and its key {key}; are key and value swapped?")
        for flag in when:
            found += needs(Bool, "a Bool condition", when=flag)
            found += [] if flag.width == 1 else [f"its condition has {flag.width} lanes, and one is needed"]
        return found

    def carries(self, number: int, *widths: int) -> tuple[int, int]:
        return 0, number

    @property
    def write_policy(self) -> str:
        return self.policy

    @property
    def silenced_by(self) -> int | None:
        return None if self.skip else 2

    def written_once(self) -> Operation | None:
        return replace(self, policy="once") if self.policy == "sum" and not self.skip else None

    def cells(self, value: Domain, key: Domain) -> Array:
        """For each lane of the value a bound on its entries in an additive state."""
        writes = 1 if self.policy == "once" else self.writes
        most = key.total if writes is None else min(key.total, key.bound * writes)
        return np.minimum(times(value.bounds, most), times(value.totals, key.bound))

    def cell(self, value: Domain, key: Domain) -> Fraction:
        return value.bound * key.bound if self.policy != "sum" else Fraction(float(self.cells(value, key).max()))

    def formed(self, stream: Operand, known: Known) -> Fraction:
        value, key = (known.of(s) for s in stream.inputs[:2])
        return self.cell(value, key) / (value.step * key.step) if value.step * key.step else _ZERO

    def domain(self, stream: Operand, known: Known) -> Domain:
        value, key, query = (known.of(s) for s in stream.inputs[:3])
        if self.skip:
            read = replace(self, skip=_ZERO).domain(stream, known)
            step = unit_of(read.step, value.step * self.skip) if read.step else _ZERO
            ends = [self.skip * value.lo, self.skip * value.hi]
            return known.interval(step, read.lo + min(ends), read.hi + max(ends), stream.width)
        if self.policy != "sum" and isinstance(stream.inputs[2].type, OneHot):
            d = with_zero(value)
            return known.lanes(d.units, d.low, d.high, d.l1)
        met = min(key.l1 * query.bound, key.bound * query.l1)  # of one write with one query
        high = np.minimum(times(self.cells(value, key), query.l1), times(value.totals, met))
        signed = min(value.lo, key.lo, query.lo) < 0
        units = products(value.units, np.full(stream.width, float(key.step * query.step)))
        return known.lanes(np.where(np.isinf(value.units), np.inf, units), -high if signed else 0 * high, high)

    def evaluate(self, value: Array, key: Array, query: Array, *when: Array) -> Array:
        reads = _Entries(query)
        writes = reads if key is query and not when else _Entries(key * when[0] if when else key)
        order = np.argsort(writes.slot, kind="stable")  # of one slot in the order of time
        slots, given = writes.slot[order], _rows(value).take(writes.position[order], axis=0)
        begins = np.flatnonzero(np.diff(slots, prepend=-1))
        if self.policy == "first":
            given = given[np.repeat(begins, np.diff(begins, append=len(slots)))]
        elif self.policy != "last":
            given = _running_sums(writes.factor[order, None] * given, begins)
        held = np.zeros((len(reads.slot), value.shape[-1]), dtype=value.dtype)
        if len(slots):  # the last write of each read's slot up to its time: positions of one sequence are in order
            most = len(value) * value.shape[1]
            place = slots * most + writes.position[order]
            last = np.searchsorted(place, reads.slot * most + reads.position, side="right") - 1
            written = np.flatnonzero((last >= 0) & (slots[last] == reads.slot))
            held[written] = given.take(last[written], axis=0)
        out = reads.summed(reads.factor[:, None] * held, value)
        if not self.skip:
            return out
        return out + (self.skip if value.dtype == object else float(self.skip)) * value


def _running_sums(values: Array, begins: np.ndarray) -> Array:
    """values (entries, width), each with those before it of its run added; begins: where runs begin."""
    values = 0 + values
    step, ends = begins + 1, np.append(begins[1:], len(values))
    while len(going := np.flatnonzero(step < ends)):
        step, ends = step[going], ends[going]
        values[step] += values[step - 1]
        step = step + 1
    return values


def _rows(numbers: Array) -> Array:
    """(batch, time, width) as (positions, width)."""
    return numbers.reshape(-1, numbers.shape[-1])


class _Entries:
    """The entries of keys (batch, time, slots) that are not 0, in the order of their positions.

    position: flat indices into (batch, time); slot: each sequence has slots of its own.
    """

    def __init__(self, keys: Array):
        place = np.flatnonzero(keys != 0)
        self.position, slot = np.divmod(place, keys.shape[-1])
        self.slot = self.position // keys.shape[1] * keys.shape[-1] + slot
        self.factor = keys.reshape(-1)[place]

    def summed(self, values: Array, like: Array) -> Array:
        """The sum of the entries' values (entries, width) at each position, in the shape of `like`."""
        out = np.zeros(like.shape, like.dtype)
        first = np.flatnonzero(np.diff(self.position, prepend=-1))
        if len(first):
            alone = len(first) == len(values)
            _rows(out)[self.position[first]] = values if alone else np.add.reduceat(values, first)
        return out
