"""Dead-code elimination: numbers that the output is not made of are not computed.

Other passes leave out what nobody reads too, but only once it has a lowering, and bounds. So this is tried where a
circuit is refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.lanes import placed
from compiler.language.stream import Stream, constant, standing_for
from compiler.passes.lane_by_lane import lane_count, only_lanes

Read = dict[Stream, np.ndarray]
"""Which lanes of each stream the output is made of."""


def dead_code(circuit: Circuit) -> Circuit:
    """The same circuit, zeros where lanes of a stream meet only zeros of all matrices; itself where there are none."""
    read = lanes_read(circuit)
    kept: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        with standing_for(stream):
            new = _without(stream, inputs, read[stream])
        if new is not stream:
            new.name = new.name or stream.name
        kept[stream] = new
    output = kept[circuit.output]
    return circuit if output is circuit.output else replace(circuit, output=output)


def _without(stream: Stream, inputs: tuple[Stream, ...], read: np.ndarray) -> Stream:
    """The stream, of which lanes that are not read may be 0; sources stay as they are, for they cost nothing.

    But for constants, whose numbers may be such as no float holds.
    """
    if stream.operation.constants is not None:
        values = zip(stream.operation.constants, read, strict=True)
        return stream if read.all() else Stream(ops.Constant(tuple(v if used else Fraction(0) for v, used in values)))
    if stream.inputs and not read.any():
        return constant(0, stream.width)
    if stream.operation.alternatives is not None:
        first, last = np.flatnonzero(read)[[0, -1]].tolist()
        fewer = last - first + 1 < stream.width
        return _values(inputs[0], first, last, stream.width) if fewer else rebuilt(stream, inputs)
    count = lane_count(stream)
    lanes = np.flatnonzero(read.reshape(-1, count).any(axis=0)) if count else None
    if lanes is None or len(lanes) == count:
        return rebuilt(stream, inputs)
    return only_lanes(stream, inputs, lanes)


def _values(x: Stream, first: int, last: int, n: int) -> Stream:
    """The one-hot of n alternatives, without those before the first and behind the last."""
    return placed((x - first).one_hot(last - first + 1), np.arange(first, last + 1), n)


def lanes_read(circuit: Circuit) -> Read:
    """The lanes of the output, those of the operands that they are made of, and so on."""
    read: Read = {s: np.zeros(s.width, dtype=bool) for s in circuit.streams}
    read[circuit.output][:] = True
    for stream in reversed(circuit.streams):
        if read[stream].any():
            operands = stream.operation.lanes_read(read[stream], *(s.width for s in stream.inputs))
            for source, lanes in zip(stream.inputs, operands, strict=True):
                read[source] |= lanes
    return read
