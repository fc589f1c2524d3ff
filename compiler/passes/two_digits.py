"""Two digits: a memory with more slots than a state may have columns keeps them by two digits.

Slot p = D·h + l of N has the high digit h < ⌈N/D⌉ and the low digit l < D. What is written under p is stored by the
channels of h, under column l; a read opens the gates of its own h and asks for column l. The state is D·⌈N/D⌉·w ≥ N·w
numbers for values of w, in D columns instead of N. D is the power of two next to √N, so that channels and columns are
both few, or what the limit leaves.

The digits of a key are linear in the one-hot of p, so every key that is shown to be one-hot has them. Where it is the
one-hot of a number x, they come from the number itself, in ⌈N/D⌉ + D ramps and not N:

    h = Σ_j [x ≥ j·D] (its one-hot: differences of the comparisons),  l = x − D·h.

A query of several slots is the sum of reads that ask for one each. Keys and queries of which that is not shown, and
values off every lattice, are refused where the limit was asked for; where it is the default they keep their columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, isqrt

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.context import Context
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import operation_of, rebuilt
from compiler.language.operations import Source
from compiler.language.stream import Stream, constant, standing_for
from compiler.language.types import OneHot
from compiler.lowering.conditions import is_one_hot, need_one_hot, need_whole
from compiler.targets.target import Target


@dataclass(frozen=True, eq=False)
class _Digits:
    """One-hot digits of a one-hot, and flags without which there is none."""

    high: Stream
    low: Stream
    conditions: tuple[Stream, ...] = ()

    def shifted(self, k: int) -> _Digits:
        return _Digits(self.high.shift(k), self.low.shift(k), tuple(flag.shift(k) for flag in self.conditions))


def two_digits(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit; no keyed memory that can be split has more columns than the context allows."""
    limit = context.columns
    if limit.most is None or not any(_is_wide(s, limit.most) for s in circuit.streams):
        return circuit, context
    domains = context.domains.draft()
    kept: dict[Stream, Stream] = {}
    reasons: list[tuple[Stream | None, str]] = []
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        new = rebuilt(stream, inputs)
        if _is_wide(stream, limit.most):
            try:
                with standing_for(stream):
                    new = _split(new, limit.most, domains, context.target)
            except NotImplementedError as reason:
                if limit.asked:
                    reasons.append((stream, _refusal(stream, limit.most, str(reason))))
        if new is not stream:
            new.name = new.name or stream.label
            domains.replaced(stream, new)
        kept[stream] = new
    if reasons:
        raise CompileError(reasons)
    return replace(circuit, output=kept[circuit.output]), context.knowing(domains)


def _is_wide(stream: Stream, most: int) -> bool:
    """Whether it is a memory with a column for each of more than so many slots ("last" has channels instead)."""
    return stream.operation.write_policy not in (None, "last") and stream.inputs[1].width > most


def _refusal(stream: Stream, most: int, reason: str) -> str:
    slots = stream.inputs[1].width
    return f"it has {slots} slots, max_d_state is {most}, and it cannot be split: {reason}; {slots} columns would do"


def _split(stream: Stream, most: int, domains: Domains, target: Target) -> Stream:
    """A memory read in two digits: the sum of a read for each slot that its query asks for."""
    operation, (value, key, query, *when) = operation_of(stream, ops.MemoryRead), stream.inputs
    if ops.GatedRead in target.lacks:
        raise NotImplementedError(f"{target.name} has no gated memories: {target.lacks[ops.GatedRead]}")
    if not domains.of(value).step:
        raise NotImplementedError("its value is a real number")
    if operation.skip:
        raise NotImplementedError("its value is added to what it reads")
    need_one_hot(domains, key)
    size = min(most, 1 << (isqrt(key.width - 1)).bit_length())
    held = _digits(key, size, domains)
    writes = floor(domains.of(key).total) if operation.writes is None else operation.writes
    if operation.policy == "once":
        writes = 1
    core = ops.TwoDigitRead("first" if operation.policy == "first" else "sum", writes)
    reads = []
    for part in _parts(query, domains):
        asked = _digits(part, size, domains)
        high = asked.high
        for flag in asked.conditions:
            high = high & flag
        reads.append(Stream(core, (value, held.high, held.low, high, asked.low, *held.conditions, *when)))
    result = sum(reads[1:], start=reads[0])
    return Stream(ops.Linear((ops.scaled_identity(result.width),), stream.type), (result,), stream.name)


def _parts(query: Stream, domains: Domains) -> Iterator[Stream]:
    """One-hot streams of which a query is the sum."""
    if is_one_hot(domains, query):
        yield query
        return
    if query.operation.maps and len(query.inputs) > 1:
        for matrix, source in zip(query.operation.maps, query.inputs, strict=True):
            yield from _parts(Stream(ops.Linear((matrix,)), (source,)), domains)
        return
    need_one_hot(domains, query)


# Digits ---------------------------------------------------------------------------------------------------


def _digits(key: Stream, size: int, domains: Domains) -> _Digits:
    """The digits of a stream that is shown to be one-hot."""
    operation = key.operation
    if operation.delay is not None:
        return _digits(key.inputs[0], size, domains).shifted(operation.delay)
    if operation.conjunction:
        wide, flags = _wide_and_flags(key)
        if wide is not None and is_one_hot(domains, wide):
            found = _digits(wide, size, domains)
            return replace(found, conditions=(*found.conditions, *flags))
    numbered = _one_hot_of_a_number(key)
    if numbered is not None:
        return _of_number(*numbered, key.width, size, domains)
    places = np.arange(key.width)
    return _Digits(_summed(places // size, key), _summed(places % size, key))


def _wide_and_flags(key: Stream) -> tuple[Stream | None, list[Stream]]:
    wide = [s for s in key.inputs if s.width == key.width]
    return (wide[0], [s for s in key.inputs if s.width == 1]) if len(wide) == 1 else (None, [])


def _summed(digit: np.ndarray, key: Stream) -> Stream:
    """The one-hot of a digit: the sum over the slots that have it. Of a token it is a table of its own."""
    count = int(digit.max()) + 1
    add = ops.exact_matrix(
        sparse.csr_array((np.ones(len(digit)), (digit, range(len(digit)))), shape=(count, len(digit)))
    )
    if key.operation.source is Source.TOKEN:
        embed = operation_of(key, ops.Embed)
        table = ops.exact_matrix(embed.table @ add.T)
        return Stream(ops.Embed(embed.alphabet, table, OneHot(count)), (), f"digit of {key.label}")
    return Stream(ops.Linear((add,), OneHot(count)), (key,))


def _one_hot_of_a_number(key: Stream) -> tuple[Stream, int, int] | None:
    """(x, n, offset) where slot offset + j is on exactly where x = j < n; None where the key is no such one-hot."""
    operation, offset = key.operation, 0
    if operation.maps and len(key.inputs) == 1:
        coo = operation.maps[0].tocoo()
        inner = key.inputs[0]
        if inner.operation.alternatives is None or coo.nnz != inner.width or (coo.data != 1).any():
            return None
        offset = int((coo.row - coo.col).min())
        if (coo.row - coo.col != offset).any():
            return None
        key, operation = inner, inner.operation
    return None if operation.alternatives is None else (key.inputs[0], operation.alternatives, offset)


def _of_number(number: Stream, n: int, offset: int, slots: int, size: int, domains: Domains) -> _Digits:
    """The digits of offset + x for 0 ≤ x < n; no high digit for other x."""
    need_whole(domains, number)
    edges = np.clip(np.arange(0, slots + size, size) - offset, 0, n)
    known = domains.of(number)
    asked = np.array([e for e in np.unique(edges) if known.lo < e <= known.hi], dtype=int)
    difference = sparse.diags_array([1.0, -1.0], offsets=[0, 1], shape=(len(edges) - 1, len(edges)), format="csr")
    sure = np.array([[float(e <= known.lo)] for e in edges])
    terms = [(difference @ sure, constant(1))]
    if len(asked):
        levels = Stream(ops.Constant(tuple(Fraction(int(e)) for e in asked)))
        reached = np.ones((len(asked), 1)) @ number >= levels
        terms.append((difference @ (edges[:, None] == asked).astype(float), reached))
    high = Stream(
        ops.Linear(tuple(ops.exact_matrix(m) for m, _ in terms), OneHot(len(edges) - 1)), [s for _, s in terms]
    )
    place = size * np.arange(len(edges) - 1, dtype=float)[None, :] @ high
    return _Digits(high, (number + offset - place).one_hot(size))
