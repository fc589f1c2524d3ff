"""Gadget of the outer-product memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from compiler.analysis.domains import Domains
from compiler.exactness.levels import GATE, ON
from compiler.gadgets.gadget import Entry, Gadget, Operands
from compiler.gadgets.parts import column, columns_of, places, read_gain, targets
from compiler.ir.decay import KEEP, Fade
from compiler.language import operations as ops
from compiler.language.graph import operation_of, rebuilt
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.ports import Ports


def memory_group(key: Stream, query: Stream, policy: str = "sum") -> tuple:
    """The column group of memories under a key and a query."""
    return ("memory", policy, id(key), id(query))


class OuterProduct(Gadget):
    """Σ_{s≤t} v_s <k_s, q_t>, whatever a step leaves of it: x̂ = S·v, B = k/128, C = q/32, Δ = 128.

    Where nothing linear follows silu at B and C (Mamba-2) the columns stand at their own scales
    S_k·k and S_q·q, and the output is divided by 128·S_k·S_q instead.
    """

    @abstractmethod
    def decay(self, stream: Stream) -> Fade:
        """What a step leaves of the state."""

    def skip(self, stream: Stream) -> Fraction:
        """The multiple of the value that is added to what is read: y = C·h + D·x̂."""
        return Fraction(0)

    def operands(self, stream: Stream, target: Ports) -> Operands:
        value, key, query = stream.inputs
        port = target.column or "written"
        return [(value, "written"), (key, port), (query, port)]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        return [wanted, *(np.ones(s.width, dtype=bool) for s in stream.inputs[1:])]

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        value, key, query = stream.inputs
        ids, unit = builder.written(value, wanted)
        write, key_unit = column(builder, key, ON)
        read, query_unit = column(builder, query, GATE)
        gain = key_unit * query_unit / (ON * GATE)
        builder.set_columns(columns_of(key, stream), write, read)
        out = (targets(stream, wanted, builder), unit * gain)
        gate, skip = builder.always_open(len(ids), GATE), float(self.skip(stream)) / (GATE * gain)
        builder.add_channels(places(stream, wanted), ids, out, gate, ON, decay=self.decay(stream), skip=skip)

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        return [Entry(n, np.arange(count), n, read_gain(target)) for n in range(stream.inputs[1].width)]


class OuterProductMemory(OuterProduct):
    """The memory that keeps everything: A = −0 (paper A, Theorem 2)."""

    def decay(self, stream: Stream) -> Fade:
        return KEEP

    def skip(self, stream: Stream) -> Fraction:
        return operation_of(stream, ops.MemoryRead).skip

    def column_group(self, stream: Stream) -> tuple:
        _, key, query = stream.inputs
        return memory_group(key, query, operation_of(stream, ops.MemoryRead).policy)

    def with_skip(self, stream: Stream, skip: Fraction) -> Stream:
        """The memory that also adds skip · value, by the D path."""
        return rebuilt(stream, stream.inputs, replace(operation_of(stream, ops.MemoryRead), skip=skip))

    def claims(self, stream: Stream, domains: Domains) -> Iterator[tuple[str, Fraction]]:
        value, key = (domains.of(s) for s in stream.inputs[:2])
        if value.step * key.step:
            yield "an entry of its state", domains.cell_bound(stream) / (value.step * key.step)
