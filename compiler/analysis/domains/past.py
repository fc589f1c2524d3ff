"""Domains of operations over the past: sums, latches, memories, counts, running maxima."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from compiler.analysis.domain import Domain, raised, times, total
from compiler.analysis.domains.known import Domains, domain_of, products, with_zero
from compiler.analysis.heaviest_walk import heaviest_walk
from compiler.analysis.units import unit_of
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.types import OneHot

_ZERO, _ONE = Fraction(0), Fraction(1)


@domain_of.register
def _(operation: ops.ScaledSum, stream: Stream, known: Domains) -> Domain:
    value, weight, gate = (known.of(s) for s in stream.inputs)
    reach = gate.bound * known.sum_bound(stream)
    signed = min(value.lo, weight.lo, gate.lo) < 0
    return known.interval(value.step * weight.step * gate.step, -reach if signed else _ZERO, reach, stream.width)


@domain_of.register
def _(operation: ops.Cumsum, stream: Stream, known: Domains) -> Domain:
    d = known.of(stream.inputs[0])
    return known.lanes(d.units, np.where(d.low < 0, -d.masses, 0), np.where(d.high > 0, d.masses, 0))


@domain_of.register
def _(operation: ops.FadingSum, stream: Stream, known: Domains) -> Domain:
    """At most 1/(1 − decay) of the largest value at any one position, and of the sum of all over the whole
    sequence.
    """
    d = known.of(stream.inputs[0])
    gain = 1 / (1 - operation.decay)
    low, high = (np.minimum(times(b, gain), d.masses) for b in (np.maximum(-d.low, 0), np.maximum(d.high, 0)))
    units = np.where(np.isinf(d.units), np.inf, 0.0)
    return Domain(units, -low, high, total(np.maximum(low, high)), times(d.masses, gain))


@domain_of.register
def _(operation: ops.SelectiveSum, stream: Stream, known: Domains) -> Domain:
    """Between two positions that add something the state fades by a step at least: 1/(1 − decay) of the largest."""
    value, level = (known.of(s) for s in stream.inputs)
    most = max(2 * level.hi - 1, _ZERO)
    gain = most * min(1 / (1 - operation.decay), Fraction(known.max_length))
    units = np.where(np.isinf(value.units), np.inf, 0.0)
    return known.lanes(units, -times(np.maximum(-value.low, 0), gain), times(np.maximum(value.high, 0), gain))


@domain_of.register
def _(operation: ops.FadingMemory, stream: Stream, known: Domains) -> Domain:
    """|Σ| ≤ |value| · Σ_n |key_n|·|query_n| · min(1/(1 − decay), T)."""
    value, key, query = (known.of(s) for s in stream.inputs)
    reach = min(key.l1 * query.bound, key.bound * query.l1) * min(1 / (1 - operation.decay), Fraction(known.max_length))
    high = times(value.bounds, reach)
    signed = min(value.lo, key.lo, query.lo) < 0
    units = np.where(np.isinf(value.units), np.inf, 0.0)
    return known.lanes(units, -high if signed else 0 * high, high)


@domain_of.register
def _(operation: ops.Latch, stream: Stream, known: Domains) -> Domain:
    d, copies = with_zero(known.of(stream.inputs[0])), stream.inputs[1].width
    units, low, high = (np.tile(a, copies) for a in (d.units, d.low, d.high))
    return known.lanes(units, low, high, d.l1 * copies)


@domain_of.register
def _(operation: ops.SumWhere, stream: Stream, known: Domains) -> Domain:
    value, when = (known.of(s) for s in stream.inputs)
    most = np.tile(value.masses, stream.inputs[1].width)
    if when.is_flag:
        held = np.outer(when.masses, value.bounds).reshape(-1)
        most = np.minimum(most, raised(held, when.grain * value.grain, 1))
    low, high, units = (np.tile(a, stream.inputs[1].width) for a in (value.low, value.high, value.units))
    return known.lanes(units, np.where(low < 0, -most, 0), np.where(high > 0, most, 0))


@domain_of.register
def _(operation: ops.GateSum, stream: Stream, known: Domains) -> Domain:
    bank, gate = (known.of(s) for s in stream.inputs)
    entries = stream.inputs[1].width
    low, high, units = (a.reshape(entries, -1) for a in (bank.low, bank.high, bank.units))
    units = units.min(axis=0)
    units = np.where(np.isinf(units), np.inf, units * float(gate.step))
    high = times(np.maximum(high.max(axis=0), 0), gate.l1)
    return known.lanes(units, -times(np.maximum(-low.min(axis=0), 0), gate.l1), high)


@domain_of.register
def _(operation: ops.MemoryRead, stream: Stream, known: Domains) -> Domain:
    value, key, query = (known.of(s) for s in stream.inputs[:3])
    if operation.skip:
        read = domain_of(replace(operation, skip=_ZERO), stream, known)
        step = unit_of(read.step, value.step * operation.skip) if read.step else _ZERO
        ends = [operation.skip * value.lo, operation.skip * value.hi]
        return known.interval(step, read.lo + min(ends), read.hi + max(ends), stream.width)
    if operation.policy != "sum" and isinstance(stream.inputs[2].type, OneHot):
        d = with_zero(value)
        return known.lanes(d.units, d.low, d.high, d.l1)
    met = min(key.l1 * query.bound, key.bound * query.l1)  # of one write with one query
    high = np.minimum(times(known.cells(stream), query.l1), times(value.masses, met))
    signed = min(value.lo, key.lo, query.lo) < 0
    units = products(value.units, np.full(stream.width, float(key.step * query.step)))
    return known.lanes(np.where(np.isinf(value.units), np.inf, units), -high if signed else 0 * high, high)


@domain_of.register
def _(operation: ops.Count, stream: Stream, known: Domains) -> Domain:
    when, reset = stream.inputs
    walk = heaviest_walk(known.language, known.of, known.max_length, when, reset)
    most = min(known.of(when).mass, Fraction(walk)) if np.isfinite(walk) else known.of(when).mass
    return known.interval(_ONE, _ZERO, most, stream.width)


@domain_of.register
def _(operation: ops.RunningMax, stream: Stream, known: Domains) -> Domain:
    d = with_zero(known.of(stream.inputs[0]))
    return known.lanes(d.units, d.low, d.high)
