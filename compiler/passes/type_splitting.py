"""Type splitting: real lanes and lattice lanes of one stream are computed apart.

What a lattice promises, scales and bounds on sums, is argued for whole streams, and halves of real numbers are scaled
for the largest of them. So nothing but linear maps may hold both kinds; afterwards nothing else does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler.analysis.domains import Domains
from compiler.context import Context
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.operations import LaneWise
from compiler.language.stream import Stream, standing_for
from compiler.passes.lane_by_lane import back_in_place, lane_count, on_lanes


def type_splitting(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit; itself where no operation has lanes of both kinds."""
    kept: dict[Stream, Stream] = {}
    domains = context.domains.draft()
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        real = _real(stream, domains)
        with standing_for(stream):
            new = _apart(stream, inputs, real) if real.any() and not real.all() else rebuilt(stream, inputs)
        domains.replaced(stream, new)
        kept[stream] = new
    output = kept[circuit.output]
    return (circuit if output is circuit.output else replace(circuit, output=output)), context.knowing(domains)


def _real(stream: Stream, domains: Domains) -> np.ndarray:
    """Which lanes, of those that the operation takes one by one, are real numbers."""
    real = np.zeros(lane_count(stream), dtype=bool)
    read = stream.inputs[:1] if stream.operation.lane_wise is LaneWise.VALUE else stream.inputs
    for operand in read if len(real) else ():
        real |= domains.of(operand).units == 0
    return real


def _apart(stream: Stream, inputs: tuple[Stream, ...], real: np.ndarray) -> Stream:
    """The operation on the real lanes and the operation on the others, each lane in its place."""
    matrices, parts = [], []
    for lanes in (np.flatnonzero(real), np.flatnonzero(~real)):
        parts.append(on_lanes(stream, inputs, lanes).named(ops.picked(stream.label, lanes)))
        matrices.append(back_in_place(stream, lanes))
    return Stream(ops.Linear(tuple(matrices)), tuple(parts), stream.name)
