"""Gadget of latches, and of sums of what is flagged."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.gadgets.gadget import Operands
from compiler.gadgets.parts import per_lane, threshold
from compiler.gadgets.state import OneColumnState
from compiler.ir.decay import ERASE, KEEP
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports


class Latch(OneColumnState):
    """The last value stored: Δ = softplus(256·level − 128) is 128 where the level is 1 and 0 where it is at most 0.

    With A = −1, Δ = 128 erases (exp(−128) = 0) and writes 128·(1/128)·S·v; Δ = 0 leaves the state
    untouched bit for bit (exactness E4). Before the start of the sequence the level is 0 or less.
    A sum_where is the same with A = −0: Δ = 128 adds.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        value, when = stream.inputs
        return [(value, "written"), (when, target.step or "lanes")]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        value, when = stream.inputs
        table = wanted.reshape(when.width, value.width)
        return [np.logical_or.reduce(table, axis) for axis in (0, 1)]

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        value, when = inputs
        return fitter.rebuilt(stream, stream.operation, (fitter.written(value), fitter.threshold(when)))

    def written(
        self, stream: Stream, at: np.ndarray, builder: BlockBuilder
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        value, when = stream.inputs
        flags, lanes = np.divmod(at, value.width)
        decay = ERASE if operation_of(stream, ops.Latch).forgets else KEEP
        return *per_lane(builder, value, lanes), {"decay": decay, **threshold(builder, when, flags)}
