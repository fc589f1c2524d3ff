"""Domains of linear maps and of what rectifies them."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm, affine_form, port_form
from compiler.analysis.rectified_total import rectified_totals
from compiler.errors import CompileError
from compiler.language.operations import Operation
from compiler.language.operations.known import Known
from compiler.language.stream import Stream
from compiler.lattice.domain import Domain, least_unit, outward, raised, up, with_zero
from compiler.lattice.matrix_sums import MatrixSums, MatrixSumsCache, Sums, added, least_units

_ZERO, _ONE = Fraction(0), Fraction(1)


class Summed(Known, Protocol):
    """Domains, with what is found once: forms, and the sums of matrices."""

    forms: dict[Stream, AffineForm]
    sums: MatrixSumsCache


def _at_positions(stream: Stream, known: Summed) -> Domain:
    """The domain, of a constant without the 0 before the start."""
    return known.of(stream) if stream.operation.constants is None else stream.operation.held(known)


def checked_sums(matrix: sparse.csr_array, stream: Stream, found: MatrixSumsCache) -> MatrixSums:
    """The sums of the rows of a matrix that computes a stream; CompileError where no float sums its multiples."""
    sums = found(matrix)
    if sums.spans:
        raise CompileError(
            [(stream, "its weights leave 2^−300 … 2^300, and no float sums such multiples exactly; scale them")]
        )
    return sums


def linear_domain(terms: list[tuple[sparse.csr_array, Stream]], stream: Stream, known: Summed) -> Domain:
    """Interval arithmetic for Σ matrix·lanes, with the tighter of the row-wise and the l1 bound per term."""
    found = [(known.matrix_sums(m, stream), _at_positions(s, known)) for m, s in terms]
    if not found:
        return known.interval(_ONE, _ZERO, _ZERO, stream.width)
    return known.once(
        lambda: _summed(found, stream.width), "linear", *((sums, *domain.alike) for sums, domain in found)
    )


def _summed(terms: list[tuple[MatrixSums, Domain]], width: int) -> Domain:
    parts = [sums.of(domain, up(domain.l1)) for sums, domain in terms]
    low, high = _interval(parts, width)
    totals = raised(added(parts, lambda p: p.totals, width), min(least_unit(p.totals) for p in parts), len(parts))
    l1 = sum((sums.column * domain.l1 for sums, domain in terms), Fraction(0))
    return Domain(least_units(parts, width), np.minimum(low, 0), np.maximum(high, 0), l1, totals)


def _interval(parts: list[Sums], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each row of a sum of products, rounded outward."""
    low, high = added(parts, lambda p: p.low, width), added(parts, lambda p: p.high, width)
    if len(parts) > 1:
        reach = added(parts, lambda p: np.maximum(np.abs(p.low), np.abs(p.high)), width)
        ends = [a for p in parts for a in (p.low, p.high)]
        low, high = outward(low, high, reach, min(map(least_unit, ends)), len(parts))
    return low, high


def interval_within(stream: Stream, known: Summed) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of every lane at the positions of a sequence; domains also hold before its start, where all is 0."""
    form = affine_form(stream)
    domains = [with_zero(known.of(atom)) if lag else _at_positions(atom, known) for atom, lag in form]
    parts = [known.matrix_sums(m, stream).of(d, up(d.l1)) for m, d in zip(form.values(), domains, strict=True)]
    low, high = _interval(parts, stream.width)
    whole = known.of(stream)  # what the stream was rewritten from may be known better than its parts
    return np.maximum(low, whole.low), np.minimum(high, whole.high)


def difference_within(a: Stream, b: Stream, known: Summed) -> tuple[np.ndarray, np.ndarray]:
    """The same of a − b, also where no float64 holds the constant that it folds to: then from the bounds of each."""
    try:
        return interval_within(a - b, known)
    except CompileError:
        (a_low, a_high), (b_low, b_high) = interval_within(a, known), interval_within(b, known)
        reach = np.maximum(np.abs(a_low), np.abs(a_high)) + np.maximum(np.abs(b_low), np.abs(b_high))
        return outward(a_low - b_high, a_high - b_low, reach, 0.0, 2)


def rectified_domain(stream: Stream, known: Summed) -> Domain:
    """max(x, 0) for the input x of a stream."""
    (pre,) = stream.inputs
    d = known.of(pre)
    form, width = port_form(pre, known.forms), stream.width
    alone = known.once(
        lambda: rectified_totals(form, width, known.of, known.sums, known.max_length),
        *("rectified", width, *(((a is ONE, lag), known.sums(m), *known.of(a).alike) for (a, lag), m in form.items())),
    )
    l1, totals = d.l1, np.minimum(d.totals, alone)
    if pre.operation.maps is not None:  # relu(x − c) ≤ relu(x) for c ≥ 0
        terms = list(zip(pre.operation.maps, pre.inputs, strict=True))
        kept = [(m, s) for m, s in terms if not _lowers(m, s.operation, known)]
        if len(kept) < len(terms):
            positive = linear_domain(kept, pre, known)
            l1, totals = min(l1, positive.l1), np.minimum(totals, positive.totals)
    return Domain(d.units, np.maximum(d.low, 0), np.maximum(d.high, 0), l1, totals)


def _lowers(matrix: sparse.csr_array, operation: Operation, known: Summed) -> bool:
    """Whether it is a constant of which this multiple adds at most 0 to every row."""
    if operation.constants is None:
        return False
    held = operation.held(known)
    return bool(known.sums(matrix).of(held, up(held.l1)).high.max(initial=0) <= 0)
