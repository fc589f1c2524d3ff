"""Keyed memories whose key is two digits: the high one over channels, the low one over state columns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.memories import MemoryRead
from compiler.language.operations.wording import needs, same_width
from compiler.language.types import Bool, Int, OneHot, Real, Type
from compiler.lattice.domain import Domain


@dataclass(frozen=True)
class TwoDigitRead(Operation):
    """A keyed memory with a slot for each pair of digits; the two-digits pass writes it for one with too many columns.

    inputs: value (w lanes), high and low digit of the key, high and low digit of the query (one-hot each), and any
    number of flags that must all hold for a write.
    policy "sum" adds what is written, "first" keeps the first.

    writes: a bound on the number of writes to one slot; None where none is known.
    """

    policy: str
    writes: int | None = None

    @property
    def symbol(self) -> str:
        return f"memory[{self.policy}, two digits]"

    def result_type(self, value: Type, *digits: Type) -> Type:
        return Int(width=value.width) if value.integral else Real(width=value.width)

    def problems(self, value: Type, high: Type, low: Type, asked_high: Type, asked_low: Type, *when: Type) -> list[str]:
        found = same_width(high, asked_high) + same_width(low, asked_low)
        for flag in when:
            found += needs(Bool, "a Bool condition", when=flag)
        found += needs(OneHot, "a OneHot digit", high=high, low=low, asked_high=asked_high, asked_low=asked_low)
        if self.policy not in ("sum", "first"):
            found.append(f"its write policy is {self.policy!r:.60}, and it must be 'sum' or 'first'")
        return found + [f"its condition has {w.width} lanes, and one is needed" for w in when if w.width != 1]

    def bounds(self, value: Domain, *digits: Domain, length: int) -> tuple[Fraction, Fraction, Fraction]:
        """What was written under one slot is at most all that was written."""
        return value.step, -value.total if value.lo < 0 else Fraction(0), value.total

    def evaluate(
        self, value: Array, high: Array, low: Array, asked_high: Array, asked_low: Array, *when: Array
    ) -> Array:
        held = np.prod([1 + 0 * high[..., :1], *when], axis=0)
        return MemoryRead(self.policy).evaluate(value, _slots(high * held, low), _slots(asked_high, asked_low))


@dataclass(frozen=True)
class GatedRead(Operation):
    """Σ_h gate_h · Σ_{s≤t} bank_{h,s} · <key_s, query_t>: of several additive memories the one that a gate opens.

    inputs: bank (H·w lanes, the entry of the gate outermost), key (n), query (n), gate (H lanes); w lanes come out.

    writes: a bound on the number of writes to one column of one lane of the bank; None where none is known.
    """

    keyed: ClassVar[bool] = True
    core: ClassVar[bool] = True

    writes: int | None = None

    @property
    def symbol(self) -> str:
        return "gated_memory"

    def result_type(self, bank: Type, key: Type, query: Type, gate: Type) -> Type:
        width = bank.width // gate.width
        return Int(width=width) if bank.integral and key.integral and query.integral else Real(width=width)

    def problems(self, bank: Type, key: Type, query: Type, gate: Type) -> list[str]:
        found = same_width(key, query) + needs((Bool, OneHot), "a Bool or OneHot gate", gate=gate)
        if bank.width % gate.width:
            found.append(f"its bank has {bank.width} lanes, which {gate.width} gates do not divide")
        return found

    def bounds(
        self, bank: Domain, key: Domain, query: Domain, gate: Domain, length: int
    ) -> tuple[Fraction, Fraction, Fraction]:
        reach = self.cell(bank, key) * query.l1 * gate.l1
        signed = min(bank.lo, key.lo, query.lo) < 0
        return bank.step * key.step * query.step * gate.step, -reach if signed else Fraction(0), reach

    def cell(self, bank: Domain, key: Domain) -> Fraction:
        """A bound on every entry of the state."""
        most = key.total if self.writes is None else min(key.total, key.bound * self.writes)
        return min(bank.bound * most, bank.total * key.bound)

    def formed(self, stream: Operand, known: Known) -> Fraction:
        bank, key = (known.of(s) for s in stream.inputs[:2])
        return self.cell(bank, key) / (bank.step * key.step) if bank.step * key.step else Fraction(0)

    def evaluate(self, bank: Array, key: Array, query: Array, gate: Array) -> Array:
        read = MemoryRead("sum").evaluate(bank, key, query)
        return (gate[..., None] * read.reshape(*gate.shape, -1)).sum(axis=2)


def _slots(high: Array, low: Array) -> Array:
    """A one-hot over pairs of digits: (batch, time, H·n)."""
    return (high[..., :, None] * low[..., None, :]).reshape(*high.shape[:2], -1)
