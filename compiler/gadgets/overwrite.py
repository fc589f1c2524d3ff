"""Gadget of a keyed memory that keeps the last write, where states follow the delta rule."""

from __future__ import annotations

import numpy as np

from compiler.exactness.levels import GATE, ON
from compiler.gadgets.gadget import Entry, Gadget, Operands
from compiler.gadgets.memory import memory_group
from compiler.gadgets.parts import columns_of, places, targets
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.conditions import need_one_hot
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports

CHUNK_TERMS = 2 * (64 + 1)  # values that a chunk of 64 positions, behind its first state, adds up in float32
LARGEST_VALUE = (1 << 24) // CHUNK_TERMS
ADDS = "what a write finds under its key is subtracted, so no block adds up what was written (β k kᵀ S)"


class Overwrite(Gadget):
    """β = 1 and a one-hot key: S ← S + k (v − kᵀS)ᵀ puts v in the row of the key and leaves all others.

    k = key, or 0 where nothing is written, and q = query are unit vectors or 0 after the norms of the module, which
    divide by the level 32 that they stand at: x̂² is one square, and 1e-6 is lost beside it. Step by step a row takes
    v + (row − row), which is v bit for bit.
    In chunks the triangle I + tril(K Kᵀ) has entries 0 and 1, its inverse entries 0 and ±1, and the sums that it forms
    are of differences of two values, one for each of 64 positions and one of the state before them: 130 values, each of
    at most 2^24/130 quanta.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        return [(source, "written") for source in stream.inputs]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        return [wanted, *(np.ones(s.width, dtype=bool) for s in stream.inputs[1:])]

    def column_group(self, stream: Stream) -> tuple:
        _, key, query = stream.inputs
        return memory_group(key, query, "last")

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        if operation_of(stream, ops.MemoryRead).policy != "last":
            raise NotImplementedError(f"{fitter.target.name} has no memory that adds: {ADDS}; write with policy='last'")
        value, key, query = inputs
        need_one_hot(fitter.domains, key, query)
        if fitter.domains.of(value).steps > LARGEST_VALUE:
            raise NotImplementedError(
                f"it keeps values of up to {fitter.domains.of(value).steps} quanta, and {LARGEST_VALUE} are the most "
                f"on {fitter.target.name}, which adds up {CHUNK_TERMS} of them in a chunk"
            )
        return super().fit(stream, inputs, fitter)

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        value, key, query = stream.inputs
        ids, unit = builder.written(value, wanted)
        write, read = (_unit_rows(builder, one_hot) for one_hot in (key, query))
        builder.set_columns(columns_of(key, stream), write, read, beta=1.0)
        out = (targets(stream, wanted, builder), unit / GATE)
        builder.add_channels(places(stream, wanted), ids, out, builder.always_open(len(ids), GATE), ON)

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        return [Entry(n, np.arange(count), n, GATE) for n in range(stream.inputs[1].width)]


def _unit_rows(builder: BlockBuilder, one_hot: Stream) -> list[tuple]:
    """(column, feature, weight) triples of a one-hot at the key or the query of a head."""
    ids, unit = builder.written(one_hot, np.ones(one_hot.width, dtype=bool))
    return [(np.arange(one_hot.width), ids, unit)]
