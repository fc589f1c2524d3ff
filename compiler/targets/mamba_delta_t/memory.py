"""Gadget of a memory whose columns have the step."""

from __future__ import annotations

import numpy as np

from compiler.exactness.levels import GATE, OFF, ON
from compiler.gadgets.memory import OuterProductMemory
from compiler.gadgets.parts import column_entries, columns_of, places, targets
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder


class ColumnMemory(OuterProductMemory):
    """A memory whose columns have the step (paper A, Lemma 3): x̂ = S·v, B = k, C = q/32, and D = skip/32.

    Policy "last": Δ_n = softplus(256·k_n − 128) is 128 where column n is written, which erases it,
    and 0 elsewhere. The paper has softplus(w·k_n) without the shift, which is log 2 where k_n = 0
    and fades what must be kept. Policy "sum": Δ = softplus(−200) = 0, nothing fades.
    """

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        value, key, query = stream.inputs
        ids, unit = builder.written(value, wanted)
        write = column_entries(builder, key)
        read = [(r, f, w / GATE) for r, f, w in column_entries(builder, query)]
        memory = operation_of(stream, ops.MemoryRead)
        last = memory.policy == "last"
        step = [(r, f, 2 * ON * w) for r, f, w in write] if last else []
        bias = np.full(key.width, -ON if last else OFF)
        builder.set_columns(columns_of(key, stream), write, read, (step, bias))
        out = (targets(stream, wanted, builder), unit)
        gate, skip = builder.always_open(len(ids), GATE), float(memory.skip) / GATE
        builder.add_channels(places(stream, wanted), ids, out, gate, OFF, skip=skip)
