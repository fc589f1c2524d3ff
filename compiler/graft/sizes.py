"""Sizes of a direct sum: how wide the stream and the mixers must be to hold host and circuit side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any

from compiler.artifact.free_memory import BYTES_OF_PARAMETER, free_bytes
from compiler.exactness.ballast import squares
from compiler.graft.errors import GraftError
from compiler.graft.families.family import BRANCH, NO_ROOM, HostFamily
from compiler.graft.widths import Widths
from compiler.ir.block import SelectiveBlock

MOST_WIDTH = 1 << 20


@dataclass(frozen=True, eq=False)
class Room:
    """What must stand side by side. blocks: the circuit's, its cancelling channel included; n_lanes: its lanes without
    the ballast. widest: the largest d_model that is tried.
    """

    family: HostFamily
    host: Widths
    blocks: Sequence[SelectiveBlock]
    n_lanes: int
    widest: int = MOST_WIDTH

    def refusal(self, wide: int) -> str | None:
        """Why a stream of this d_model will not do, as the end of "width is 47, …"; None where it does."""
        if wide > self.widest:
            return f"beyond {self.widest}" + (", for which there is memory" if self.widest < MOST_WIDTH else "")
        if self.host.d_model + self.n_lanes >= wide:
            return NO_ROOM
        unsuited = self.family.unsuited(self.host, wide)
        if unsuited is not None:
            return unsuited
        if self.host.d_model + self.n_lanes + len(squares(wide)) > wide:
            return NO_ROOM
        return self.family.misfit(self.host, self.blocks, self.n_lanes, self.expand * wide)

    def first(self, widths: Iterable[int]) -> int | None:
        """The first of these that does."""
        return next((wide for wide in widths if self.refusal(wide) is None), None)

    @property
    def expand(self) -> int:
        return self.host.d_inner // self.host.d_model


def wide_sizes(
    family: HostFamily, config: Any, blocks: Sequence[SelectiveBlock], n_lanes: int, width: int | None
) -> Widths:
    """The sizes of the direct sum: maxima of both, in the least d_model = 4^k · (host's d_model) that has room.

    width: another d_model, which must do too. GraftError says why it does not, and names the nearest that do.
    """
    host = family.widths(config)
    room = Room(family, host, blocks, n_lanes)
    if width is not None:
        room = replace(room, widest=_with_memory(room, config.num_hidden_layers))
    wide = _least(room) if width is None else _checked(room, width)
    conv = max(host.d_conv, *(block.features.taps.shape[1] for block in blocks))
    return family.wide(host, blocks, n_lanes, wide, conv)


def _with_memory(room: Room, layers: int) -> int:
    """The largest d_model of which there is memory for the weights of mixers: three matrices at least in each layer."""
    free = free_bytes()
    if free is None:
        return MOST_WIDTH
    matrices = 3 * room.expand * (layers + len(room.blocks))
    return min(MOST_WIDTH, isqrt(free // (BYTES_OF_PARAMETER * matrices)))


def _least(room: Room) -> int:
    wide = 4 * room.host.d_model
    while (reason := room.refusal(wide)) is not None:
        if 4 * wide > MOST_WIDTH:
            raise GraftError(
                f"no d_model of 4^k times the host's {room.host.d_model} will do: the largest is {wide}, {reason}; "
                f"{_others(room, wide)}, or {BRANCH}."
            )
        wide *= 4
    return wide


def _checked(room: Room, width: int) -> int:
    reason = room.refusal(width)
    if reason is not None:
        raise GraftError(f"width is {width}, {reason}; {_others(room, width)}.")
    return width


def _others(room: Room, width: int) -> str:
    """The widths nearest to this one that will do."""
    least = room.first(range(room.host.d_model + room.n_lanes, room.widest + 1))
    if least is None:
        return f"no width up to {room.widest} will do"
    if least > width:
        return f"the least width that holds them is {least}"
    below = room.first(range(min(width - 1, room.widest), least - 1, -1))
    above = room.first(range(width + 1, room.widest + 1))
    if above is None:
        return f"the largest width that will do is {below}"
    return f"the nearest widths that will do are {below} and {above}"
