"""Gadget of the product by four values of silu."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from compiler.exactness.levels import CONSTANT, OFF
from compiler.formats import FLOAT32
from compiler.gadgets.gadget import Gadget
from compiler.gadgets.parts import places, targets
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter


class SiluProduct(Gadget):
    """(λ²/2)·Σ ±silu(±(a ± b)/λ) in four channels, the block as a two-layer network (paper B, Lemma 1).

    x̂ = 32 everywhere and D = 1/32, so y = 1; the state is off (Δ = softplus(−200) = 0); the gates are silu(±(a +
    b)/λ), added, and silu(±(a − b)/λ), subtracted. They stand near 0, where silu is curved: that is the point.
    """

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        if fitter.facts.format is not FLOAT32:
            raise NotImplementedError(
                f"its error is proved in float32 only, and the dtype is {fitter.facts.format.name}; write a * b"
            )
        scale = operation_of(stream, ops.SiluProduct).scale
        reach = sum((fitter.facts.domains.of(s).bound for s in inputs), Fraction(0))
        if (most := 2 * scale * max(reach, scale)) > FLOAT32.largest:  # four terms of λ·reach/2, the weight λ²/2
            what = "its weights" if reach < scale else "its four terms, before they cancel,"
            raise NotImplementedError(
                f"{what} can reach {float(most):g}, and float32 ends at {FLOAT32.largest:g}; take a smaller scale, or "
                "write a * b"
            )
        return super().fit(stream, inputs, fitter)

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        at = np.flatnonzero(wanted)
        a, b = (builder.on_lanes(source, at) for source in stream.inputs)
        scale = float(operation_of(stream, ops.SiluProduct).scale)
        ids, target = np.full(len(at), builder.constant()), targets(stream, wanted, builder)
        for sign, row in ((1.0, a + b), (1.0, -a - b), (-1.0, a - b), (-1.0, b - a)):
            out = (target, np.full(len(at), sign * scale**2 / 2))
            gate = (row / scale).tocsr()
            builder.add_channels(places(stream, wanted), ids, out, gate, OFF, skip=1 / CONSTANT, curved_gate=True)
