"""Domains of functions of one position: integers, flags, choices, products."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from compiler.analysis.domain import Domain, down, outward, raised, up
from compiler.analysis.domains.known import Domains, domain_of, products
from compiler.analysis.units import unit_of
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.types import Bool

_ZERO, _ONE = Fraction(0), Fraction(1)


@domain_of.register
def _(operation: ops.Clip, stream: Stream, known: Domains) -> Domain:
    d = known.of(stream.inputs[0])
    lo, hi = Fraction(operation.lo), Fraction(operation.hi)
    ends = float(unit_of(_ONE, lo, hi))
    low, high = np.clip(d.low, down(lo), up(hi)), np.clip(d.high, down(lo), up(hi))
    return known.lanes(np.minimum(d.units, ends), low, high)


@domain_of.register
def _(operation: ops.FloorDivide, stream: Stream, known: Domains) -> Domain:
    d, n = known.of(stream.inputs[0]), float(operation.divisor)
    low, high = outward(np.floor_divide(d.low, n), np.floor_divide(d.high, n), d.bounds, 1.0, 1)
    domain = known.lanes(np.ones(stream.width), low, high)
    return replace(domain, l1=min(domain.l1, d.l1), masses=np.minimum(domain.masses, d.masses))


@domain_of.register
def _(operation: ops.Modulo, stream: Stream, known: Domains) -> Domain:
    d, last = known.of(stream.inputs[0]), float(operation.divisor - 1)
    high = np.where(d.low < 0, last, np.minimum(d.high, last))
    domain = known.lanes(np.ones(stream.width), np.zeros(stream.width), high)
    if d.lo < 0:
        return domain
    return replace(domain, l1=min(domain.l1, d.l1), masses=np.minimum(domain.masses, d.masses))


@domain_of.register(ops.Compare)
@domain_of.register(ops.Settled)
@domain_of.register(ops.SameSymbol)
@domain_of.register(ops.Or)
@domain_of.register(ops.Not)
@domain_of.register(ops.OneHotOf)
@domain_of.register(ops.Decode)
def _(operation: ops.Operation, stream: Stream, known: Domains) -> Domain:
    return known.typed(Bool(stream.width))


@domain_of.register
def _(operation: ops.And, stream: Stream, known: Domains) -> Domain:
    operands = [known.of(s) for s in stream.inputs]
    widest = max(range(2), key=lambda i: stream.inputs[i].width)
    flags = known.typed(Bool(stream.width))
    masses = np.minimum(operands[0].masses, operands[1].masses)
    if any(map(_at_one_count, stream.inputs, stream.inputs[::-1])):
        masses = np.minimum(masses, 1)
    return replace(flags, l1=min(flags.l1, operands[widest].l1), masses=np.minimum(flags.masses, masses))


def _at_one_count(flag: Stream, equal: Stream) -> bool:
    """Whether the second says that the first held k times so far, lane by lane: then both hold at most once."""
    if not isinstance(equal.operation, ops.Compare) or equal.operation.relation != "==":
        return False
    counts = [s for s in equal.inputs if isinstance(s.operation, ops.Cumsum) and s.inputs[0] is flag]
    return bool(counts) and any(isinstance(s.operation, ops.Constant) for s in equal.inputs)


@domain_of.register
def _(operation: ops.Select, stream: Stream, known: Domains) -> Domain:
    """Either value; with several conditions some lanes may come from each."""
    a, b = (known.of(s) for s in stream.inputs[1:])
    l1 = max(a.l1, b.l1) if stream.inputs[0].width == 1 else a.l1 + b.l1
    domain = known.lanes(np.minimum(a.units, b.units), np.minimum(a.low, b.low), np.maximum(a.high, b.high), l1)
    return replace(domain, masses=raised(a.masses + b.masses, min(a.grain, b.grain), 2))


@domain_of.register
def _(operation: ops.Lookup, stream: Stream, known: Domains) -> Domain:
    entries = [Fraction(v) for v in operation.table]
    return known.interval(_ONE, min(*entries, _ZERO), max(*entries, _ZERO), 1)


@domain_of.register(ops.Min)
@domain_of.register(ops.Max)
def _(operation: ops.Min, stream: Stream, known: Domains) -> Domain:
    a, b = (known.of(s) for s in stream.inputs)
    pick = np.maximum if isinstance(operation, ops.Max) else np.minimum
    return known.lanes(np.minimum(a.units, b.units), pick(a.low, b.low), pick(a.high, b.high))


@domain_of.register
def _(operation: ops.Multiply, stream: Stream, known: Domains) -> Domain:
    a, b = (known.of(s) for s in stream.inputs)
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    ends = np.minimum.reduce(corners), np.maximum.reduce(corners)
    low, high = outward(*ends, a.bounds * b.bounds, a.grain * b.grain, 1)
    still = np.isinf(a.units) | np.isinf(b.units)
    return known.lanes(np.where(still, np.inf, products(a.units, b.units)), low, high)


@domain_of.register
def _(operation: ops.Dot, stream: Stream, known: Domains) -> Domain:
    a, b = (known.of(s) for s in stream.inputs)
    reach = min(a.l1 * b.bound, a.bound * b.l1)
    return known.interval(a.step * b.step, -reach if min(a.lo, b.lo) < 0 else _ZERO, reach, 1)


@domain_of.register
def _(operation: ops.Decide, stream: Stream, known: Domains) -> Domain:
    scores = known.of(stream.inputs[0])
    added = np.zeros(stream.width)
    added[list(operation.tokens)] = up(operation.most(scores.hi - scores.lo))
    unit = unit_of(scores.step, _ONE) if scores.step else _ZERO
    low, high = outward(scores.low, scores.high + added, scores.bounds + added, scores.grain, 1)
    return known.lanes(np.full(stream.width, float(unit)), low, high)
