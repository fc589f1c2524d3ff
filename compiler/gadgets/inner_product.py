"""Gadget of the inner product of two vectors at one position."""

from __future__ import annotations

import numpy as np

from compiler.exactness.levels import GATE, ON
from compiler.gadgets.gadget import Gadget, Operands
from compiler.gadgets.parts import column_entries, columns_of, places, targets
from compiler.ir.decay import ERASE
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports


def sum_of_products(target: Ports, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
    """Σ_n a_n·b_n where B and C are no linear maps of x̂: a product for each lane, whose sum costs nothing."""
    return fitter.fitted_parts(np.ones((1, inputs[0].width)) @ Stream(ops.Multiply(), inputs))


class InnerProduct(Gadget):
    """Σ_n a_n·b_n in one channel: x̂ = 32 everywhere, B = a/128, C = b/32, Δ = 128 and A = −1.

    Δ·|A| = 128 erases the state at every position, so h_n = 128·(a_n/128)·32 and y = Σ a_n b_n; gate 32.
    B and C are linear in x̂, hence signed. Exact on integers; on real numbers right within a few ulps of the
    largest term.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        return [(source, "linear") for source in stream.inputs]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        return [np.ones(s.width, dtype=bool) for s in stream.inputs]

    def column_group(self, stream: Stream) -> tuple:
        return ("dot", *map(id, stream.inputs))

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        a, b = stream.inputs
        write = [(r, f, w / ON) for r, f, w in column_entries(builder, a)]
        read = [(r, f, w / GATE) for r, f, w in column_entries(builder, b)]
        builder.set_columns(columns_of(a, stream), write, read)
        out = (targets(stream, wanted, builder), np.array([1 / GATE]))
        on, gate = np.array([builder.constant()]), builder.always_open(1, GATE)
        builder.add_channels(places(stream, wanted), on, out, gate, ON, decay=ERASE)
