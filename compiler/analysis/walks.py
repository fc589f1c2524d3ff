"""Walks: what a few streams can hold at every step of every walk of the input language.

The input language is a finite automaton. Its product with what the watched streams remember is finite too, if each
stream is known by an interval for each lane:

    a function of the present token    its row of the table; tokens with equal rows are one class
    a shift of at most 8               the intervals of the last positions
    a latch                            the last interval, or its hull with the new one where the flag is not certain
    a running sum or a count           exact up to 3, "3 or more" beyond (where that is too much to keep: at least 0)
    sums, rectifiers, logic, …         interval arithmetic, or the operation itself where all operands are certain
    everything else                    the bounds that are known of it anyway

Each interval holds the values of its stream at that step of every sequence that takes this walk, by induction over the
steps. That edges are `distinct` and that sequences end is left out: both only take walks away. So what holds along
every walk of the product holds for every sequence of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from math import ceil, floor, inf

import numpy as np
from scipy import sparse

from compiler.analysis.domain import Domain
from compiler.language import operations as ops
from compiler.language.graph import with_operation
from compiler.language.input_language import InputLanguage
from compiler.language.operations import Sees
from compiler.language.stream import Stream

MOST_STEPS = 8192  # of the product; beyond, nothing is claimed
_MOST_STREAMS = 128  # that are followed, nearest to the watched ones first
_WIDEST = 64
_LONGEST_SHIFT = 8
_COUNTED = 3
_MOST_ROWS = 1 << 24

Interval = tuple  # (least, largest): int, Fraction or an infinity
Value = tuple  # an interval for each lane
DomainOf = Callable[[Stream], Domain]


class TooManyWalks(Exception):
    """The product has more steps than are followed."""


@dataclass(frozen=True)
class Step:
    """One step of the product: from node to node by a token of a class, along an edge of the language.

    token: the least id of its class, None for circuits over numbers; trail: the edges of the steps before, nearest
    first (−1 before the start); values: of each watched stream.
    """

    source: int
    target: int
    edge: int
    token: int | None
    trail: tuple[int, ...]
    values: tuple[Value, ...]


def walks(
    language: InputLanguage | None, domain_of: DomainOf, watched: Sequence[Stream], trail: int = 0
) -> list[list[Step]]:
    """The steps that leave each node of the product; node 0 is the start. TooManyWalks beyond MOST_STEPS."""
    try:
        return _Product(language, domain_of, watched, trail, _COUNTED).explored()
    except TooManyWalks:
        return _Product(language, domain_of, watched, trail, 0).explored()


class _Product:
    def __init__(
        self, language: InputLanguage | None, domain_of: DomainOf, watched: Sequence[Stream], trail: int, counted: int
    ):
        self.watched, self.trail, self.counted = watched, trail, counted
        self.streams = _followed(watched)
        self.unknown = {s: _bounds(s, domain_of) for s in self.streams}
        self.rules = {s: _rule(s.operation) for s in self.streams}
        self.language = language
        self.edges = _letters(language, [s for s in self.streams if isinstance(s.operation, ops.Embed)])

    def explored(self) -> list[list[Step]]:
        start = (self.language.start if self.language else "", (None,) * len(self.streams), (-1,) * self.trail)
        nodes, pending, count = {start: 0}, [start], 0
        found: list[list[Step]] = []
        for node in pending:  # grows while it is read
            state, memories, trail = node
            found.append([])
            for edge, target, token, rows in self.edges.get(state, ()):
                values, after = self._step(memories, rows)
                following = (target, after, (edge, *trail)[: self.trail])
                if following not in nodes:
                    nodes[following] = len(nodes)
                    pending.append(following)
                read = tuple(values[s] for s in self.watched)
                found[-1].append(Step(nodes[node], nodes[following], edge, token, trail, read))
                count += 1
                if count > MOST_STEPS:
                    raise TooManyWalks(f"more than {MOST_STEPS} steps")
        return found

    def _step(self, memories: tuple, rows: dict[Stream, Value]) -> tuple[dict[Stream, Value | None], tuple]:
        """The values at a step, and what is remembered behind it."""
        values: dict[Stream, Value | None] = {}
        after = []
        for stream, memory in zip(self.streams, memories, strict=True):
            operands = [values.get(s) for s in stream.inputs]
            value, kept = None, None
            if stream in rows:
                value = rows[stream]
            elif self.rules[stream] and all(v is not None for v in operands):
                value, kept = self.rules[stream](stream.operation, memory, self.counted, *operands)
            values[stream] = _within(value, self.unknown[stream])
            after.append(kept)
        return values, tuple(after)


def _within(value: Value | None, bounds: Value | None) -> Value | None:
    """A value whose infinite ends are those that are known of its stream at any position."""
    if value is None or bounds is None:
        return bounds if value is None else value
    return tuple(
        (b[0] if v[0] == -inf else v[0], b[1] if v[1] == inf else v[1]) for v, b in zip(value, bounds, strict=True)
    )


def _followed(watched: Sequence[Stream]) -> list[Stream]:
    """The streams that the watched ones are functions of, as far as they are followed; inputs before readers."""
    near = list(dict.fromkeys(watched))
    seen = set(near)
    for stream in near:  # grows while it is read
        if _rule(stream.operation) is None or stream.width > _WIDEST:
            continue
        new = [s for s in dict.fromkeys(stream.inputs) if s not in seen]
        if len(near) + len(new) > _MOST_STREAMS:
            continue
        seen.update(new)
        near.extend(new)
    order: list[Stream] = []
    done: set[Stream] = set()
    stack = [(s, False) for s in reversed(near)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend((s, False) for s in node.inputs if s in seen)
    return order


def _bounds(stream: Stream, domain_of: DomainOf) -> Value | None:
    """What is known of a stream at any position, None where it is too wide to be followed."""
    if stream.width > _WIDEST:
        return None
    known = domain_of(stream)
    return tuple(
        (-inf if lo == -inf else floor(lo), inf if hi == inf else ceil(hi))
        for lo, hi in zip(known.low.tolist(), known.high.tolist(), strict=True)
    )


def _letters(language: InputLanguage | None, embeds: list[Stream]) -> dict[str, list]:
    """For each state (edge, next state, a token, rows of the embeddings), one for each class of tokens with
    equal rows.
    """
    if language is None:
        return {"": [(0, "", None, {})]}
    tables = {s: embed.table for s, embed in with_operation(embeds, ops.Embed) if s.width <= _WIDEST}
    size = language.alphabet.size
    if size * (1 + sum(s.width for s in tables)) > _MOST_ROWS:
        raise TooManyWalks("too many tokens")
    dense = {s: table.toarray() for s, table in tables.items()}
    rows = np.hstack([np.zeros((size, 1)), *dense.values()])
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)
    held = {int(t): {s: tuple((_exact(v),) * 2 for v in table[t]) for s, table in dense.items()} for t in first}
    letters: dict[str, list] = {}
    for number, edge in enumerate(language.edges):
        classes = np.unique(kind[sorted(edge.tokens)]) if edge.tokens else ()
        for c in classes:
            here = min(t for t in edge.tokens if kind[t] == c)
            letters.setdefault(edge.source, []).append((number, edge.target, here, held[int(first[c])]))
    return letters


def _exact(value: float) -> int | Fraction:
    return int(value) if float(value).is_integer() else Fraction(float(value))


# Rules: (operation, memory, how far counts are kept, operands) → (value, memory); memory is None at the start ---------


@singledispatch
def _dispatched(operation: ops.Operation, memory, counted, *operands: Value):
    if operation.sees is Sees.PAST or any(lo != hi for v in operands for lo, hi in v):
        return None, None
    arrays = [np.array([lo for lo, _ in v], dtype=object).reshape(1, 1, -1) for v in operands]
    return tuple((v, v) for v in operation.evaluate(*arrays)[0, 0]), None


def _rule(operation: ops.Operation):
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
    return tuple((_exact(float(v)) if v == Fraction(float(v)) else v,) * 2 for v in operation.values), None


@_dispatched.register(ops.Linear)
@_dispatched.register(ops.Emit)
def _(operation: ops.Linear, memory, counted, *operands: Value):
    width = operation.matrices[0].shape[0]
    low, high = [0] * width, [0] * width
    for matrix, value in zip(operation.matrices, operands, strict=True):
        for row, column, weight in _entries(matrix):
            ends = [weight * end for end in value[column]]
            low[row] += min(ends)
            high[row] += max(ends)
    return tuple(zip(low, high, strict=True)), None


def _entries(matrix: sparse.csr_array) -> Iterator[tuple[int, int, int | Fraction]]:
    coo = matrix.tocoo()
    for row, column, weight in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True):
        if weight:
            yield row, column, _exact(weight)


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
