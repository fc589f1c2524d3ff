"""Domains of what enters a circuit, and of linear maps, delays and rectifiers of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.domain import Domain, down, least_unit, outward, raised, times, up
from compiler.analysis.domains.known import Domains, domain_of, with_zero
from compiler.analysis.linear_form import linear_form, port_form
from compiler.analysis.matrix_sums import MatrixSums, Sums
from compiler.analysis.rectified_mass import rectified_masses
from compiler.analysis.units import array_units, unit_of
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.stream import Stream

_ZERO, _ONE = Fraction(0), Fraction(1)


@domain_of.register
def _(operation: ops.Numbers, stream: Stream, known: Domains) -> Domain:
    return known.typed(operation.type)


@domain_of.register
def _(operation: ops.Constant, stream: Stream, known: Domains) -> Domain:
    return with_zero(_held(operation, known))


def _held(operation: ops.Constant, known: Domains) -> Domain:
    """A constant at the positions of the sequence (before its start it is 0)."""
    units = np.array([_unit(value) for value in operation.values])
    return known.lanes(
        units, np.array([down(v) for v in operation.values]), np.array([up(v) for v in operation.values])
    )


def _at_positions(stream: Stream, known: Domains) -> Domain:
    """The domain, of a constant without the 0 before the start."""
    return _held(stream.operation, known) if isinstance(stream.operation, ops.Constant) else known.of(stream)


def _unit(value: Fraction) -> float:
    """The unit of a number: of 1/3, which no float holds, it is that of a real number."""
    if not value:
        return np.inf
    return 0.0 if value.denominator & (value.denominator - 1) else float(unit_of(value))


@domain_of.register
def _(operation: ops.Position, stream: Stream, known: Domains) -> Domain:
    return known.interval(_ONE, _ZERO, Fraction(known.max_length), 1)


@domain_of.register
def _(operation: ops.Embed, stream: Stream, known: Domains) -> Domain:
    sums = _checked(operation.table, stream, known)
    table, width = sparse.csr_array(operation.table.T), stream.width
    lanes = np.repeat(np.arange(width), np.diff(table.indptr))
    low, high, units = np.zeros(width), np.zeros(width), np.full(width, np.inf)
    np.minimum.at(low, lanes, table.data)
    np.maximum.at(high, lanes, table.data)
    np.minimum.at(units, lanes, array_units(table.data))
    rows = raised(np.bincount(sums.rows, sums.size, 1), sums.grain, sums.terms)
    return Domain(units, low, high, Fraction(float(rows.max())), _embedded_masses(table, known))


def _embedded_masses(columns: sparse.csr_array, known: Domains) -> np.ndarray:
    """Bounds on Σ_t |table[token_t, lane]|, by the language's bounds on repetition.

    columns: (lanes × vocabulary).
    """
    size, counts = np.abs(columns.data), np.diff(columns.indptr)
    masses = np.zeros(len(counts))
    single = np.flatnonzero(counts == 1)
    at = columns.indptr[single]
    many = np.flatnonzero(counts > 1)
    if known.language is None:
        masses[single] = size[at] * known.max_length
    else:
        masses[single] = size[at] * known.language.occurrences[columns.indices[at]]
    for lane in many:
        span = slice(columns.indptr[lane], columns.indptr[lane + 1])
        most = known.max_length if known.language is None else known.language.max_count(columns.indices[span])
        masses[lane] = size[span].max() * most
    return raised(masses, least_unit(size), 1)


def _checked(matrix: sparse.csr_array, stream: Stream, known: Domains) -> MatrixSums:
    sums = known.sums(matrix)
    if sums.spans:
        raise CompileError(
            [(stream, "its weights leave 2^−300 … 2^300, and no float sums such multiples exactly; scale them")]
        )
    return sums


@domain_of.register
def _(operation: ops.Linear, stream: Stream, known: Domains) -> Domain:
    return _linear(list(zip(operation.matrices, stream.inputs, strict=True)), stream, known)


def _linear(terms: list[tuple[sparse.csr_array, Stream]], stream: Stream, known: Domains) -> Domain:
    """Interval arithmetic for Σ matrix·lanes, with the tighter of the row-wise and the l1 bound per term."""
    domains = [_at_positions(s, known) for _, s in terms]
    parts = [_checked(m, stream, known).of(d, up(d.l1)) for (m, _), d in zip(terms, domains, strict=True)]
    if not parts:
        return known.interval(_ONE, _ZERO, _ZERO, stream.width)
    low, high = _interval(parts)
    units = parts[0].units
    for part in parts[1:]:
        units = np.minimum(units, part.units)
    masses = raised(_added([p.masses for p in parts]), min(least_unit(p.masses) for p in parts), len(parts))
    l1 = sum((known.sums(m).column * d.l1 for (m, _), d in zip(terms, domains, strict=True)), Fraction(0))
    return Domain(units, np.minimum(low, 0), np.maximum(high, 0), l1, masses)


def _interval(parts: list[Sums]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each row of a sum of products, rounded outward."""
    low, high = _added([p.low for p in parts]), _added([p.high for p in parts])
    if len(parts) > 1:
        reach = _added([np.maximum(np.abs(p.low), np.abs(p.high)) for p in parts])
        ends = [a for p in parts for a in (p.low, p.high)]
        low, high = outward(low, high, reach, min(map(least_unit, ends)), len(parts))
    return low, high


def interval_within(stream: Stream, known: Domains) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of every lane at the positions of a sequence; domains also hold before its start, where all is 0."""
    form = linear_form(stream)
    domains = [known.of(atom) if lag else _at_positions(atom, known) for atom, lag in form]
    parts = [_checked(m, stream, known).of(d, up(d.l1)) for m, d in zip(form.values(), domains, strict=True)]
    low, high = _interval(parts) if parts else (np.zeros(stream.width), np.zeros(stream.width))
    whole = known.of(stream)  # what the stream was rewritten from may be known better than its parts
    return np.maximum(low, whole.low), np.minimum(high, whole.high)


def difference_within(a: Stream, b: Stream, known: Domains) -> tuple[np.ndarray, np.ndarray]:
    """The same of a − b, also where no float64 holds the constant that it folds to: then from the bounds of each."""
    try:
        return interval_within(a - b, known)
    except CompileError:
        (a_low, a_high), (b_low, b_high) = interval_within(a, known), interval_within(b, known)
        reach = np.maximum(np.abs(a_low), np.abs(a_high)) + np.maximum(np.abs(b_low), np.abs(b_high))
        return outward(a_low - b_high, a_high - b_low, reach, 0.0, 2)


@domain_of.register
def _(operation: ops.Shift, stream: Stream, known: Domains) -> Domain:
    return with_zero(known.of(stream.inputs[0]))


@domain_of.register
def _(operation: ops.Lti, stream: Stream, known: Domains) -> Domain:
    d = known.of(stream.inputs[0])
    gain = sum((abs(k) for k in operation.kernel), Fraction(0))
    bounds = times(d.bounds, gain)
    domain = known.lanes(d.units * float(unit_of(*operation.kernel) or 1), -bounds, bounds)
    return replace(domain, masses=np.minimum(domain.masses, times(d.masses, gain)))


@domain_of.register
def _(operation: ops.Relu, stream: Stream, known: Domains) -> Domain:
    pre = stream.inputs[0]
    d = known.of(pre)
    alone = rectified_masses(port_form(pre, known.forms), stream.width, known.of, known.sums, known.max_length)
    l1, masses = d.l1, np.minimum(d.masses, alone)
    if isinstance(pre.operation, ops.Linear):  # relu(x − c) ≤ relu(x) for c ≥ 0
        terms = list(zip(pre.operation.matrices, pre.inputs, strict=True))
        kept = [(m, s) for m, s in terms if not _lowers(m, s.operation, known)]
        if len(kept) < len(terms):
            positive = _linear(kept, pre, known)
            l1, masses = min(l1, positive.l1), np.minimum(masses, positive.masses)
    return Domain(d.units, np.maximum(d.low, 0), np.maximum(d.high, 0), l1, masses)


def _lowers(matrix: sparse.csr_array, operation: ops.Operation, known: Domains) -> bool:
    """Whether it is a constant of which this multiple adds at most 0 to every row."""
    if not isinstance(operation, ops.Constant):
        return False
    held = _held(operation, known)
    return bool(known.sums(matrix).of(held, up(held.l1)).high.max() <= 0)


def _added(arrays: list[np.ndarray]) -> np.ndarray:
    return sum(arrays, start=np.zeros_like(arrays[0]))
