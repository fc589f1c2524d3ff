"""Gadget of several additive memories of which a gate opens one."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from compiler.analysis.domains import Domains
from compiler.exactness.levels import GATE, ON
from compiler.gadgets.gadget import Entry, Gadget, Operands
from compiler.gadgets.memory import memory_group
from compiler.gadgets.parts import column, columns_of, read_gain, targets
from compiler.ir.coordinate import Coordinate
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.ports import Ports


class GatedMemory(Gadget):
    """Σ_h gate_h · Σ_{s≤t} v_{h,s} <k_s, q_t>: the channels of entry h store x̂ = S·v_h (B = k/128, C = q/32, Δ = 128,
    A = −0, as in the outer-product memory) behind z = 32·gate_h.

    silu(32·gate_h) is 32 for the entry that is asked for and 0 for all others, and the entries share their output
    lanes. So H·w channels with n columns keep H·n slots of w numbers: a memory in two digits.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        bank, key, query, gate = stream.inputs
        port = target.column or "written"
        return [(bank, "written"), (key, port), (query, port), (gate, "lanes")]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        _, *others = stream.inputs
        return [np.tile(wanted, others[-1].width), *(np.ones(s.width, dtype=bool) for s in others)]

    def column_group(self, stream: Stream) -> tuple:
        _, key, query, _ = stream.inputs
        return memory_group(key, query)

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        bank, key, query, gate = stream.inputs
        entries, lanes = gate.width, np.flatnonzero(wanted)
        ids, unit = builder.written(bank, np.tile(wanted, entries))
        write, key_unit = column(builder, key, ON)
        read, query_unit = column(builder, query, GATE)
        builder.set_columns(columns_of(key, stream), write, read)
        level = GATE / float(builder.domains.of(gate).step)
        out = (np.tile(targets(stream, wanted, builder), entries), unit * key_unit * query_unit / (ON * level))
        rows = (builder.on_lanes(gate, np.repeat(np.arange(entries), len(lanes))) * level).tocsr()
        places = [Coordinate(f"{stream.label}[{h}][{i}]", stream, int(i)) for h in range(entries) for i in lanes]
        builder.add_channels(places, ids, out, rows, ON)

    def claims(self, stream: Stream, domains: Domains) -> Iterator[tuple[str, Fraction]]:
        bank, key = (domains.of(s) for s in stream.inputs[:2])
        if bank.step * key.step:
            yield "an entry of its state", operation_of(stream, ops.GatedRead).cell(bank, key) / (bank.step * key.step)

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        columns, high = stream.inputs[1].width, stream.inputs[3].width
        width = count // high
        return [
            Entry(h * columns + n, np.arange(h * width, (h + 1) * width), n, read_gain(target))
            for h in range(high)
            for n in range(columns)
        ]
