"""Gadget of a bank of states of which a gate opens one."""

from __future__ import annotations

import numpy as np

from compiler.exactness.levels import GATE
from compiler.gadgets.gadget import Entry, Gadget, Operands, gadget_of
from compiler.gadgets.parts import column_gain, constant_column, read_gain, targets
from compiler.gadgets.state import OneColumnState
from compiler.ir.coordinate import Coordinate
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import CONSTANT_COLUMN, Ports


class GatedState(Gadget):
    """Σ_k gate_k · bank_k: the channels of entry k (latches or running sums) behind z = 32·gate_k.

    silu(32·gate_k) is 32 for the selected entry and 0 for all others, and the entries share their output lanes.
    A single gate opens the whole bank.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        bank, gate = stream.inputs
        return [*_state(bank).operands(bank, target), (gate, "lanes")]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        bank, gate = stream.inputs
        return [*_state(bank).rows(bank, np.tile(wanted, gate.width)), np.ones(gate.width, dtype=bool)]

    def absorbs(self, stream: Stream) -> tuple[Stream, ...]:
        return stream.inputs[:1]

    def column_group(self, stream: Stream) -> tuple:
        return CONSTANT_COLUMN

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        bank, gate = inputs
        return fitter.rebuilt(stream, stream.operation, (bank, fitter.landed(gate)))

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        bank, gate = stream.inputs
        keys, lanes = gate.width, np.flatnonzero(wanted)
        at = (np.arange(keys)[:, None] * (bank.width // keys) + lanes).reshape(-1)
        constant_column(builder)
        ids, unit, step = _state(bank).written(bank, at, builder)
        level = GATE / float(builder.domains.of(gate).step)
        out = (np.tile(targets(stream, wanted, builder), keys), unit * column_gain(builder) * GATE / level)
        rows = (builder.on_lanes(gate, np.repeat(np.arange(keys), len(lanes))) * level).tocsr()
        entries = [Coordinate(f"{stream.label}[{k}][{i}]", stream, int(i)) for k in range(keys) for i in lanes]
        builder.add_channels(entries, ids, out, rows, **step)

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        keys = stream.inputs[1].width
        return [
            Entry(k, np.arange(k * count // keys, (k + 1) * count // keys), 0, read_gain(target)) for k in range(keys)
        ]


def _state(bank: Stream) -> OneColumnState:
    gadget = gadget_of(bank.operation)
    if not isinstance(gadget, OneColumnState):
        raise TypeError(f"{bank.label} is no bank of states that a gate could open")
    return gadget
