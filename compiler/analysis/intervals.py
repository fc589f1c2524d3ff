"""How intervals pass through operations: what a stream can hold at a step, from what its operands hold there.

A rule is given the operation, what it remembers of the steps before (None at the start), how far counts are kept
apart, and its operands; it gives the value, None where nothing is known, and what is remembered behind the step.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import singledispatch
from math import floor, inf
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.operations import Sees

_LONGEST_SHIFT = 8

Interval = tuple  # (least, largest): int, Fraction or an infinity
Value = tuple  # an interval for each lane


def exact(value: float) -> int | Fraction:
    return int(value) if float(value).is_integer() else Fraction(float(value))


@singledispatch
def _dispatched(operation: ops.Operation, memory, counted, *operands: Value):
    if operation.sees is Sees.PAST or any(lo != hi for v in operands for lo, hi in v):
        return None, None
    arrays = [np.array([lo for lo, _ in v], dtype=object).reshape(1, 1, -1) for v in operands]
    return tuple((v, v) for v in operation.evaluate(*arrays)[0, 0]), None


def rule_of(operation: ops.Operation):
    """The rule of exactly this operation; None where it is not followed."""
    kind = type(operation)
    if kind in _dispatched.registry:
        return _dispatched
    follows = kind in _SINGLE and operation.sees is not Sees.PAST
    return _dispatched if follows else None


_SINGLE = (
    ops.Clip,
    ops.SameSymbol,
    ops.Lookup,
    ops.OneHotOf,
    ops.FloorDivide,
    ops.Modulo,
    ops.Min,
    ops.Max,
    ops.Multiply,
)


@_dispatched.register
def _(operation: ops.Embed, memory, counted):
    return None, None  # its rows come with the token, unless it is too wide


@_dispatched.register
def _(operation: ops.Constant, memory, counted):
    return tuple((exact(float(v)) if v == Fraction(float(v)) else v,) * 2 for v in operation.values), None


@_dispatched.register(ops.Linear)
@_dispatched.register(ops.Emit)
def _(operation: ops.Linear, memory, counted, *operands: Value):
    width = operation.matrices[0].shape[0]
    low, high = [0] * width, [0] * width
    if operation not in _ENTRIES:
        _ENTRIES[operation] = tuple(tuple(_entries(matrix)) for matrix in operation.matrices)
    for entries, value in zip(_ENTRIES[operation], operands, strict=True):
        for row, column, weight in entries:
            lo, hi = value[column] if weight > 0 else value[column][::-1]
            low[row] += weight * lo
            high[row] += weight * hi
    return tuple(zip(low, high, strict=True)), None


_Entries = tuple[tuple[int, int, int | Fraction], ...]
_ENTRIES: WeakKeyDictionary[ops.Linear, tuple[_Entries, ...]] = WeakKeyDictionary()
"""What is not zero in each matrix of an operation that is met: a walk asks for it at every step."""


def _entries(matrix: sparse.csr_array) -> Iterator[tuple[int, int, int | Fraction]]:
    coo = matrix.tocoo()
    for row, column, weight in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True):
        if weight:
            yield row, column, exact(weight)


@_dispatched.register
def _(operation: ops.Relu, memory, counted, x: Value):
    return tuple((max(lo, 0), max(hi, 0)) for lo, hi in x), None


@_dispatched.register
def _(operation: ops.And, memory, counted, a: Value, b: Value):
    width = max(len(a), len(b))
    a, b = (v * width if len(v) == 1 else v for v in (a, b))
    return tuple((min(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True)), None


@_dispatched.register
def _(operation: ops.Or, memory, counted, a: Value, b: Value):
    return tuple((max(p[0], q[0]), max(p[1], q[1])) for p, q in zip(a, b, strict=True)), None


@_dispatched.register
def _(operation: ops.Not, memory, counted, a: Value):
    return tuple((1 - hi, 1 - lo) for lo, hi in a), None


@_dispatched.register
def _(operation: ops.Select, memory, counted, condition: Value, yes: Value, no: Value):
    condition = condition * len(yes) if len(condition) == 1 else condition
    picked = zip(condition, yes, no, strict=True)
    return tuple(y if c == (1, 1) else n if c == (0, 0) else _hull(y, n) for c, y, n in picked), None


@_dispatched.register
def _(operation: ops.Compare, memory, counted, a: Value, b: Value):
    return tuple(_compared(operation.relation, p, q) for p, q in zip(a, b, strict=True)), None


def _compared(relation: str, a: Interval, b: Interval) -> Interval:
    """The flag (certainly, possibly)."""
    if relation in (">", ">="):
        return _compared({">": "<", ">=": "<="}[relation], b, a)
    if relation == "<":
        return int(a[1] < b[0]), int(a[0] < b[1])
    if relation == "<=":
        return int(a[1] <= b[0]), int(a[0] <= b[1])
    equal = (int(a[0] == a[1] == b[0] == b[1]), int(a[0] <= b[1] and b[0] <= a[1]))
    return equal if relation == "==" else (1 - equal[1], 1 - equal[0])


@_dispatched.register
def _(operation: ops.Shift, memory, counted, x: Value):
    if not 0 < operation.k <= _LONGEST_SHIFT:
        return (x, None) if operation.k == 0 else (None, None)
    past = memory or (((0, 0),) * len(x),) * operation.k
    return past[-1], (x, *past[:-1])


@_dispatched.register
def _(operation: ops.Latch, memory, counted, value: Value, when: Value):
    bank = memory or ((0, 0),) * (len(value) * len(when))
    new = value * len(when)
    flags = [flag for flag in when for _ in value]
    kept = tuple(
        v if f[0] >= 1 else old if f[1] < 1 else _hull(old, v) for old, v, f in zip(bank, new, flags, strict=True)
    )
    return kept, kept


@_dispatched.register
def _(operation: ops.Position, memory, counted):
    grown = _grown(((0, 0),) if memory is None else memory, ((1, 1),), counted)
    return grown, grown


@_dispatched.register
def _(operation: ops.Cumsum, memory, counted, x: Value):
    if any(lo < 0 for lo, _ in x):
        return None, memory or "lost"
    if memory == "lost":
        return None, memory
    grown = _grown(((0, 0),) * len(x) if memory is None else memory, x, counted)
    return grown, grown


@_dispatched.register
def _(operation: ops.Count, memory, counted, when: Value, reset: Value):
    ((least, most),) = reset
    ((lo, hi),) = _grown(((0, 0),) if memory is None else memory, when, counted)
    kept = ((0, 0),) if least >= 1 else ((0 if most >= 1 else lo, hi),)
    return kept, kept


def _grown(sums: Value, added: Value, counted: int) -> Value:
    """Sums of numbers ≥ 0, of which only "`counted` or more" is kept beyond `counted`."""
    totals = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(sums, added, strict=True)]
    return tuple((min(floor(lo), counted), inf if hi > counted else hi) for lo, hi in totals)


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])
