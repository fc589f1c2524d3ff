"""Target S4D: the mixer of Theorem 4 (paper A), whose Δ, B and C do not see the input.

Δ is 1 in the paper, and a parameter here, as B and C are. A memory is a running sum for each key of the values that it
masks, gated by the query. The blocks are printed as an unmodified Mamba with constant Δ, B and C, or as the mixer of
our own.
"""

from __future__ import annotations

import numpy as np

from compiler.gadgets.inner_product import sum_of_products
from compiler.ir.block import SelectiveBlock
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.targets.refuse import column_groups, column_steps, steps_from_features, steps_from_lanes
from compiler.targets.target import Target
from compiler.targets.unforgetting import latches_without_erasure, sums_where

_NOTHING_ERASES = "its Δ does not see the input, so nothing can be erased; use mamba or mamba2"
_FADES = "a state that fades has a proved error on mamba and mamba2 only"


class S4D(Target):
    name = "s4d"
    folder = __name__
    mixer = "S4DMixer"
    step = None
    column = None
    lacks = {
        ops.FadingMemory: _FADES,
        ops.FadingSum: _FADES,
        ops.SelectiveSum: _FADES,
        ops.GatedRead: "its B and C do not see the input; its memories have channels instead of columns",
        ops.Latch: _NOTHING_ERASES,
    }
    printed_by = ("mamba", "s4d")

    def _latches(self, stream, inputs, fitter):
        value, when = inputs
        return latches_without_erasure(stream.operation, value, when, fitter)

    def _bank(self, stream, inputs, fitter):
        if not inputs[0].operation.accumulates:
            raise NotImplementedError(f"{self.name} has no lowering of latch: {_NOTHING_ERASES}")
        return None

    def _gated_sums(self, stream, inputs, fitter):
        """A memory without selectivity (Theorem 4 of paper A): a running sum per key of the values it masks, gated by
        the query.

        Each (key, lane) pair has a channel relu(value + M(key − 1)); the gate opens the queried key's channels.
        """
        value, key, query = inputs
        domains = fitter.domains
        if not domains.of(key).is_flag or domains.of(query).lo < 0:
            symbol = stream.operation.symbol
            raise NotImplementedError(
                f"{self.name} has a lowering of {symbol} for keys that are flags and queries of at least 0 only"
            )
        sums = sums_where(value, key, fitter)
        cell = domains.cell_bound(stream)
        domains.bounded(sums, np.full(sums.width, float(cell)))
        return Stream(ops.GateSum(), (sums, fitter.landed(query)))

    rewritings = {
        ops.Dot: sum_of_products,
        ops.MemoryRead: _gated_sums,
        ops.Latch: _latches,
        ops.SumWhere: _latches,
        ops.GateSum: _bank,
    }

    @staticmethod
    def without_place(block: SelectiveBlock):
        yield from column_groups(block)
        yield from column_steps(block)
        yield from steps_from_features(block)
        yield from steps_from_lanes(block)
        varying = np.logical_or.reduce(block.features.taps, axis=1)
        for port, matrix in (("B", block.columns.write), ("C", block.columns.read)):
            if varying[matrix.indices].any():
                yield f"a {port} that sees the input"

    @property
    def family(self):
        from compiler.targets.mamba.family import FAMILY

        return FAMILY


TARGET = S4D()
