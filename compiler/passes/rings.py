"""Rings: a value k positions back, read from a ring of k + 1 places instead of carried along by ⌈k/reach⌉
blocks.

The ring is a "last" memory: position p writes the value at place p mod (k + 1), and reads place p + 1 mod (k + 1),
which was written at p − k, or not yet: then it reads zeros, as before the start. Position, remainder, one-hot and bank
take four blocks, whatever k is, and k + 1 channels for each lane. The remainder is p − (k + 1)·Σ_j [p ≥ j·(k + 1)], two
ramps for each multiple, whose sums grow with the square of the length. Where the format does not hold them the
remainder is the position less what it was at the last multiple of k + 1; a multiple is recognised by
Σ_j [p = j·(k + 1)], three ramps each. That takes a latch, and on Mamba-2 a block for the ramps before it.

A shift stays a chain where that has no more blocks, where the ramps would leave the exact range of the format, where
too many channels would be needed (a filter reads many lags: they share one chain), and where the target has no such
bank.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
from scipy import sparse

from compiler.context import Context
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream, standing_for
from compiler.language.types import Bool, OneHot
from compiler.language.words import latch

BLOCKS = 4
MOST_CHANNELS = 4096  # of all rings of one stream


def rings(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit, far shifts read from rings where that takes fewer blocks."""
    far = _far(circuit, context)
    if not far:
        return circuit, context
    position = Stream(ops.Position(), (), "position")
    kept: dict[Stream, Stream] = {}
    domains = context.domains.draft()
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        new = rebuilt(stream, inputs)
        if stream in far:
            source, lag = far[stream]
            with standing_for(stream):
                new = _ring(kept[source], position, lag, context)
        if new is not stream:
            new.name = new.name or stream.label
            domains.replaced(stream, new)
        kept[stream] = new
    return replace(circuit, output=kept[circuit.output]), context.knowing(domains)


def _far(circuit: Circuit, context: Context) -> dict[Stream, tuple[Stream, int]]:
    """(what is shifted, how far) for each shift that becomes a ring."""
    if not {ops.Latch, ops.GateSum, ops.Cumsum}.isdisjoint(context.target.lacks):
        return {}
    found: dict[Stream, list[tuple[Stream, int]]] = defaultdict(list)
    for stream in circuit.streams:
        if stream.operation.delay is not None:
            source, lag = _unwound(stream)
            if _pays(source, lag, context):
                found[source].append((stream, lag))
    chosen = {}
    for source, shifts in found.items():
        if sum(lag + 1 for lag in {lag for _, lag in shifts}) * source.width <= MOST_CHANNELS:
            chosen.update({stream: (source, lag) for stream, lag in shifts})
    return chosen


def _unwound(stream: Stream) -> tuple[Stream, int]:
    lag = 0
    while (delay := stream.operation.delay) is not None:
        stream, lag = stream.inputs[0], lag + delay
    return stream, lag


def _pays(source: Stream, lag: int, context: Context) -> bool:
    length = context.domains.max_length
    latched = not _divides(lag + 1, context)
    blocks = BLOCKS + (latched and context.target.step == "lanes")  # there the ramps of a multiple stand on lanes first
    ramps = latched * 4 * length * (length // (lag + 1) + 1)  # |1| + |−2| + |1| of each multiple, at the last position
    return (
        -(-lag // context.target.max_lag) > blocks
        and lag < length
        and context.domains.of(source).step > 0
        and ramps <= context.format.exact_integers
    )


def _divides(places: int, context: Context) -> bool:
    """Whether the format holds every sum of the remainder at the last position: p, and two ramps for each multiple."""
    length = context.domains.max_length
    count = length // places
    ramps = count * (2 * length + 1) - places * count * (count + 1)  # Σ 2(length − j·places) + 1 over j = 1 … count
    return length + places * ramps <= context.format.exact_integers


def _ring(value: Stream, position: Stream, lag: int, context: Context) -> Stream:
    places = lag + 1
    place = _remainder(position, places, context).one_hot(places).named("place")
    ahead = sparse.csr_array((np.ones(places), (np.roll(range(places), -1), range(places))), shape=(places, places))
    following = Stream(ops.Linear((ops.exact_matrix(ahead),), OneHot(places)), (place,))
    return memory.write(place, value, policy="last", name="ring").read(following)


def _remainder(position: Stream, places: int, context: Context) -> Stream:
    """position mod places."""
    if _divides(places, context):
        return position % places
    whole = range(1, context.domains.max_length + 1)
    multiple = position.lookup([0, *(int(p % places == 0) for p in whole)]).retyped(Bool())
    return position - latch(position, multiple)
