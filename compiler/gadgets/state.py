"""What the states with one constant column share: running sums, latches, counts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from compiler.exactness.levels import GATE
from compiler.gadgets.gadget import Entry, Gadget
from compiler.gadgets.parts import column_gain, constant_column, places, read_gain, targets
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.ports import CONSTANT_COLUMN, Ports


class OneColumnState(Gadget):
    """A number in each channel's state: what is written under B = 1/128 and read by C = 1/32 at every position.

    The gate is silu(32·one) = 32, or (`gated_state`) the flag that opens an entry of a bank.
    """

    def column_group(self, stream: Stream) -> tuple:
        return CONSTANT_COLUMN

    @abstractmethod
    def written(
        self, stream: Stream, at: np.ndarray, builder: BlockBuilder
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """(feature ids, units, step and decay) of channels that hold the listed numbers of the state.

        A number may be listed again.
        """

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        constant_column(builder)
        ids, unit, step = self.written(stream, np.flatnonzero(wanted), builder)
        out = (targets(stream, wanted, builder), unit * column_gain(builder))
        builder.add_channels(places(stream, wanted), ids, out, builder.always_open(len(ids), GATE), **step)

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        return [Entry(None, np.arange(count), 0, read_gain(target))]
