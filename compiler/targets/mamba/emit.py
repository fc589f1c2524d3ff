"""Blocks as the tensors of a `mamba_ssm.Mamba` (and, with constant Δ, B, C, of the S4D mixer as a real Mamba).

Every rectified row is a channel: x̂ is its own write port and, through x_proj, feeds Δ, B
and C of all channels. Rows that only feed ports become channels without a state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.ir.block import SelectiveBlock
from compiler.layout import Emission, Layout, axis, joined, numbers, one_channel, taps_axis
from compiler.targets.sizes import MambaSizes
from compiler.targets.tensors import exact_tensors, put


@dataclass(frozen=True, eq=False)
class _Wiring:
    """Which feature each of the d_inner channels computes, and where each feature can be read."""

    feature: np.ndarray  # (d_inner,) feature of each channel
    channel_of: np.ndarray  # (F,) a channel that computes the feature
    steps: sparse.csr_array  # (R, F) what passes through the dt_rank numbers between x_proj and dt_proj
    spread: sparse.csr_array  # (channels with a record, R): Δ rows = spread · steps


def _wire(block: SelectiveBlock) -> _Wiring:
    channels, columns = block.channels, block.columns
    used = np.zeros(len(block.features.names), dtype=bool)
    for ports in (columns.write, columns.read, channels.delta_features):
        used[ports.indices] = True
    used[channels.feature] = False
    feature = np.concatenate([channels.feature, np.flatnonzero(used)])
    channel_of = np.full(len(used), -1)
    channel_of[feature[::-1]] = np.arange(len(feature))[::-1]
    return _Wiring(feature, channel_of, *_factored(channels.delta_features))


def _factored(matrix: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csr_array]:
    """(steps, spread) with matrix = spread · steps, exactly: through its distinct rows or the features it reads,
    whichever are fewer.
    """
    known: dict[bytes, int] = {}
    rows: list[int] = []
    of_row = []
    for i in range(matrix.shape[0]):
        span = slice(matrix.indptr[i], matrix.indptr[i + 1])
        if matrix.data[span].size:
            key = matrix.indices[span].astype(np.int64).tobytes() + matrix.data[span].tobytes()
            if key not in known:
                known[key] = len(rows)
                rows.append(i)
            of_row.append((i, known[key]))
    read = np.unique(matrix.indices)
    if len(read) < len(rows):
        pick = sparse.csr_array((np.ones(len(read)), (range(len(read)), read)), shape=(len(read), matrix.shape[1]))
        return pick, sparse.csr_array(sparse.csc_array(matrix)[:, read])
    at = np.array(of_row, dtype=np.int64).reshape(-1, 2).T
    spread = sparse.csr_array((np.ones(at.shape[1]), (at[0], at[1])), shape=(matrix.shape[0], len(rows)))
    return (matrix[rows] if rows else sparse.csr_array((0, matrix.shape[1]))), spread


def sizes(block: SelectiveBlock, n_lanes: int) -> MambaSizes:
    """The least sizes of a Mamba that holds the block."""
    wiring = _wire(block)
    return MambaSizes(
        n_lanes, len(wiring.feature), max(1, block.d_state), max(1, wiring.steps.shape[0]), block.features.taps.shape[1]
    )


def emit(block: SelectiveBlock, size: MambaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
    """The tensors of a `Mamba` of this size and their layout.

    lane_in, lane_out: (L,) the coordinate of d_model that carries each lane before and after
    the block, −1 where it is not there. Channels beyond those in use never write: dt_bias = −200.
    """
    wiring, features, channels = _wire(block), block.features, block.channels
    used, recorded = len(wiring.feature), len(channels.names)
    rank, state, inner = size.dt_rank, size.d_state, size.d_inner

    in_proj = np.zeros((2 * inner, size.d_model))
    put(in_proj[:used], features.rows[wiring.feature], lane_in)
    put(in_proj[inner : inner + recorded], channels.gate, lane_in)
    conv = np.zeros((inner, 1, size.d_conv))
    conv[:used, 0, :] = features.taps[wiring.feature][:, ::-1]
    conv_bias = np.zeros(inner)
    conv_bias[:used] = features.bias[wiring.feature]

    x_proj = np.zeros((rank + 2 * state, inner))
    put(x_proj[: wiring.steps.shape[0]], wiring.steps, wiring.channel_of)
    put(x_proj[rank : rank + block.d_state], block.columns.write, wiring.channel_of)
    put(x_proj[rank + state : rank + state + block.d_state], block.columns.read, wiring.channel_of)
    dt_proj = np.zeros((inner, rank))
    put(dt_proj[:recorded], wiring.spread, np.arange(rank))
    dt_bias = np.full(inner, OFF)
    dt_bias[:recorded] = channels.delta_bias

    a_log = np.full((inner, state), KEEP_LOG)
    if block.foreign is None:
        a_log[:recorded] = block.a_log
    else:
        a_log[:recorded, : block.d_state] = block.a_log
    skip = np.zeros(inner)
    skip[:recorded] = channels.skip
    out_proj = np.zeros((inner, size.d_model))
    put(out_proj[:recorded], channels.out, lane_out)

    tensors = exact_tensors(
        {
            "in_proj.weight": in_proj,
            "conv1d.weight": conv,
            "conv1d.bias": conv_bias,
            "x_proj.weight": x_proj,
            "dt_proj.weight": dt_proj,
            "dt_proj.bias": dt_bias,
            "A_log": a_log,
            "D": skip,
            "out_proj.weight": out_proj.T,
        }
    )
    return Emission(tensors, _layout(block, wiring, size, lane_in, lane_out))


def _layout(block: SelectiveBlock, wiring: _Wiring, size: MambaSizes, lane_in, lane_out) -> Layout:
    """Channels with a record first, then those that only feed ports; the other tensors by their parts."""
    features, records = block.features.coordinates, block.channels.coordinates
    computed = [features[f] for f in wiring.feature]
    lanes, lanes_out = (axis("lane", size.d_model, block.lanes, at) for at in (lane_in, lane_out))
    off = "a channel that is not used: it never writes"
    x = axis("x̂", size.d_inner, computed, padding=off)
    channel = axis("channel", size.d_inner, [*records, *computed[len(records) :]], padding=off)
    column = axis("column", size.d_state, block.columns.coordinates, padding="a column that is not used")
    rank = numbers("step", size.dt_rank, lambda i: "one of the numbers that x_proj hands to dt_proj")
    ports = joined(rank, replace(column, kind="B"), replace(column, kind="C"))
    taps = taps_axis(size.d_conv)
    return Layout(
        {
            "in_proj.weight": (joined(x, replace(channel, kind="gate of")), lanes),
            "conv1d.weight": (x, one_channel(), taps),
            "conv1d.bias": (x,),
            "x_proj.weight": (ports, x),
            "dt_proj.weight": (channel, rank),
            "dt_proj.bias": (channel,),
            "A_log": (channel, column),
            "D": (channel,),
            "out_proj.weight": (lanes_out, channel),
        }
    )
