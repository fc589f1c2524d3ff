"""Pass 2, real lanes: of a stream with both, lanes of real numbers and lanes on a lattice are computed apart.

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
from compiler.language.stream import Stream
from compiler.language.words import concatenate

EACH = {
    *(ops.Relu, ops.Clip, ops.Min, ops.Max, ops.Compare, ops.Select),
    *(ops.Multiply, ops.ScaledSum, ops.Cumsum, ops.Lti, ops.Shift),
}
"""Lane i of the result is made of lane i of each operand, or of the only lane of one."""
OF_VALUE = {ops.FadingSum, ops.SelectiveSum, ops.FadingMemory, ops.MemoryRead, ops.Latch, ops.SumWhere}
"""Lane i of the result, under each flag of a latch, is made of lane i of the value, the first operand."""


def real_lanes(circuit: Circuit, context: Context) -> Circuit:
    """The same circuit; itself where no operation has lanes of both kinds."""
    kept: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        real, new = _real(stream, context.domains), stream
        if real.any() and not real.all():
            new = _apart(stream, inputs, real)
        elif any(a is not b for a, b in zip(inputs, stream.inputs, strict=True)):
            new = Stream(stream.operation, inputs, stream.name)
        if new is not stream:
            new.origin = stream.origin
            context.domains.meet(new, context.domains.of(stream))
        kept[stream] = new
    output = kept[circuit.output]
    return circuit if output is circuit.output else replace(circuit, output=output)


def _real(stream: Stream, domains: Domains) -> np.ndarray:
    """Which lanes, of those that the operation takes one by one, are real numbers; none of other operations."""
    if type(stream.operation) in OF_VALUE:
        return domains.of(stream.inputs[0]).units == 0
    if type(stream.operation) in EACH:
        return np.any([np.broadcast_to(domains.of(s).units == 0, stream.width) for s in stream.inputs], axis=0)
    return np.zeros(stream.width, dtype=bool)


def _apart(stream: Stream, inputs: tuple[Stream, ...], real: np.ndarray) -> Stream:
    """The operation on the real lanes, the operation on the others, and their lanes in the order that they had."""
    one_by_one = len(inputs) if type(stream.operation) in EACH else 1
    flags = stream.width // len(real)  # a latch has all lanes of its value under each
    parts, places = [], []
    for kind, lanes in (("real", np.flatnonzero(real)), ("lattice", np.flatnonzero(~real))):
        operands = (s[lanes] if i < one_by_one and s.width == len(real) else s for i, s in enumerate(inputs))
        parts.append(Stream(stream.operation, tuple(operands), f"{stream.label}.{kind}"))
        parts[-1].origin = stream.origin
        places.append((np.arange(flags)[:, None] * len(real) + lanes).ravel())
    result = concatenate(*parts)[np.argsort(np.concatenate(places))]
    result.name = stream.name
    return result
