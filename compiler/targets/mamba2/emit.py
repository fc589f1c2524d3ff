"""Blocks as the tensors of a `mamba_ssm.Mamba2`: heads that share Δ, A and D, and columns of their own.

Here x, B and C are each silu(conv(row)) with nothing linear after, and Δ is linear in the
present lanes. Channels with the same step, decay and skip form heads of head_dim channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.ir.block import SelectiveBlock
from compiler.ir.decay import a_logs
from compiler.layout import Axis, Emission, Layout, axis, joined, one_channel, taps_axis
from compiler.targets.sizes import Sizes
from compiler.targets.tensors import exact_tensors, put

HEAD_DIMS = (64, 32, 16, 8, 4, 2, 1)


@dataclass(frozen=True)
class Mamba2Sizes(Sizes):
    """Sizes of a Mamba2; one group of B and C, d_ssm = d_inner."""

    headdim: int
    d_conv: int = 4

    @property
    def convolved(self) -> int:
        return self.d_inner + 2 * self.d_state  # x, B and C


def head_classes(block: SelectiveBlock) -> list[np.ndarray]:
    """The channels that may share heads: equal Δ row and bias, decay and skip."""
    channels = block.channels
    classes: dict[bytes, list[int]] = {}
    delta = channels.delta_lanes
    for c in range(len(channels.names)):
        span = slice(delta.indptr[c], delta.indptr[c + 1])
        key = delta.indices[span].astype(np.int64).tobytes() + delta.data[span].tobytes()
        key += np.array([channels.delta_bias[c], channels.decay[c].a_log, channels.skip[c]]).tobytes()
        classes.setdefault(key, []).append(c)
    return [np.array(members) for members in classes.values()]


def padded_channels(block: SelectiveBlock, headdim: int) -> int:
    """How many channels the block takes in whole heads of this size."""
    return sum(-(-len(members) // headdim) * headdim for members in head_classes(block))


def sizes(block: SelectiveBlock, n_lanes: int) -> Mamba2Sizes:
    """The least sizes of a Mamba2 that holds the block, with the largest heads that cost no channel."""
    least = padded_channels(block, 1)
    headdim = next(p for p in HEAD_DIMS if padded_channels(block, p) == least)
    return Mamba2Sizes(n_lanes, least, max(1, block.d_state), headdim, block.features.taps.shape[1])


def emit(block: SelectiveBlock, size: Mamba2Sizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
    """The tensors of a `Mamba2` (rmsnorm aside) of this size and their layout.

    lane_in, lane_out: (L,) the coordinate of d_model that carries each lane before and after
    the block, −1 where it is not there. Heads beyond those in use never write: dt_bias = −200.
    """
    features, channels, columns = block.features, block.channels, block.columns
    inner, state, heads = size.d_inner, size.d_state, size.d_inner // size.headdim
    place, head_of = _seats(block, size.headdim)
    write, read = columns.write.indices, columns.read.indices  # each column is one feature: `verify` has seen to it
    n = block.d_state

    in_proj = np.zeros((2 * inner + 2 * state + heads, size.d_model))
    put(in_proj[:inner], channels.gate, lane_in, place)
    conv = np.zeros((inner + 2 * state, 1, size.d_conv))
    conv_bias = np.zeros(inner + 2 * state)
    for at, feature in ((place, channels.feature), (inner + np.arange(n), write), (inner + state + np.arange(n), read)):
        put(in_proj[inner : 2 * inner + 2 * state], features.rows[feature], lane_in, at)
        conv[at, 0, :] = features.taps[feature][:, ::-1]
        conv_bias[at] = features.bias[feature]

    first = np.unique(head_of, return_index=True)[1]
    put(in_proj[2 * inner + 2 * state :], channels.delta_lanes[first], lane_in, head_of[first])
    dt_bias, a_log, skip = np.full(heads, OFF), np.full(heads, KEEP_LOG), np.zeros(heads)
    dt_bias[head_of] = channels.delta_bias
    a_log[head_of] = a_logs(channels.decay)
    skip[head_of] = channels.skip
    out_proj = np.zeros((inner, size.d_model))
    put(out_proj, channels.out, lane_out, place)

    tensors = exact_tensors(
        {
            "in_proj.weight": in_proj,
            "conv1d.weight": conv,
            "conv1d.bias": conv_bias,
            "dt_bias": dt_bias,
            "A_log": a_log,
            "D": skip,
            "out_proj.weight": out_proj.T,
        }
    )
    return Emission(tensors, _layout(block, size, lane_in, lane_out))


def _layout(block: SelectiveBlock, size: Mamba2Sizes, lane_in, lane_out) -> Layout:
    """Channels by their seats in whole heads; in_proj rows are [z; x; B; C; dt]."""
    channels, columns, features = block.channels, block.columns, block.features.coordinates
    place, head_of = _seats(block, size.headdim)
    lanes, lanes_out = (axis("lane", size.d_model, block.lanes, at) for at in (lane_in, lane_out))
    off = "a channel that is not used: it never writes"
    channel = axis("channel", size.d_inner, channels.coordinates, place, padding=off)
    x = axis("x̂", size.d_inner, [features[f] for f in channels.feature], place, padding=off)
    b, c = (
        axis(kind, size.d_state, [features[f] for f in matrix.indices], padding="a column that is not used")
        for kind, matrix in (("B", columns.write), ("C", columns.read))
    )
    first = {int(head): channels.coordinates[i] for i, head in reversed(list(enumerate(head_of)))}
    heads = {h: replace(c, name=f"head {h} ({c.name}, …)") for h, c in first.items()}
    head = Axis("head", size.d_inner // size.headdim, heads, "a head that is not used: it never writes")
    return Layout(
        {
            "in_proj.weight": (joined(replace(channel, kind="gate of"), x, b, c, replace(head, kind="Δ of")), lanes),
            "conv1d.weight": (joined(x, b, c), one_channel(), taps_axis(size.d_conv)),
            "conv1d.bias": (joined(x, b, c),),
            "dt_bias": (head,),
            "A_log": (head,),
            "D": (head,),
            "out_proj.weight": (lanes_out, channel),
        }
    )


def _seats(block: SelectiveBlock, headdim: int) -> tuple[np.ndarray, np.ndarray]:
    """(channel index in d_inner, head) of every channel, classes in whole heads."""
    place = np.empty(len(block.channels.names), dtype=np.int64)
    start = 0
    for members in head_classes(block):
        place[members] = start + np.arange(len(members))
        start += -(-len(members) // headdim) * headdim
    return place, place // headdim


def channel_seats(block: SelectiveBlock, headdim: int) -> np.ndarray:
    """Where each channel of the block stands in d_inner."""
    return _seats(block, headdim)[0]
