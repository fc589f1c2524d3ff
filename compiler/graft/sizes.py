"""Sizes of a direct sum: how wide the stream and the mixers must be to hold host and circuit side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compiler.exactness.ballast import squares
from compiler.graft.errors import GraftError
from compiler.graft.families.family import HostFamily, mean_is_exact
from compiler.graft.widths import Widths
from compiler.ir.block import SelectiveBlock

MOST_WIDTH = 1 << 20


@dataclass(frozen=True, eq=False)
class Room:
    """What must stand side by side. blocks: the circuit's, its cancelling channel included; n_lanes: its lanes without
    the ballast.
    """

    family: HostFamily
    host: Widths
    blocks: Sequence[SelectiveBlock]
    n_lanes: int

    def is_in(self, wide: int) -> bool:
        """Room in a stream of this d_model and in every mixer, and a mean that is exact."""
        if self.host.d_model + self.n_lanes + len(squares(wide)) > wide or not mean_is_exact(wide):
            return False
        return self.family.fits(self.host, self.blocks, self.n_lanes, self.expand * wide)

    @property
    def expand(self) -> int:
        return self.host.d_inner // self.host.d_model


def wide_sizes(
    family: HostFamily, config: Any, blocks: Sequence[SelectiveBlock], n_lanes: int, width: int | None
) -> Widths:
    """The sizes of the direct sum: maxima of both, in the least d_model = 4^k · (host's d_model) that has room.

    width: another d_model, which must have room too. GraftError names the least that would do.
    """
    host = family.widths(config)
    room = Room(family, host, blocks, n_lanes)
    wide = _least(room) if width is None else _checked(room, width)
    conv = max(host.d_conv, *(block.features.taps.shape[1] for block in blocks))
    return family.wide(host, blocks, n_lanes, wide, conv)


def _least(room: Room) -> int:
    wide = 4 * room.host.d_model
    while not room.is_in(wide):
        wide *= 4
        if wide > MOST_WIDTH:
            raise GraftError(f"host and circuit would need a d_model beyond {MOST_WIDTH}; take a smaller circuit.")
    return wide


def _checked(room: Room, width: int) -> int:
    if width > MOST_WIDTH or not room.is_in(width):
        least = next((w for w in range(room.host.d_model + room.n_lanes, MOST_WIDTH) if room.is_in(w)), None)
        raise GraftError(
            f"width is {width}, and host and circuit do not fit into it; the least that holds them is {least}."
        )
    return width
