"""The domains of a circuit's streams, each found once by the rule of its operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Self

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import AffineForm
from compiler.analysis.domains.cut import cut_to_type, narrowing
from compiler.analysis.domains.linear import checked_sums, linear_domain, rectified_domain
from compiler.analysis.domains.once import Once
from compiler.analysis.heaviest_path import heaviest_path
from compiler.analysis.paths import Work
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import inputs_first, operation_of
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream
from compiler.language.types import OPEN, Bool, Int, OneHot, Real, Type
from compiler.lattice.domain import Domain, down, in_units, least_unit, raised, summed, times, up
from compiler.lattice.matrix_sums import MatrixSums, MatrixSumsCache, added, least_units

_ZERO, _ONE = Fraction(0), Fraction(1)


class Domains:
    """What the streams of a circuit can hold: a value, which a pass gets and does not change.

    The domain of a stream is found once, from its operation and the domains of what it reads. A pass that knows more of
    the streams that it makes (they equal others, or it has bounds of its own) notes that in a `draft`.
    """

    def __init__(self, language: InputLanguage | None, max_length: int):
        self.language = language
        self.max_length = max_length
        self._known: dict[Stream, Domain] = {}
        self._alike: dict[tuple, tuple[Stream, Domain]] = {}
        self._uncut: dict[Domain, Domain] = {}
        self._became: dict[Stream, Stream] = {}
        self._most_steps: dict[Stream, Fraction] = {}
        self.forms: dict[Stream, AffineForm] = {}
        self.sums = MatrixSumsCache()
        self.once = Once()
        self.work = Work()

    def of(self, stream: Stream) -> Domain:
        if stream in self._known:
            return self._known[stream]
        if all(s in self._known for s in stream.inputs):
            self._known[stream] = self._found(stream)
        else:
            for node in inputs_first([stream], lambda reader: [s for s in reader.inputs if s not in self._known]):
                if node not in self._known:  # sharpening another may have asked for it
                    self._known[node] = self._found(node)
        return self._known[stream]

    def _found(self, stream: Stream) -> Domain:
        """The domain of a stream whose inputs are known: what passes rebuild over equal inputs has the same."""
        key = (id(stream.operation), *(self._known[s] for s in stream.inputs))
        like, domain = self._alike.get(key, (None, None))
        if like is not None and domain is not None and like.type == stream.type:
            return domain
        self.work.earn()
        domain = self._sharpened(stream)
        self._alike[key] = (stream, domain)  # the stream keeps its operation, so that an id stays its own
        return domain

    def exact_dtype(self, circuit: Circuit) -> type:
        """float64 where it runs the circuit exactly, partial sums included; else object, for Integers and Fractions."""
        return np.float64 if all(self.fits_float64(s) for s in circuit.streams) else object

    def smallest_exact_dtype(self, streams: Iterable[Stream]) -> type:
        """The first of float32, float64 and object that computes these streams of their inputs exactly."""
        streams = list(streams)
        if all(self._fits_float32(stream) for stream in streams):
            return np.float32
        return np.float64 if all(self.fits_float64(stream) for stream in streams) else object

    def fits_float64(self, stream: Stream) -> bool:
        """Whether float64 arrays run the operation without rounding, whatever the order of its sums."""
        return self._fits(stream, 2**51)

    def _fits(self, stream: Stream, most: int) -> bool:
        """Whether no number of an operation, its sums in any order included, has as many steps as this.

        A quarter of what the mantissa counts, where quotients must be told from the integers beside them.
        """
        if stream not in self._most_steps:
            steps = [self.of(s).steps for s in (stream, *stream.inputs)]
            self._most_steps[stream] = max(*steps, stream.operation.formed(stream, self))
        return self.of(stream).step > 0 and self._most_steps[stream] < most

    def _fits_float32(self, stream: Stream) -> bool:
        """The same of float32, whose exponents have a narrow range as well."""
        known = [self.of(s) for s in (stream, *stream.inputs)]
        near = all(d.step > 2.0**-60 and d.bound < 2.0**60 for d in known)
        return near and self._fits(stream, 2**24 if stream.operation.maps is not None else 2**22)

    def partial_sum(self, terms: Iterable[tuple[sparse.csr_array, Stream]]) -> Fraction:
        """The largest partial sum of a row of Σ matrix·lanes, in units of the row.

        Rows that read real numbers count as 0.
        """
        known = [(self.sums(matrix), self.of(s)) for matrix, s in terms]
        return self.once(lambda: _partial_sum(known), "partial sum", *((sums, *domain.alike) for sums, domain in known))

    def before_its_type(self, stream: Stream) -> Domain:
        """What the operation of a stream gives, whatever its author declared."""
        claimed = self.of(stream)
        return self._uncut.get(claimed, claimed)

    def became(self, stream: Stream) -> Stream:
        """The stream of the present circuit that a stream of an earlier one has become, by the passes' word; itself
        where they have not replaced it.
        """
        passed = {stream}
        while (after := self._became.get(stream, stream)) not in passed:
            passed.add(after)
            stream = after
        return stream

    def draft(self) -> DomainsDraft:
        """A copy to which a pass adds what it knows of its own streams."""
        return DomainsDraft._like(self)

    @classmethod
    def _like(cls, other: Domains) -> Self:
        """The same domains, of this class; what depends on no domain, and the work that is left, are shared."""
        copy = cls(other.language, other.max_length)
        copy._known, copy._alike, copy._uncut = dict(other._known), dict(other._alike), dict(other._uncut)
        copy._became = dict(other._became)
        copy.forms, copy.sums, copy.once, copy.work = other.forms, other.sums, other.once, other.work
        return copy

    def _sharpened(self, stream: Stream) -> Domain:
        """The operation's domain, cut to what the stream's type promises of itself."""
        domain = stream.operation.domain(stream, self)
        if domain is None:
            what = stream.operation.symbol
            raise CompileError([(stream, f"no bounds are known of what {what} gives, so nothing can be promised")])
        narrows = narrowing(stream.type)
        cut = self.once(lambda: cut_to_type(domain, stream, self.max_length), "cut", narrows, *domain.alike)
        if narrows:
            self._uncut[cut] = domain
        return cut

    def lanes(self, units: np.ndarray, low: np.ndarray, high: np.ndarray, l1: Fraction | None = None) -> Domain:
        """A domain of which the sums follow from the bounds."""
        bounds = np.maximum(np.abs(low), np.abs(high))
        return Domain(
            units, low, high, summed(bounds) if l1 is None else l1, times(bounds, Fraction(max(0, self.max_length)))
        )

    def interval(self, step: Fraction, lo: Fraction, hi: Fraction, width: int) -> Domain:
        """The same domain for every lane."""
        lanes = lambda: self.lanes(np.full(width, float(step)), np.full(width, down(lo)), np.full(width, up(hi)))
        return self.once(lanes, "interval", step, lo, hi, width)

    def typed(self, type: Type) -> Domain:
        """The domain that a type alone promises (numeric inputs, flags)."""
        if isinstance(type, (Bool, OneHot)):
            return self.interval(_ONE, _ZERO, _ONE, type.width)
        lo, hi = (type.lo, type.hi) if isinstance(type, (Int, Real)) else (None, None)
        least = Fraction(-OPEN if lo is None else lo)
        greatest = Fraction(OPEN if hi is None else hi)
        return self.interval(Fraction(1 if type.integral else 0), least, greatest, type.width)

    def matrix_sums(self, matrix: sparse.csr_array, stream: Stream) -> MatrixSums:
        """The sums of the rows of a matrix that computes a stream; CompileError where no float sums its multiples."""
        return checked_sums(matrix, stream, self.sums)

    def linear(self, matrices: Sequence[sparse.csr_array], stream: Stream) -> Domain:
        """Σ matrix · input of a stream."""
        return linear_domain(list(zip(matrices, stream.inputs, strict=True)), stream, self)

    def rectified(self, stream: Stream) -> Domain:
        """max(x, 0) for the input of a stream."""
        return rectified_domain(stream, self)

    def heaviest(self, when: Stream, reset: Stream) -> float:
        """The most that a flag can count between two resets, infinity where no bound is found."""
        return heaviest_path(self.language, self.of, self.max_length, when, reset, self.work)

    def sum_bound(self, stream: Stream) -> Fraction:
        """A bound on the state of a ScaledSum."""
        value, weight = (self.of(s) for s in stream.inputs[:2])
        return operation_of(stream, ops.ScaledSum).state(value, weight)

    def cells(self, stream: Stream) -> np.ndarray:
        """For each lane of the value a bound on its entries in the state of an additive memory."""
        value, key = (self.of(s) for s in stream.inputs[:2])
        return operation_of(stream, ops.MemoryRead).cells(value, key)

    def cell_bound(self, stream: Stream) -> Fraction:
        """A bound on every entry of a memory's state."""
        value, key = (self.of(s) for s in stream.inputs[:2])
        return stream.operation.cell(value, key)


def _partial_sum(known: list[tuple[MatrixSums, Domain]]) -> Fraction:
    parts = [sums.of(domain, up(domain.l1)) for sums, domain in known]
    height = max(sums.height for sums, _ in known)
    reach = np.maximum(added(parts, lambda p: p.up, height), added(parts, lambda p: p.down, height))
    reach = raised(reach, min(least_unit(a) for p in parts for a in (p.up, p.down)), len(parts))
    return in_units(reach, least_units(parts, height))


def _both(a: Domain, b: Domain) -> Domain:
    low, high, totals = np.maximum(a.low, b.low), np.minimum(a.high, b.high), np.minimum(a.totals, b.totals)
    return Domain(np.maximum(a.units, b.units), low, high, min(a.l1, b.l1), totals)


class DomainsDraft(Domains):
    """The domains of a pass at work: only the pass that drafted them adds to them."""

    def meet(self, stream: Stream, other: Domain) -> None:
        """Record that the stream also satisfies another domain (it is known to equal another stream)."""
        own = self.of(stream)
        if other is own:
            return
        self._most_steps.clear()
        if own.alike == other.alike:
            self._known[stream] = other
            return
        both = self.once(lambda: _both(own, other), "both", *own.alike, *other.alike)
        # The same object for what is the same: what reads it is found by what it reads, and most passes change none.
        self._known[stream] = next((known for known in (other, own) if known.alike == both.alike), both)

    def replaced(self, stream: Stream, new: Stream) -> None:
        """Record that the pass has put another stream, equal everywhere, in the place of one."""
        if new is not stream:
            self.meet(new, self.of(stream))
            self._became[stream] = new

    def bounded(self, stream: Stream, bounds: np.ndarray) -> None:
        """Record that no lane of the stream exceeds these bounds."""
        own = self.of(stream)
        self.meet(stream, replace(own, low=-bounds, high=bounds))

    def settled(self) -> Domains:
        """The value to hand on."""
        return Domains._like(self)
