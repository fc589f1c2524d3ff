"""The channels, columns and states of a block over an input, each by its name: computed when it is first looked at."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from compiler.ir.block import SelectiveBlock
from compiler.ir.coordinate import Coordinate
from compiler.language.arguments import close_to
from compiler.layout import Axis
from compiler.runtime.block import Block
from compiler.runtime.inside import Inside
from compiler.targets import target_running

MOST_STATES = 1 << 28  # numbers that `states` gives at once: 2 GiB of float64


class BlockValues:
    """What a block computed. Channels are those in use, in the order of d_inner, as `construct inspect` lists them.

    channels: their coordinates, by which they are named and explained; columns: those of the state's columns.
    """

    def __init__(self, number: int, block: SelectiveBlock, module: Block, u: Tensor, axis: Axis):
        """axis: what the channels of d_inner are; u: (1, time, d_model), what the block reads, behind the norm."""
        self.number, self._module, self._u = number, module, u
        self._seats = sorted(axis.places)
        self.channels: tuple[Coordinate, ...] = tuple(axis.places[i] for i in self._seats)
        self.columns: tuple[Coordinate, ...] = block.columns.coordinates

    @cached_property
    def _inside(self) -> Inside:
        with torch.no_grad():
            return target_running(self._module).inside(self._module, self._u)

    @property
    def channel_names(self) -> tuple[str, ...]:
        """The name of each channel."""
        return tuple(c.name for c in self.channels)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The name of each column of the state."""
        return tuple(c.name for c in self.columns)

    @property
    def x(self) -> np.ndarray:
        """x̂ = silu(conv(in_proj(lanes))) of each channel: (time, channels)."""
        return self._used(self._inside.x)

    @property
    def gate(self) -> np.ndarray:
        """z, before its silu: (time, channels)."""
        return self._used(self._inside.gate)

    @property
    def delta(self) -> np.ndarray:
        """Δ, behind its softplus: (time, channels)."""
        return self._used(self._inside.delta)

    @property
    def B(self) -> np.ndarray:
        """What each column is written with: (time, d_state), and of several groups (time, groups, d_state)."""
        return self._columns(self._inside.B)

    @property
    def C(self) -> np.ndarray:
        """What each column is read with: (time, d_state), and of several groups (time, groups, d_state)."""
        return self._columns(self._inside.C)

    def states(self, *channels: str | int) -> np.ndarray:
        """The state after each position: (time, channels, d_state) of these channels, by name or number [default: all
        in use]. ValueError where that is more than memory should hold: name fewer channels.
        """
        at = [self._channel(c) for c in channels] if channels else list(range(len(self._seats)))
        length, columns = self._u.shape[1], self._inside.A.shape[1]
        if length * len(at) * columns > MOST_STATES:
            raise ValueError(
                f"the states of {len(at)} channels over {length} positions are {length * len(at) * columns:,} numbers, "
                f"and at most {MOST_STATES:,} are given at once; name fewer channels"
            )
        with torch.no_grad():
            return self._inside.states(torch.tensor([self._seats[i] for i in at]))[0].double().numpy()

    def _channel(self, name: str | int) -> int:
        if isinstance(name, int):
            return range(len(self._seats))[name]
        if name not in self.channel_names:
            raise KeyError(f"block {self.number} has no channel {name!r}{close_to(name, self.channel_names)}")
        return self.channel_names.index(name)

    def _used(self, values: Tensor) -> np.ndarray:
        return values[0][:, self._seats].double().numpy()

    def _columns(self, values: Tensor) -> np.ndarray:
        found = values[0].double().numpy()
        return found[:, 0] if found.shape[1] == 1 else found

    def __repr__(self) -> str:
        return f"<block {self.number}: {len(self.channels)} channels, {len(self.columns)} columns>"
