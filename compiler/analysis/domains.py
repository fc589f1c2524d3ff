"""Pass 2, domains: what every stream can hold under the input language.

A domain is a lattice (all values are multiples of a power of two), an interval, and two
sums: of the absolute values over the lanes of one position (l1: 1 for a one-hot) and of
one lane over a whole sequence (mass: how much a running sum can collect). Everything the
compiler promises about exactness is arithmetic on these four.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatchmethod

import numpy as np
from scipy import sparse

from compiler.analysis.linear_form import Form, port_form
from compiler.analysis.matrix_sums import MatrixSumsCache
from compiler.analysis.rectified_mass import rectified_mass
from compiler.analysis.units import array_unit, unit_of
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream
from compiler.language.types import Bool, Int, OneHot, Type

_BEYOND_FLOATS = 2**256
_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Domain:
    """All lanes of a stream hold multiples of `step` in [lo, hi]; step 0 means no lattice (reals).

    l1:   bound on Σ over lanes of |value| at one position.
    mass: bound on Σ over positions of |value| of one lane.
    """

    step: Fraction
    lo: Fraction
    hi: Fraction
    l1: Fraction
    mass: Fraction

    @property
    def bound(self) -> Fraction:
        return max(abs(self.lo), abs(self.hi))

    @property
    def steps(self) -> Fraction:
        """The bound in lattice steps: what must stay below 2^24 for float32 sums to be exact."""
        return self.bound / self.step if self.step else Fraction(0)

    @property
    def is_flag(self) -> bool:
        return self.step >= 1 and self.lo >= 0 and self.hi <= 1


def power_of_two(bound: Fraction) -> Fraction:
    """The least power of two that is at least the bound (1 for a bound of 0)."""
    if not bound:
        return Fraction(1)
    power = Fraction(2) ** (bound.numerator.bit_length() - bound.denominator.bit_length())
    return power if power >= bound else 2 * power


def _common_step(a: Domain, b: Domain) -> Fraction:
    """The lattice of values that come from either domain; none where one has none."""
    return unit_of(a.step, b.step) if a.step and b.step else Fraction(0)


class Domains:
    """The domains of streams, found once each, inputs first."""

    def __init__(self, language: InputLanguage | None, max_length: int):
        self.language = language
        self.max_length = max_length
        self._known: dict[Stream, Domain] = {}
        self._forms: dict[Stream, Form] = {}
        self._sums = MatrixSumsCache()

    def of(self, stream: Stream) -> Domain:
        pending = [stream]
        while pending:
            node = pending[-1]
            missing = [s for s in node.inputs if s not in self._known]
            if missing:
                pending += missing
            else:
                pending.pop()
                if node not in self._known:
                    self._known[node] = self._sharpened(node)
        return self._known[stream]

    def all(self, streams: Iterable[Stream]) -> dict[Stream, Domain]:
        """The domains of a circuit as written; CompileError where the author declared a type that cannot be shown."""
        found = {s: self.of(s) for s in streams}
        reasons = [(s, reason) for s in found if (reason := self._unshown(s))]
        if reasons:
            raise CompileError(reasons)
        return found

    def _unshown(self, stream: Stream) -> str | None:
        """Why the type of a stream does not follow from its operation and what it reads; None where it does."""
        operation, type = stream.operation, stream.type
        if isinstance(operation, ops.Decode):
            known = self._known[stream.inputs[0]]
            return (
                None
                if known.bound <= 1
                else f"it decodes numbers up to {known.bound}; a codeword has entries −1, 0 and 1"
            )
        if isinstance(operation, ops.Linear) and operation.type is None:
            return None
        known, claimed = self._of(operation, stream), self._known[stream]
        within = known.lo >= claimed.lo and known.hi <= claimed.hi or not isinstance(operation, (ops.Linear, ops.Embed))
        single = known.l1 <= 1 or not isinstance(type, OneHot) or not isinstance(operation, (ops.Linear, ops.Embed))
        if within and single and (not type.integral or known.step > 0 and known.step.denominator == 1):
            return None
        return f"it is declared {type}, and all that can be shown is {known.lo}…{known.hi}, Σ over lanes ≤ {known.l1}, step {known.step}"

    def meet(self, stream: Stream, other: Domain) -> None:
        """Record that the stream also satisfies another domain (it is known to equal another stream)."""
        own = self.of(stream)
        self._known[stream] = Domain(
            max(own.step, other.step),
            max(own.lo, other.lo),
            min(own.hi, other.hi),
            min(own.l1, other.l1),
            min(own.mass, other.mass),
        )

    def _sharpened(self, stream: Stream) -> Domain:
        """The operation's domain, cut to what the stream's type promises of itself."""
        domain = self._of(stream.operation, stream)
        type = stream.type
        lo, hi, l1 = domain.lo, domain.hi, min(domain.l1, domain.bound * stream.width)
        if isinstance(type, (Bool, OneHot)):
            lo, hi = max(lo, _ZERO), min(hi, _ONE)
        if isinstance(type, OneHot):
            l1 = min(l1, _ONE)
        elif isinstance(type, Int):
            lo = lo if type.lo is None else max(lo, Fraction(min(type.lo, 0)))
            hi = hi if type.hi is None else min(hi, Fraction(max(type.hi, 0)))
        bound = max(abs(lo), abs(hi))
        if bound > _BEYOND_FLOATS:
            raise CompileError([(stream, "its values could exceed 2^256, and no float sums such numbers exactly")])
        return Domain(domain.step, lo, hi, min(l1, bound * stream.width), min(domain.mass, bound * self.max_length))

    def _interval(self, step: Fraction, lo: Fraction, hi: Fraction, width: int) -> Domain:
        bound = max(abs(lo), abs(hi))
        return Domain(step, lo, hi, bound * width, bound * self.max_length)

    def _typed(self, type: Type) -> Domain:
        """The domain that a type alone promises (numeric inputs, flags)."""
        if isinstance(type, (Bool, OneHot)):
            return self._interval(_ONE, _ZERO, _ONE, type.width)
        lo = Fraction(type.lo) if getattr(type, "lo", None) is not None else Fraction(-(2**62))
        hi = Fraction(type.hi) if getattr(type, "hi", None) is not None else Fraction(2**62)
        return self._interval(Fraction(1 if type.integral else 0), lo, hi, type.width)

    @singledispatchmethod
    def _of(self, operation: ops.Operation, stream: Stream) -> Domain:
        raise CompileError(
            [(stream, f"no bounds are known of what {operation.symbol} gives, so nothing can be promised")]
        )

    @_of.register
    def _(self, operation: ops.Numbers, stream: Stream) -> Domain:
        return self._typed(operation.type)

    @_of.register
    def _(self, operation: ops.Constant, stream: Stream) -> Domain:
        values = operation.values
        step = unit_of(*values) or Fraction(1)
        return self._interval(step, min(*values, Fraction(0)), max(*values, Fraction(0)), stream.width)

    @_of.register
    def _(self, operation: ops.Position, stream: Stream) -> Domain:
        return self._interval(Fraction(1), Fraction(0), Fraction(self.max_length), 1)

    @_of.register
    def _(self, operation: ops.Embed, stream: Stream) -> Domain:
        table = operation.table
        if table.nnz == 0:
            return self._interval(Fraction(1), Fraction(0), Fraction(0), stream.width)
        lo, hi = Fraction(float(min(table.data.min(), 0))), Fraction(float(max(table.data.max(), 0)))
        sums = self._sums(table)
        return Domain(sums.step, lo, hi, sums.row, self._embedded_mass(table))

    def _embedded_mass(self, table: sparse.csr_array) -> Fraction:
        """The largest Σ_t |table[token_t, lane]| over lanes, by the language's bounds on repetition."""
        if self.language is None:
            return Fraction(float(abs(table).max())) * self.max_length
        columns = abs(table).tocsc()
        counts = np.diff(columns.indptr)
        single = np.flatnonzero(counts == 1)
        worst = 0.0
        if len(single):
            at = columns.indptr[single]
            worst = float((columns.data[at] * self.language.occurrences[columns.indices[at]]).max())
        for lane in np.flatnonzero(counts > 1):
            span = slice(columns.indptr[lane], columns.indptr[lane + 1])
            worst = max(worst, float(columns.data[span].max()) * self.language.max_count(columns.indices[span]))
        return Fraction(worst)

    @_of.register
    def _(self, operation: ops.Linear, stream: Stream) -> Domain:
        pairs = list(zip(operation.matrices, stream.inputs, strict=True))
        offset = sum(
            (m @ _column(s) for m, s in pairs if isinstance(s.operation, ops.Constant)), start=np.zeros(stream.width)
        )
        return self._linear(
            [(m, self._known[s]) for m, s in pairs if not isinstance(s.operation, ops.Constant)], stream.width, offset
        )

    def _linear(self, terms: list[tuple[sparse.csr_array, Domain]], width: int, offset: np.ndarray) -> Domain:
        """Interval arithmetic for Σ matrix·lanes + offset, with the tighter of the row-wise and the l1 bound per term."""
        low, high = offset.copy(), offset.copy()
        steps = [array_unit(offset)] if offset.any() else []
        l1, mass = (
            Fraction(float(np.abs(offset).sum())),
            Fraction(float(np.abs(offset).max(initial=0))) * self.max_length,
        )
        lattice = True
        for matrix, d in terms:
            if not len(matrix.data):
                continue
            sums = self._sums(matrix)
            cap = sums.largest * float(d.l1)
            high += np.minimum(sums.up * float(d.hi) + sums.down * float(d.lo), cap)
            low += np.maximum(sums.up * float(d.lo) + sums.down * float(d.hi), -cap)
            lattice = lattice and d.step > 0
            steps.append(sums.step * d.step)
            l1 += sums.column * d.l1
            mass += sums.row * d.mass
        lo, hi = Fraction(float(low.min(initial=0))), Fraction(float(high.max(initial=0)))
        step = unit_of(*steps) if lattice else Fraction(0)
        return Domain(step if steps else Fraction(1), lo, hi, l1, mass)

    @_of.register
    def _(self, operation: ops.Shift, stream: Stream) -> Domain:
        return self._with_zero(self._known[stream.inputs[0]])

    @staticmethod
    def _with_zero(d: Domain) -> Domain:
        return replace(d, lo=min(d.lo, _ZERO), hi=max(d.hi, _ZERO))

    @_of.register
    def _(self, operation: ops.Lti, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        gain = sum((abs(k) for k in operation.kernel), Fraction(0))
        domain = self._interval(
            d.step * (unit_of(*operation.kernel) or 1), -gain * d.bound, gain * d.bound, stream.width
        )
        return replace(domain, mass=min(domain.mass, gain * d.mass))

    @_of.register
    def _(self, operation: ops.Relu, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        alone = rectified_mass(
            port_form(stream.inputs[0], self._forms), stream.width, self.of, self._sums, self.max_length
        )
        domain = Domain(d.step, max(d.lo, Fraction(0)), max(d.hi, Fraction(0)), d.l1, min(d.mass, alone))
        positive = self._positive_part(stream.inputs[0])
        return (
            replace(domain, l1=min(domain.l1, positive.l1), mass=min(domain.mass, positive.mass))
            if positive
            else domain
        )

    def _positive_part(self, pre: Stream) -> Domain | None:
        """The domain of a Linear without its negative constants: relu(x − c) ≤ relu(x) for c ≥ 0."""
        if not isinstance(pre.operation, ops.Linear):
            return None
        kept = []
        for matrix, source in zip(pre.operation.matrices, pre.inputs, strict=True):
            negative = isinstance(source.operation, ops.Constant) and float((matrix @ _column(source)).max()) <= 0
            if not negative:
                kept.append((matrix, self._known[source]))
        return self._linear(kept, pre.width, np.zeros(pre.width))

    @_of.register
    def _(self, operation: ops.Clip, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        lo, hi = Fraction(operation.lo), Fraction(operation.hi)
        step = unit_of(Fraction(1), d.step, lo, hi) if d.step else Fraction(0)
        return self._interval(step, max(lo, min(d.lo, hi)), min(hi, max(d.hi, lo)), stream.width)

    @_of.register(ops.Compare)
    @_of.register(ops.SameSymbol)
    @_of.register(ops.Or)
    @_of.register(ops.Not)
    @_of.register(ops.OneHotOf)
    @_of.register(ops.Decode)
    def _(self, operation: ops.Operation, stream: Stream) -> Domain:
        return self._typed(Bool(stream.width))

    @_of.register
    def _(self, operation: ops.And, stream: Stream) -> Domain:
        operands = [self._known[s] for s in stream.inputs]
        widest = max(range(2), key=lambda i: stream.inputs[i].width)
        flags = self._typed(Bool(stream.width))
        return replace(flags, l1=min(flags.l1, operands[widest].l1), mass=min(flags.mass, *(d.mass for d in operands)))

    @_of.register
    def _(self, operation: ops.Select, stream: Stream) -> Domain:
        """Either value; with several conditions some lanes may come from each."""
        a, b = (self._known[s] for s in stream.inputs[1:])
        l1 = max(a.l1, b.l1) if stream.inputs[0].width == 1 else a.l1 + b.l1
        return Domain(_common_step(a, b), min(a.lo, b.lo), max(a.hi, b.hi), l1, a.mass + b.mass)

    @_of.register
    def _(self, operation: ops.Lookup, stream: Stream) -> Domain:
        entries = [Fraction(v) for v in operation.table]
        return self._interval(Fraction(1), min(*entries, Fraction(0)), max(*entries, Fraction(0)), 1)

    @_of.register(ops.Min)
    @_of.register(ops.Max)
    def _(self, operation: ops.Min, stream: Stream) -> Domain:
        a, b = (self._known[s] for s in stream.inputs)
        pick = max if isinstance(operation, ops.Max) else min
        return self._interval(_common_step(a, b), pick(a.lo, b.lo), pick(a.hi, b.hi), stream.width)

    @_of.register
    def _(self, operation: ops.Multiply, stream: Stream) -> Domain:
        a, b = (self._known[s] for s in stream.inputs)
        corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return self._interval(a.step * b.step, min(corners), max(corners), stream.width)

    @_of.register
    def _(self, operation: ops.Dot, stream: Stream) -> Domain:
        a, b = (self._known[s] for s in stream.inputs)
        reach = min(a.l1 * b.bound, a.bound * b.l1)
        return self._interval(a.step * b.step, -reach if min(a.lo, b.lo) < 0 else Fraction(0), reach, 1)

    @_of.register
    def _(self, operation: ops.ScaledSum, stream: Stream) -> Domain:
        value, weight, gate = (self._known[s] for s in stream.inputs)
        reach = gate.bound * self.sum_bound(stream)
        signed = min(value.lo, weight.lo, gate.lo) < 0
        return self._interval(
            value.step * weight.step * gate.step, -reach if signed else Fraction(0), reach, stream.width
        )

    def sum_bound(self, stream: Stream) -> Fraction:
        """A bound on the state of a ScaledSum."""
        value, weight = (self.of(s) for s in stream.inputs[:2])
        return min(value.mass * weight.bound, value.bound * weight.mass)

    @_of.register
    def _(self, operation: ops.Cumsum, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        lo = -d.mass if d.lo < 0 else Fraction(0)
        hi = d.mass if d.hi > 0 else Fraction(0)
        return self._interval(d.step, lo, hi, stream.width)

    @_of.register
    def _(self, operation: ops.Latch, stream: Stream) -> Domain:
        d = self._with_zero(self._known[stream.inputs[0]])
        return (
            self._interval(d.step, d.lo, d.hi, stream.width)
            if stream.inputs[1].width > 1
            else replace(d, mass=d.bound * self.max_length)
        )

    @_of.register
    def _(self, operation: ops.SumWhere, stream: Stream) -> Domain:
        value, when = (self._known[s] for s in stream.inputs)
        most = min(value.mass, value.bound * when.mass) if when.is_flag else value.mass
        return self._interval(
            value.step, -most if value.lo < 0 else Fraction(0), most if value.hi > 0 else Fraction(0), stream.width
        )

    @_of.register
    def _(self, operation: ops.GateSum, stream: Stream) -> Domain:
        bank, gate = (self._known[s] for s in stream.inputs)
        lo, hi = gate.l1 * min(bank.lo, Fraction(0)), gate.l1 * max(bank.hi, Fraction(0))
        return self._interval(bank.step * gate.step, lo, hi, stream.width)

    @_of.register
    def _(self, operation: ops.MemoryRead, stream: Stream) -> Domain:
        value, key, query = (self._known[s] for s in stream.inputs[:3])
        if operation.skip:
            read = self._of(replace(operation, skip=Fraction(0)), stream)
            step = unit_of(read.step, value.step * operation.skip) if read.step else Fraction(0)
            ends = [operation.skip * value.lo, operation.skip * value.hi]
            return self._interval(step, read.lo + min(ends), read.hi + max(ends), stream.width)
        if operation.policy != "sum":
            d = self._with_zero(value)
            return replace(d, mass=d.bound * self.max_length)
        hi = query.l1 * self.cell_bound(stream)
        signed = min(value.lo, key.lo, query.lo) < 0
        return self._interval(value.step * key.step * query.step, -hi if signed else Fraction(0), hi, stream.width)

    def cell_bound(self, stream: Stream) -> Fraction:
        """A bound on every entry of a memory's state."""
        value, key = (self.of(s) for s in stream.inputs[:2])
        if stream.operation.policy != "sum":
            return value.bound * key.bound
        writes = stream.operation.writes
        return value.bound * (key.mass if writes is None else min(key.mass, key.bound * writes))

    @_of.register
    def _(self, operation: ops.Count, stream: Stream) -> Domain:
        return self._interval(Fraction(1), Fraction(0), self._known[stream.inputs[0]].mass, stream.width)

    @_of.register
    def _(self, operation: ops.RunningMax, stream: Stream) -> Domain:
        d = self._with_zero(self._known[stream.inputs[0]])
        return self._interval(d.step, d.lo, d.hi, stream.width)


def _column(constant: Stream) -> np.ndarray:
    return np.array([float(v) for v in constant.operation.values])
