"""Target `gated-deltanet`: the gated delta rule, whose states overwrite what they hold (β = 1) and reflect it (β = 2).

Every head has a state of its own, so a block holds any number of column groups. Each key, query and value is one
rectified row behind a convolution of its own, without a bias; decay and β are linear in the present lanes. What has no
state stands in heads that forget at every step, so pointwise operations need no MLP.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.gadgets.inner_product import sum_of_products
from compiler.gadgets.overwrite import ADDS, Overwrite
from compiler.ir.block import SelectiveBlock
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.language.words import concatenate
from compiler.lowering.conditions import is_one_hot
from compiler.targets.refuse import column_steps, steps_from_features
from compiler.targets.target import Target

_FADES = "a state that fades has a proved error on mamba and mamba2 only"
_ADDS = f"{ADDS}; mamba and mamba2 add"


class GatedDeltaNet(Target):
    name = "gated-deltanet"
    folder = __name__
    step = "lanes"
    column = "written"
    heads = True
    reflects = True
    row_bias = False
    largest_beta = 2
    lacks = {
        ops.Cumsum: _ADDS,
        ops.SumWhere: _ADDS,
        ops.Count: _ADDS,
        ops.ScaledSum: _ADDS,
        ops.GatedRead: _ADDS,
        ops.FadingMemory: _FADES,
        ops.FadingSum: _FADES,
        ops.SelectiveSum: _FADES,
    }
    gadgets = {ops.MemoryRead: Overwrite()}

    def _latches(self, stream, inputs, fitter):
        """A memory of one entry for each flag, in a head of its own."""
        value, when = inputs
        each = [Stream(ops.MemoryRead("last"), (value, flag, ONE), stream.name) for flag in _flags(when)]
        return fitter.fitted_parts(each[0] if len(each) == 1 else concatenate(*each))

    def _opened_bank(self, stream, inputs, fitter):
        """The gate of a bank of latches is the query of one memory, where one flag at most holds at a time."""
        bank = stream.inputs[0]
        value, when = (fitter.fitted[s] for s in bank.inputs)
        if not operation_of(bank, ops.Latch).forgets or not is_one_hot(fitter.domains, when):
            return sum_of_products_of(inputs, fitter)
        return fitter.fitted_parts(Stream(ops.MemoryRead("last"), (value, when, inputs[1]), stream.name))

    rewritings = {ops.Dot: sum_of_products, ops.Latch: _latches, ops.GateSum: _opened_bank}

    def without_place(self, block: SelectiveBlock):
        yield from column_steps(block)
        yield from steps_from_features(block)
        columns = block.columns
        if columns.beta is None or columns.group is None:
            yield "columns that add: its states follow the delta rule (this block is of another target)"
        elif columns.beta.max(initial=0) > self.largest_beta:
            yield f"β = {columns.beta.max():g}: its β is {self.largest_beta} at most, so no step reflects"
        if block.features.bias.any():
            yield "a bias of a row: its convolution has none"

    def sizes(self, block, n_lanes):
        from compiler.targets.gated_deltanet.heads import sizes

        return sizes([block], n_lanes, self.largest_beta)

    def sizes_of(self, fields):
        from compiler.targets.gated_deltanet.heads import DeltaSizes

        return DeltaSizes(**fields)

    def packaged(self, size, block):
        return size

    def printed(self, block, size, lane_in, lane_out):
        """Read back head by head: no head has the form of a Mamba."""
        from compiler.targets.gated_deltanet.read import check_heads

        emission = self.emit(block, size, lane_in, lane_out)
        check_heads(emission.tensors, size, block, lane_in, lane_out)
        return emission

    def module(self, size, index):
        from compiler.targets.gated_deltanet.mixer import empty_mixer

        return empty_mixer(size)

    def convolved(self, size):
        return 2 * size.heads * size.d_state + size.d_inner

    def runs(self, module):
        from compiler.targets.gated_deltanet.mixer import GatedDeltaNet as Mixer

        return isinstance(module, Mixer) and module.largest_beta == self.largest_beta

    def state_shape(self, module):
        return module.heads, module.d_state, module.headdim

    def seats(self, block, module):
        from compiler.targets.gated_deltanet.heads import heads_of

        found = np.empty(len(block.channels.names), dtype=np.int64)
        for number, head in enumerate(heads_of(block, module.headdim)):
            found[head.channels] = number * module.headdim + head.values
        return found

    def held(self, block, module, state):
        """A head keeps its columns as rows of keys, and nothing in the columns of other heads."""
        from compiler.targets.gated_deltanet.heads import heads_of

        found = state.new_zeros(len(block.channels.names), block.d_state)
        for number, head in enumerate(heads_of(block, module.headdim)):
            if head.beta:
                rows = state[number, : len(head.columns)]
                found[np.ix_(head.channels, head.columns)] = rows[:, head.values].T
        return found

    def state_entries(self, block):
        """Rows of keys that are written, times the channels that they keep."""
        channels, columns = block.channels, block.columns
        written = np.bincount(columns.group[np.diff(columns.write.indptr) > 0], minlength=1)
        return int(written[channels.group[channels.writes]].sum())

    @property
    def family(self):
        from compiler.targets.gated_deltanet.olmo_hybrid import FAMILY

        return FAMILY


def _flags(when: Stream) -> list[Stream]:
    return list(when) if when.width > 1 else [when]


def sum_of_products_of(inputs, fitter) -> Stream:
    """Σ gate_k · bank_k, of a bank whose entries stand on lanes."""
    bank, gate = inputs
    width = bank.width // gate.width
    spread = np.kron(np.eye(gate.width), np.ones((width, 1))) @ gate
    products = Stream(ops.Multiply(), (spread, bank))
    return fitter.fitted_parts(np.tile(np.eye(width), gate.width) @ products)


TARGET = GatedDeltaNet()
