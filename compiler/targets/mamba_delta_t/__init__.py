"""Target Mamba-Δᵀ: the mixer of Lemma 3 (paper A, equation 15), whose Δ varies along the state, not along the channels.

Every state is a memory whose columns carry the step: latches and running sums are rewritten as such. Channels
cannot keep out of the state, so operations without a state need a block without columns.
"""

from __future__ import annotations

from compiler.analysis.affine_form import ONE
from compiler.exactness.levels import OFF
from compiler.gadgets.inner_product import sum_of_products
from compiler.ir.block import SelectiveBlock
from compiler.ir.decay import KEEP
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.language.words import concatenate
from compiler.targets.mamba_delta_t.memory import ColumnMemory
from compiler.targets.refuse import column_groups, steps_from_features, steps_from_lanes
from compiler.targets.target import Target
from compiler.targets.unforgetting import latches_without_erasure

_FADES = "a state that fades has a proved error on mamba and mamba2 only"
MOST_LATCHES = 64  # of a bank that is read as it is


class MambaDeltaTTarget(Target):
    name = "mamba-delta-t"
    folder = __name__
    mixer = "MambaDeltaT"
    step = "linear"
    column = "linear"
    apart = False
    lacks = {
        ops.FadingMemory: _FADES,
        ops.FadingSum: _FADES,
        ops.SelectiveSum: _FADES,
        ops.GatedRead: "its step belongs to the columns, and every channel has all of them",
    }
    gadgets = {ops.MemoryRead: ColumnMemory()}

    def _running_sum(self, stream, inputs, fitter):
        return Stream(ops.MemoryRead("sum"), (fitter.written(inputs[0]), ONE, ONE), stream.name)

    def _latches(self, stream, inputs, fitter):
        value, when = inputs
        if when.width > 1:
            return self._bank(stream, value, when, fitter)
        return self._column_latch(stream, stream.operation, value, when, ONE, fitter)

    def _opened_bank(self, stream, inputs, fitter):
        """The gate of a bank is the query of one memory; its latches go unread."""
        bank = stream.inputs[0]
        value, when = (fitter.fitted[s] for s in bank.inputs)
        return self._column_latch(stream, operation_of(bank, ops.Latch), value, when, inputs[1], fitter)

    def _bank(self, stream, value, when, fitter):
        """Latches of several flags, side by side: every channel has every column, so those that forget take a block
        each.
        """
        kept = latches_without_erasure(stream.operation, value, when, fitter)
        if kept is not None:
            return kept
        if when.width > MOST_LATCHES:  # a misfit, unless only gates read it
            return fitter.rebuilt(stream, stream.operation, (value, when))
        each = [self._column_latch(stream, stream.operation, value, flag, ONE, fitter) for flag in when]
        return concatenate(*each)

    def _column_latch(self, stream, latch, value, when, query, fitter):
        """Latches where the step belongs to the columns: a memory that keeps the last value (or the sum) under each
        flag.
        """
        flags = fitter.within_reach(when)
        if fitter.domains.of(flags).lo < 0 or not fitter.domains.of(flags).is_flag:
            raise NotImplementedError(f"{self.name} has a lowering of latches for flags only")
        policy = "last" if latch.forgets else "sum"
        return Stream(ops.MemoryRead(policy), (fitter.written(value), flags, fitter.within_reach(query)), stream.name)

    rewritings = {
        ops.Dot: sum_of_products,
        ops.Cumsum: _running_sum,
        ops.Latch: _latches,
        ops.SumWhere: _latches,
        ops.GateSum: _opened_bank,
    }

    def misfits(self, circuit):
        for s in circuit.streams:
            if s.operation.latches:
                yield (
                    s,
                    f"{self.name} keeps each latch of a bank in a block of its own, as every channel has every column: "
                    f"{s.inputs[1].width} here, and {MOST_LATCHES} are the most; read it by a query as a memory",
                )

    @staticmethod
    def without_place(block: SelectiveBlock):
        channels = block.channels
        if block.d_state and block.columns.step is None:
            yield "columns without a step: its Δ belongs to the columns"
        yield from column_groups(block)
        yield from steps_from_features(block)
        yield from steps_from_lanes(block)
        if (channels.delta_bias != OFF).any() or any(decay != KEEP for decay in channels.decay):
            at = next(i for i, d in enumerate(channels.decay) if channels.delta_bias[i] != OFF or d != KEEP)
            yield f"a step of a channel: {channels.names[at]} has one"

    def state_entries(self, block):
        """Every channel has every column."""
        return len(block.channels.names) * block.d_state


TARGET = MambaDeltaTTarget()
