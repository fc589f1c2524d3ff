"""Gadget of relu (and of the halves of real numbers)."""

from __future__ import annotations

import numpy as np

from compiler.analysis.one_channel import one_channel
from compiler.exactness.levels import GATE, OFF
from compiler.gadgets.gadget import Gadget
from compiler.gadgets.parts import places, targets
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter


class Rectifier(Gadget):
    """relu on lanes, by the D path.

    dt_bias = −200 makes Δ = softplus(−200) = 0, so the state stays 0 and y = D·x̂ with D = 1/32;
    the gate is silu(32·one) = 32, so out = (1/S)·32·(1/32)·S·relu(v) = relu(v).
    """

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        """One channel may read several lags of one row; anything else is carried to lanes first."""
        (raw,) = inputs
        target = fitter.target
        fits = one_channel(fitter.form(raw), raw.width, target.d_conv, True, target.row_bias) is not None
        result = fitter.rebuilt(stream, stream.operation, (raw if fits else fitter.landed(raw),))
        fitter.remember_before_rectifier(result, raw)
        return result

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        ids, scale = builder.rectifier(stream, wanted)
        out = (targets(stream, wanted, builder), np.full(len(ids), 1 / scale))
        builder.add_channels(places(stream, wanted), ids, out, builder.always_open(len(ids), GATE), OFF, skip=1 / GATE)
