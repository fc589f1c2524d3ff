"""Pass 2, domains: what every stream can hold under the input language.

A domain is, for every lane, a lattice (all values are multiples of a power of two), an interval
and a sum over a whole sequence (mass: how much a running sum can collect), and one sum over the
lanes of a position (l1: 1 for a one-hot). Everything the compiler promises about exactness is
arithmetic on these four.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import singledispatchmethod

import numpy as np
from scipy import sparse

from compiler.analysis.domain import Domain, down, in_units, least_unit, outward, raised, times, total, up
from compiler.analysis.heaviest_walk import heaviest_walk
from compiler.analysis.linear_form import Form, port_form
from compiler.analysis.matrix_sums import MatrixSums, MatrixSumsCache
from compiler.analysis.rectified_mass import rectified_masses
from compiler.analysis.units import array_units, unit_of
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream, operation_of
from compiler.language.types import Bool, Int, OneHot, Real, Type

_RANGE = 2.0**256  # beyond, and below its inverse, products of bounds could leave the range of float64
_ZERO, _ONE = Fraction(0), Fraction(1)


class Domains:
    """The domains of streams, found once each, inputs first."""

    def __init__(self, language: InputLanguage | None, max_length: int):
        self.language = language
        self.max_length = max_length
        self._known: dict[Stream, Domain] = {}
        self._forms: dict[Stream, Form] = {}
        self.sums = MatrixSumsCache()

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

    def fits_float64(self, stream: Stream) -> bool:
        """Whether float64 arrays run the operation without rounding, whatever the order of its sums."""
        domain = self.of(stream)
        steps = [domain.steps, *(self.of(s).steps for s in stream.inputs)]
        if isinstance(stream.operation, ops.Linear):
            steps.append(self.partial_sum(zip(stream.operation.matrices, stream.inputs, strict=True)))
        elif isinstance(stream.operation, ops.Lti):
            gain = sum((abs(k) for k in stream.operation.kernel), _ZERO)
            steps.append(in_units(times(self.of(stream.inputs[0]).bounds, gain), domain.units))
        elif isinstance(stream.operation, ops.MemoryRead):
            value, key = (self.of(s) for s in stream.inputs[:2])
            steps.append(self.cell_bound(stream) / (value.step * key.step) if value.step * key.step else _ZERO)
        elif isinstance(stream.operation, ops.ScaledSum):
            value, weight = (self.of(s) for s in stream.inputs[:2])
            steps.append(self.sum_bound(stream) / (value.step * weight.step) if value.step * weight.step else _ZERO)
        return domain.step > 0 and max(steps) < 2**51

    def partial_sum(self, terms: Iterable[tuple[sparse.csr_array, Stream]]) -> Fraction:
        """The largest partial sum of a row of Σ matrix·lanes, in units of the row.

        Rows that read real numbers count as 0.
        """
        known = [(matrix, self.of(s)) for matrix, s in terms]
        parts = [self.sums(matrix).of(domain, up(domain.l1)) for matrix, domain in known]
        reach = np.maximum(sum(p.up for p in parts), sum(p.down for p in parts))
        reach = raised(reach, min(least_unit(a) for p in parts for a in (p.up, p.down)), len(parts))
        return in_units(reach, np.minimum.reduce([p.units for p in parts]))

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
        if isinstance(operation, ops.MemoryRead) and operation.policy == "once":
            from compiler.analysis.written_once import doubt  # which asks for domains

            return doubt(stream, self)
        if isinstance(operation, ops.Linear) and operation.type is None:
            return None
        known, claimed = self._of(operation, stream), self._known[stream]
        within = known.lo >= claimed.lo and known.hi <= claimed.hi or not isinstance(operation, (ops.Linear, ops.Embed))
        single = known.l1 <= 1 or not isinstance(type, OneHot) or not isinstance(operation, (ops.Linear, ops.Embed))
        if within and single and (not type.integral or known.step > 0 and known.step.denominator == 1):
            return None
        return (
            f"it is declared {type}, and all that can be shown is {known.lo}…{known.hi}, Σ over lanes ≤ "
            f"{known.l1}, step {known.step}"
        )

    def meet(self, stream: Stream, other: Domain) -> None:
        """Record that the stream also satisfies another domain (it is known to equal another stream)."""
        own = self.of(stream)
        self._known[stream] = Domain(
            np.maximum(own.units, other.units),
            np.maximum(own.low, other.low),
            np.minimum(own.high, other.high),
            min(own.l1, other.l1),
            np.minimum(own.masses, other.masses),
        )

    def bounded(self, stream: Stream, bounds: np.ndarray) -> None:
        """Record that no lane of the stream exceeds these bounds."""
        own = self.of(stream)
        self.meet(stream, replace(own, low=-bounds, high=bounds))

    def _sharpened(self, stream: Stream) -> Domain:
        """The operation's domain, cut to what the stream's type promises of itself."""
        domain = self._of(stream.operation, stream)
        type, low, high, l1 = stream.type, domain.low, domain.high, domain.l1
        if isinstance(type, (Bool, OneHot)):
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
        if isinstance(type, OneHot):
            l1 = min(l1, _ONE)
        elif isinstance(type, Int):
            low = low if type.lo is None else np.maximum(low, down(Fraction(min(type.lo, 0))))
            high = high if type.hi is None else np.minimum(high, up(Fraction(max(type.hi, 0))))
        bounds = np.maximum(np.abs(low), np.abs(high))
        units = np.where(bounds == 0, np.inf, domain.units)
        if not bounds.max(initial=0) <= _RANGE:
            raise CompileError([(stream, "its values could exceed 2^256, and no float sums such numbers exactly")])
        if (units[units > 0] < 1 / _RANGE).any():
            raise CompileError([(stream, "its values are finer than 2^−256, and no float sums such numbers exactly")])
        masses = np.minimum(domain.masses, times(bounds, Fraction(self.max_length)))
        return Domain(units, low, high, min(l1, total(bounds)), masses)

    def _lanes(self, units: np.ndarray, low: np.ndarray, high: np.ndarray, l1: Fraction | None = None) -> Domain:
        """A domain of which the sums follow from the bounds."""
        bounds = np.maximum(np.abs(low), np.abs(high))
        return Domain(
            units, low, high, total(bounds) if l1 is None else l1, times(bounds, Fraction(max(0, self.max_length)))
        )

    def _interval(self, step: Fraction, lo: Fraction, hi: Fraction, width: int) -> Domain:
        """The same domain for every lane."""
        return self._lanes(np.full(width, float(step)), np.full(width, down(lo)), np.full(width, up(hi)))

    def _typed(self, type: Type) -> Domain:
        """The domain that a type alone promises (numeric inputs, flags)."""
        if isinstance(type, (Bool, OneHot)):
            return self._interval(_ONE, _ZERO, _ONE, type.width)
        lo, hi = (type.lo, type.hi) if isinstance(type, (Int, Real)) else (None, None)
        least = Fraction(-(2**62)) if lo is None else Fraction(lo)
        greatest = Fraction(2**62) if hi is None else Fraction(hi)
        return self._interval(Fraction(1 if type.integral else 0), least, greatest, type.width)

    @singledispatchmethod
    def _of(self, operation: ops.Operation, stream: Stream) -> Domain:
        bounds = operation.bounds(*(self._known[s] for s in stream.inputs), length=self.max_length)
        if bounds is not None:
            return self._interval(*bounds, stream.width)
        raise CompileError(
            [(stream, f"no bounds are known of what {operation.symbol} gives, so nothing can be promised")]
        )

    @_of.register
    def _(self, operation: ops.Numbers, stream: Stream) -> Domain:
        return self._typed(operation.type)

    @_of.register
    def _(self, operation: ops.Constant, stream: Stream) -> Domain:
        return _with_zero(self._held(operation))

    def _held(self, operation: ops.Constant) -> Domain:
        """A constant at the positions of the sequence (before its start it is 0)."""
        units = np.array([float(unit_of(v)) if v else np.inf for v in operation.values])
        return self._lanes(
            units, np.array([down(v) for v in operation.values]), np.array([up(v) for v in operation.values])
        )

    @_of.register
    def _(self, operation: ops.Position, stream: Stream) -> Domain:
        return self._interval(_ONE, _ZERO, Fraction(self.max_length), 1)

    @_of.register
    def _(self, operation: ops.Embed, stream: Stream) -> Domain:
        sums = self._checked(operation.table, stream)
        table, width = sparse.csr_array(operation.table.T), stream.width
        lanes = np.repeat(np.arange(width), np.diff(table.indptr))
        low, high, units = np.zeros(width), np.zeros(width), np.full(width, np.inf)
        np.minimum.at(low, lanes, table.data)
        np.maximum.at(high, lanes, table.data)
        np.minimum.at(units, lanes, array_units(table.data))
        rows = raised(np.bincount(sums.rows, sums.size, 1), sums.grain, sums.terms)
        return Domain(units, low, high, Fraction(float(rows.max())), self._embedded_masses(table))

    def _embedded_masses(self, columns: sparse.csr_array) -> np.ndarray:
        """Bounds on Σ_t |table[token_t, lane]|, by the language's bounds on repetition.

        columns: (lanes × vocabulary).
        """
        size, counts = np.abs(columns.data), np.diff(columns.indptr)
        masses = np.zeros(len(counts))
        single = np.flatnonzero(counts == 1)
        at = columns.indptr[single]
        many = np.flatnonzero(counts > 1)
        if self.language is None:
            masses[single] = size[at] * self.max_length
        else:
            masses[single] = size[at] * self.language.occurrences[columns.indices[at]]
        for lane in many:
            span = slice(columns.indptr[lane], columns.indptr[lane + 1])
            most = self.max_length if self.language is None else self.language.max_count(columns.indices[span])
            masses[lane] = size[span].max() * most
        return raised(masses, least_unit(size), 1)

    def _checked(self, matrix: sparse.csr_array, stream: Stream) -> MatrixSums:
        sums = self.sums(matrix)
        if sums.spans:
            raise CompileError(
                [(stream, "its weights leave 2^−300 … 2^300, and no float sums such multiples exactly; scale them")]
            )
        return sums

    @_of.register
    def _(self, operation: ops.Linear, stream: Stream) -> Domain:
        return self._linear(list(zip(operation.matrices, stream.inputs, strict=True)), stream)

    def _linear(self, terms: list[tuple[sparse.csr_array, Stream]], stream: Stream) -> Domain:
        """Interval arithmetic for Σ matrix·lanes, with the tighter of the row-wise and the l1 bound per term."""
        domains = [
            self._held(s.operation) if isinstance(s.operation, ops.Constant) else self._known[s] for _, s in terms
        ]
        parts = [self._checked(m, stream).of(d, up(d.l1)) for (m, _), d in zip(terms, domains, strict=True)]
        width = stream.width
        if not parts:
            return self._interval(_ONE, _ZERO, _ZERO, width)
        low, high = _added([p.low for p in parts]), _added([p.high for p in parts])
        ends = [a for p in parts for a in (p.low, p.high)]
        if len(parts) > 1:
            reach = _added([np.maximum(np.abs(p.low), np.abs(p.high)) for p in parts])
            low, high = outward(low, high, reach, min(map(least_unit, ends)), len(parts))
        units = parts[0].units
        for part in parts[1:]:
            units = np.minimum(units, part.units)
        masses = raised(_added([p.masses for p in parts]), min(least_unit(p.masses) for p in parts), len(parts))
        l1 = sum((self.sums(m).column * d.l1 for (m, _), d in zip(terms, domains, strict=True)), Fraction(0))
        return Domain(units, np.minimum(low, 0), np.maximum(high, 0), l1, masses)

    @_of.register
    def _(self, operation: ops.Shift, stream: Stream) -> Domain:
        return _with_zero(self._known[stream.inputs[0]])

    @_of.register
    def _(self, operation: ops.Lti, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        gain = sum((abs(k) for k in operation.kernel), Fraction(0))
        bounds = times(d.bounds, gain)
        domain = self._lanes(d.units * float(unit_of(*operation.kernel) or 1), -bounds, bounds)
        return replace(domain, masses=np.minimum(domain.masses, times(d.masses, gain)))

    @_of.register
    def _(self, operation: ops.Relu, stream: Stream) -> Domain:
        pre = stream.inputs[0]
        d = self._known[pre]
        alone = rectified_masses(port_form(pre, self._forms), stream.width, self.of, self.sums, self.max_length)
        l1, masses = d.l1, np.minimum(d.masses, alone)
        if isinstance(pre.operation, ops.Linear):  # relu(x − c) ≤ relu(x) for c ≥ 0
            terms = list(zip(pre.operation.matrices, pre.inputs, strict=True))
            kept = [(m, s) for m, s in terms if not self._lowers(m, s.operation)]
            if len(kept) < len(terms):
                positive = self._linear(kept, pre)
                l1, masses = min(l1, positive.l1), np.minimum(masses, positive.masses)
        return Domain(d.units, np.maximum(d.low, 0), np.maximum(d.high, 0), l1, masses)

    def _lowers(self, matrix: sparse.csr_array, operation: ops.Operation) -> bool:
        """Whether it is a constant of which this multiple adds at most 0 to every row."""
        if not isinstance(operation, ops.Constant):
            return False
        held = self._held(operation)
        return bool(self.sums(matrix).of(held, up(held.l1)).high.max() <= 0)

    @_of.register
    def _(self, operation: ops.Clip, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        lo, hi = Fraction(operation.lo), Fraction(operation.hi)
        ends = float(unit_of(_ONE, lo, hi))
        low, high = np.clip(d.low, down(lo), up(hi)), np.clip(d.high, down(lo), up(hi))
        return self._lanes(np.minimum(d.units, ends), low, high)

    @_of.register
    def _(self, operation: ops.FloorDivide, stream: Stream) -> Domain:
        d, n = self._known[stream.inputs[0]], float(operation.divisor)
        low, high = outward(np.floor_divide(d.low, n), np.floor_divide(d.high, n), d.bounds, 1.0, 1)
        domain = self._lanes(np.ones(stream.width), low, high)
        return replace(domain, l1=min(domain.l1, d.l1), masses=np.minimum(domain.masses, d.masses))

    @_of.register
    def _(self, operation: ops.Modulo, stream: Stream) -> Domain:
        d, last = self._known[stream.inputs[0]], float(operation.divisor - 1)
        high = np.where(d.low < 0, last, np.minimum(d.high, last))
        domain = self._lanes(np.ones(stream.width), np.zeros(stream.width), high)
        if d.lo < 0:
            return domain
        return replace(domain, l1=min(domain.l1, d.l1), masses=np.minimum(domain.masses, d.masses))

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
        masses = np.minimum(operands[0].masses, operands[1].masses)
        return replace(flags, l1=min(flags.l1, operands[widest].l1), masses=np.minimum(flags.masses, masses))

    @_of.register
    def _(self, operation: ops.Select, stream: Stream) -> Domain:
        """Either value; with several conditions some lanes may come from each."""
        a, b = (self._known[s] for s in stream.inputs[1:])
        l1 = max(a.l1, b.l1) if stream.inputs[0].width == 1 else a.l1 + b.l1
        domain = self._lanes(np.minimum(a.units, b.units), np.minimum(a.low, b.low), np.maximum(a.high, b.high), l1)
        return replace(domain, masses=raised(a.masses + b.masses, min(a.grain, b.grain), 2))

    @_of.register
    def _(self, operation: ops.Lookup, stream: Stream) -> Domain:
        entries = [Fraction(v) for v in operation.table]
        return self._interval(_ONE, min(*entries, _ZERO), max(*entries, _ZERO), 1)

    @_of.register(ops.Min)
    @_of.register(ops.Max)
    def _(self, operation: ops.Min, stream: Stream) -> Domain:
        a, b = (self._known[s] for s in stream.inputs)
        pick = np.maximum if isinstance(operation, ops.Max) else np.minimum
        return self._lanes(np.minimum(a.units, b.units), pick(a.low, b.low), pick(a.high, b.high))

    @_of.register
    def _(self, operation: ops.Multiply, stream: Stream) -> Domain:
        a, b = (self._known[s] for s in stream.inputs)
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        ends = np.minimum.reduce(corners), np.maximum.reduce(corners)
        low, high = outward(*ends, a.bounds * b.bounds, a.grain * b.grain, 1)
        still = np.isinf(a.units) | np.isinf(b.units)
        return self._lanes(np.where(still, np.inf, _products(a.units, b.units)), low, high)

    @_of.register
    def _(self, operation: ops.Dot, stream: Stream) -> Domain:
        a, b = (self._known[s] for s in stream.inputs)
        reach = min(a.l1 * b.bound, a.bound * b.l1)
        return self._interval(a.step * b.step, -reach if min(a.lo, b.lo) < 0 else _ZERO, reach, 1)

    @_of.register
    def _(self, operation: ops.Decide, stream: Stream) -> Domain:
        scores = self._known[stream.inputs[0]]
        added = np.zeros(stream.width)
        added[list(operation.tokens)] = up(operation.most(scores.hi - scores.lo))
        unit = unit_of(scores.step, _ONE) if scores.step else _ZERO
        low, high = outward(scores.low, scores.high + added, scores.bounds + added, scores.grain, 1)
        return self._lanes(np.full(stream.width, float(unit)), low, high)

    @_of.register
    def _(self, operation: ops.ScaledSum, stream: Stream) -> Domain:
        value, weight, gate = (self._known[s] for s in stream.inputs)
        reach = gate.bound * self.sum_bound(stream)
        signed = min(value.lo, weight.lo, gate.lo) < 0
        return self._interval(value.step * weight.step * gate.step, -reach if signed else _ZERO, reach, stream.width)

    def sum_bound(self, stream: Stream) -> Fraction:
        """A bound on the state of a ScaledSum."""
        value, weight = (self.of(s) for s in stream.inputs[:2])
        return min(value.mass * weight.bound, value.bound * weight.mass)

    @_of.register
    def _(self, operation: ops.Cumsum, stream: Stream) -> Domain:
        d = self._known[stream.inputs[0]]
        return self._lanes(d.units, np.where(d.low < 0, -d.masses, 0), np.where(d.high > 0, d.masses, 0))

    @_of.register
    def _(self, operation: ops.FadingSum, stream: Stream) -> Domain:
        """At most 1/(1 − decay) of the largest value at any one position, and of the sum of all over the whole
        sequence.
        """
        d = self._known[stream.inputs[0]]
        gain = 1 / (1 - operation.decay)
        low, high = (np.minimum(times(b, gain), d.masses) for b in (np.maximum(-d.low, 0), np.maximum(d.high, 0)))
        units = np.where(np.isinf(d.units), np.inf, 0.0)
        return Domain(units, -low, high, total(np.maximum(low, high)), times(d.masses, gain))

    @_of.register
    def _(self, operation: ops.FadingMemory, stream: Stream) -> Domain:
        """|Σ| ≤ |value| · Σ_n |key_n|·|query_n| · min(1/(1 − decay), T)."""
        value, key, query = (self._known[s] for s in stream.inputs)
        reach = min(key.l1 * query.bound, key.bound * query.l1) * min(1 / (1 - operation.decay), self.max_length)
        high = times(value.bounds, reach)
        signed = min(value.lo, key.lo, query.lo) < 0
        units = np.where(np.isinf(value.units), np.inf, 0.0)
        return self._lanes(units, -high if signed else 0 * high, high)

    @_of.register
    def _(self, operation: ops.Latch, stream: Stream) -> Domain:
        d, copies = _with_zero(self._known[stream.inputs[0]]), stream.inputs[1].width
        units, low, high = (np.tile(a, copies) for a in (d.units, d.low, d.high))
        return self._lanes(units, low, high, d.l1 * copies)

    @_of.register
    def _(self, operation: ops.SumWhere, stream: Stream) -> Domain:
        value, when = (self._known[s] for s in stream.inputs)
        most = np.tile(value.masses, stream.inputs[1].width)
        if when.is_flag:
            held = np.outer(when.masses, value.bounds).reshape(-1)
            most = np.minimum(most, raised(held, when.grain * value.grain, 1))
        low, high, units = (np.tile(a, stream.inputs[1].width) for a in (value.low, value.high, value.units))
        return self._lanes(units, np.where(low < 0, -most, 0), np.where(high > 0, most, 0))

    @_of.register
    def _(self, operation: ops.GateSum, stream: Stream) -> Domain:
        bank, gate = (self._known[s] for s in stream.inputs)
        entries = stream.inputs[1].width
        low, high, units = (a.reshape(entries, -1) for a in (bank.low, bank.high, bank.units))
        units = units.min(axis=0)
        units = np.where(np.isinf(units), np.inf, units * float(gate.step))
        high = times(np.maximum(high.max(axis=0), 0), gate.l1)
        return self._lanes(units, -times(np.maximum(-low.min(axis=0), 0), gate.l1), high)

    @_of.register
    def _(self, operation: ops.MemoryRead, stream: Stream) -> Domain:
        value, key, query = (self._known[s] for s in stream.inputs[:3])
        if operation.skip:
            read = self._of(replace(operation, skip=_ZERO), stream)
            step = unit_of(read.step, value.step * operation.skip) if read.step else _ZERO
            ends = [operation.skip * value.lo, operation.skip * value.hi]
            return self._interval(step, read.lo + min(ends), read.hi + max(ends), stream.width)
        if operation.policy != "sum" and isinstance(stream.inputs[2].type, OneHot):
            d = _with_zero(value)
            return self._lanes(d.units, d.low, d.high, d.l1)
        met = min(key.l1 * query.bound, key.bound * query.l1)  # of one write with one query
        high = np.minimum(times(self._cells(stream), query.l1), times(value.masses, met))
        signed = min(value.lo, key.lo, query.lo) < 0
        units = _products(value.units, np.full(stream.width, float(key.step * query.step)))
        return self._lanes(np.where(np.isinf(value.units), np.inf, units), -high if signed else 0 * high, high)

    def _cells(self, stream: Stream) -> np.ndarray:
        """For each lane of the value a bound on its entries in the state of an additive memory."""
        value, key = (self.of(s) for s in stream.inputs[:2])
        operation = operation_of(stream, ops.MemoryRead)
        writes = 1 if operation.policy == "once" else operation.writes
        most = key.mass if writes is None else min(key.mass, key.bound * writes)
        return np.minimum(times(value.bounds, most), times(value.masses, key.bound))

    def cell_bound(self, stream: Stream) -> Fraction:
        """A bound on every entry of a memory's state."""
        value, key = (self.of(s) for s in stream.inputs[:2])
        if operation_of(stream, ops.MemoryRead).policy != "sum":
            return value.bound * key.bound
        return Fraction(float(self._cells(stream).max()))

    @_of.register
    def _(self, operation: ops.Count, stream: Stream) -> Domain:
        when, reset = stream.inputs
        walk = heaviest_walk(self.language, self.of, self.max_length, when, reset)
        most = min(self._known[when].mass, Fraction(walk)) if np.isfinite(walk) else self._known[when].mass
        return self._interval(_ONE, _ZERO, most, stream.width)

    @_of.register
    def _(self, operation: ops.RunningMax, stream: Stream) -> Domain:
        d = _with_zero(self._known[stream.inputs[0]])
        return self._lanes(d.units, d.low, d.high)


def _with_zero(d: Domain) -> Domain:
    return replace(d, low=np.minimum(d.low, 0), high=np.maximum(d.high, 0))


def _added(arrays: list[np.ndarray]) -> np.ndarray:
    return sum(arrays, start=np.zeros_like(arrays[0]))


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of units, where a lane without a lattice stays without one."""
    return np.where((a == 0) | (b == 0), 0.0, np.where(a == 0, 1.0, a) * np.where(b == 0, 1.0, b))
