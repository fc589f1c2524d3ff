"""Offsets: what is added is summed exactly, and taken out of what is compared or divided, where nothing else
fits.

A number that no float holds, or that is too large beside what it is added to, may cancel, also behind clips and
extremes, may be a multiple of the divisor, or may lie between two values of what it is compared with. Integers above
−10/3 are those above −4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor, inf

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.analysis.domains.linear import difference_within, interval_within
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream, standing_for
from compiler.language.types import Int, Real, Type

_ZERO = Fraction(0)
_FEW_BITS = 6  # fewer than any format has


@dataclass(frozen=True)
class _Sum:
    """A stream as rest + offset at every position of the sequence; rest None: the offset alone."""

    stream: Stream
    rest: Stream | None
    offset: tuple[Fraction, ...]

    @cached_property
    def whole(self) -> Stream:
        """The sum as one stream."""
        if self.stream.operation.constants is not None:
            return self.stream
        whole = self.plus(self.offset)
        whole.name = whole.name or self.stream.name
        return whole

    def plus(self, offset: Sequence[Fraction]) -> Stream:
        """The rest and another offset."""
        if self.rest is not None and not any(offset):
            return self.rest
        with standing_for(self.stream):
            constant = Stream(ops.Constant(tuple(offset)))
            if self.rest is None:
                return constant
            eye = ops.scaled_identity(self.rest.width)
            return Stream(ops.Linear((eye, eye)), (self.rest, constant))


def offsets(circuit: Circuit) -> Circuit:
    """The same circuit; itself where every constant is small, so that nothing is refused because of it."""
    if not any(_large(value) for s in circuit.streams for value in s.operation.constants or ()):
        return circuit
    domains = Domains(circuit.language, circuit.max_length)
    sums: dict[Stream, _Sum] = {}
    for stream in circuit.streams:
        with standing_for(stream):
            sums[stream] = _sum(stream, [sums[s] for s in stream.inputs], domains)
    output = sums[circuit.output].whole
    return circuit if output is circuit.output else replace(circuit, output=output)


def _large(number: Fraction) -> bool:
    """Whether a number may not fit beside others, or into a float at all."""
    return not ops.is_summable(number) or max(abs(number.numerator), number.denominator).bit_length() > _FEW_BITS


def _sum(stream: Stream, inputs: list[_Sum], domains: Domains) -> _Sum:
    operation, added = stream.operation, any(any(operand.offset) for operand in inputs)
    if operation.constants is not None:
        return _Sum(stream, None, operation.constants)
    rule = _RULES.get(type(operation)) if added else None
    if rule is not None:
        return rule(stream, operation, inputs, domains)
    return _plain(stream, rebuilt(stream, tuple(operand.whole for operand in inputs)))


def _plain(stream: Stream, new: Stream) -> _Sum:
    return _Sum(stream, new, (_ZERO,) * stream.width)


def _linear(stream: Stream, operation: ops.Linear, inputs: list[_Sum], domains: Domains) -> _Sum:
    """Σ matrix·rest + Σ matrix·offset; what a type claims of the whole is said of the whole."""
    offset = [_ZERO] * stream.width
    for matrix, operand in zip(operation.matrices, inputs, strict=True):
        _add(matrix, operand.offset, offset)
    terms = [(m, x.rest) for m, x in zip(operation.matrices, inputs, strict=True) if x.rest is not None]
    matrices, rests = tuple(m for m, _ in terms), tuple(rest for _, rest in terms)
    if not _claims(operation.type, offset):
        rest = Stream(ops.Linear(matrices, operation.type), rests) if terms else None
        return _Sum(stream, rest, tuple(offset))
    matrices, constant = (*matrices, ops.scaled_identity(stream.width)), Stream(ops.Constant(tuple(offset)))
    return _plain(stream, Stream(ops.Linear(matrices, operation.type), (*rests, constant)))


def _add(matrix: sparse.csr_array, numbers: Sequence[Fraction], sums: list[Fraction]) -> None:
    """sums += matrix · numbers, exactly."""
    held = np.array([bool(number) for number in numbers])
    coo = matrix.tocoo()
    met = held[coo.col]
    for row, column, weight in zip(coo.row[met].tolist(), coo.col[met].tolist(), coo.data[met].tolist(), strict=True):
        sums[row] += Fraction(weight) * numbers[column]


def _claims(type: Type | None, offset: Sequence[Fraction]) -> bool:
    """Whether the type says more of a sum than of what is left without these numbers."""
    if isinstance(type, (Int, Real)) and type.lo is None and type.hi is None:
        return type.integral and any(number.denominator > 1 for number in offset)
    return type is not None


def _quotient(stream: Stream, operation: ops.FloorDivide, inputs: list[_Sum], domains: Domains) -> _Sum:
    """⌊(x + kn + r)/n⌋ = ⌊(x + r)/n⌋ + k."""
    left, (x,) = _remainder(stream, operation, inputs, domains), inputs
    if any(number.denominator > 1 for number in x.offset):
        return left
    return _Sum(stream, left.rest, tuple(Fraction(number // operation.divisor) for number in x.offset))


def _remainder(stream: Stream, operation: ops.FloorDivide, inputs: list[_Sum], domains: Domains) -> _Sum:
    """The remainder of x + kn + r is that of x + r."""
    (x,) = inputs
    if any(number.denominator > 1 for number in x.offset):
        return _plain(stream, Stream(operation, (x.whole,)))
    return _plain(stream, Stream(operation, (x.plus([number % operation.divisor for number in x.offset]),)))


def _clipped(stream: Stream, operation: ops.Clip, inputs: list[_Sum], domains: Domains) -> _Sum:
    """A clip of x + c as that of x between bounds less c, and c, where no bounds decide it."""
    (x,), by = inputs, inputs[0].offset[0]
    if x.rest is not None and set(x.offset) == {by} and by.denominator == 1:
        lo, hi = operation.lo - int(by), operation.hi - int(by)
        low, high = interval_within(x.rest, domains)
        if float(low.max()) < hi and float(high.min()) > lo:
            return _Sum(stream, Stream(ops.Clip(lo, hi), (x.rest,)), x.offset)
    return _plain(stream, rebuilt(stream, (x.whole,)))


def _extreme(stream: Stream, operation: ops.Min, inputs: list[_Sum], domains: Domains, largest: bool) -> _Sum:
    """min(a + c, b + d) as min(a, b + d − c) + c, where no bounds decide it; the same of max."""
    a, b = inputs
    moved, other = (b, a) if a.rest is None else (a, b)
    reach = list(_differences(moved, other, domains))
    if moved.rest is not None and all(low < number < high for number, low, high in reach):
        beside = other.plus([number for number, _, _ in reach])
        return _Sum(stream, Stream(operation, (moved.rest, beside)), moved.offset)
    nearer = _nearer(largest, a.whole, b.whole, domains), _nearer(largest, b.whole, a.whole, domains)
    return _plain(stream, rebuilt(stream, nearer))


def _differences(a: _Sum, b: _Sum, domains: Domains) -> Iterator[tuple[Fraction, float, float]]:
    """For each lane of a + c and b + d: d − c, and between what a − b is."""
    one, other = (operand.plus((_ZERO,) * len(operand.offset)) for operand in (a, b))
    low, high = difference_within(one, other, domains)
    for c, d, least, greatest in zip(a.offset, b.offset, low.tolist(), high.tolist(), strict=True):
        yield d - c, least, greatest


def _compared(stream: Stream, operation: ops.Compare, inputs: list[_Sum], domains: Domains) -> _Sum:
    """(a + c) ∘ (b + d) as a ∘ b + t, with t for d − c as `_threshold` has it."""
    a, b = inputs
    one, other = (operand.plus((_ZERO,) * len(operand.offset)) for operand in (a, b))
    units = np.minimum(domains.of(one).units, domains.of(other).units).tolist()
    reach = zip(_differences(a, b, domains), units, strict=True)
    thresholds = [_threshold(operation.relation, number, unit, low, high) for (number, low, high), unit in reach]
    return _plain(stream, Stream(operation, (one, b.plus(thresholds))))


def _nearer(largest: bool, x: Stream, other: Stream, domains: Domains) -> Stream:
    """A constant whose lanes that are never taken, beside the other operand, and in no sum, are within its reach."""
    constants = x.operation.constants
    if constants is None:
        return x
    low, high = interval_within(other, domains)
    values = list(constants)
    for lane, value in enumerate(values):
        never = value < Fraction(low[lane]) if largest else value > Fraction(high[lane])
        if never and not ops.is_summable(value):
            values[lane] = Fraction(floor(low[lane]) if largest else ceil(high[lane]))
    if values == list(constants):
        return x
    with standing_for(x):
        return Stream(ops.Constant(tuple(values)))


def _threshold(relation: str, number: Fraction, unit: float, low: float, high: float) -> Fraction:
    """A number that multiples of the unit within these bounds are compared with to the same result."""
    lattice = 0 < unit < inf
    step = Fraction(unit) if lattice else Fraction(1)
    above, below = step * (floor(Fraction(high) / step) + 1), step * (ceil(Fraction(low) / step) - 1)
    if lattice and number % step:
        if relation in ("==", "!="):
            return above
        number = step * (ceil if relation in (">=", "<") else floor)(number / step)
    return number if ops.is_summable(number) else max(below, min(above, number))


_RULES: dict[type[ops.Operation], Callable[..., _Sum]] = {
    ops.Linear: _linear,
    ops.FloorDivide: _quotient,
    ops.Modulo: _remainder,
    ops.Compare: _compared,
    ops.Clip: _clipped,
    ops.Min: partial(_extreme, largest=False),
    ops.Max: partial(_extreme, largest=True),
}
"""How an offset of operands passes through exactly these operations."""
