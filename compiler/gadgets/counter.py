"""Gadget of the count since the last reset."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.exactness.levels import COUNT, ON, RESET
from compiler.gadgets.gadget import Operands
from compiler.gadgets.parts import per_lane
from compiler.gadgets.state import OneColumnState
from compiler.ir.decay import FAINT
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.conditions import need_flags
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports


class Counter(OneColumnState):
    """Increments since the last reset: a state that a small step keeps while it adds, and a huge one erases
    (exactness E9).

    A ≈ −7e−13. Where the flag is 0, Δ = 32 and exp(ΔA) = exp(−2e−11) rounds to 1; where it is 1, Δ = 32 + 2^50
    and exp(ΔA) = exp(−778) = 0, while x̂ is 0 there (value = relu(when − reset)). h = Σ 32·(1/128)·S·v.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        value, reset = stream.inputs
        return [(value, "written"), (reset, "linear")]

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        """One channel where Δ can erase and keep; else the count since the start minus its copy latched at the last
        reset.
        """
        when, reset = inputs
        if not fitter.facts.counts:
            total = Stream(ops.Cumsum(), (when,))
            return fitter.fitted_parts(total - Stream(ops.Latch(), (total, reset)))
        need_flags(fitter.domains, when, reset)
        counted = fitter.fitted_new(Stream(ops.Relu(), (when - reset,)))
        reset = fitter.within_reach(reset)
        if (ONE, 0) in fitter.form(
            reset
        ):  # 2^50 times over, a constant would swallow the 32 of Δ: as a rectifier it has none
            reset = fitter.fitted_parts(Stream(ops.Relu(), (reset,)))
        return fitter.rebuilt(stream, stream.operation, (counted, reset))

    def written(
        self, stream: Stream, at: np.ndarray, builder: BlockBuilder
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        value, reset = stream.inputs
        ids, unit = per_lane(builder, value, at)
        parts, _ = builder.linear(reset)  # `fit` leaves no constant in it
        delta = [(row, feature, RESET * weight) for row, feature, weight in parts]
        return (
            ids,
            unit * ON / COUNT,
            {"delta_bias": np.full(reset.width, COUNT), "decay": FAINT, "delta_features": delta},
        )
