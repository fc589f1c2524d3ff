"""Blocks as the tensors of an `S4DMixer`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.ir.block import SelectiveBlock
from compiler.ir.decay import a_logs
from compiler.layout import Emission, Layout, axis, joined, one_channel, taps_axis
from compiler.targets.sizes import MambaSizes
from compiler.targets.tensors import exact_tensors, put


def sizes(block: SelectiveBlock, n_lanes: int) -> MambaSizes:
    """The least sizes of the mixer: its columns are parameters, so only channels with a record count."""
    return MambaSizes(n_lanes, len(block.channels.names), max(1, block.d_state), 1, block.features.taps.shape[1])


def emit(block: SelectiveBlock, size: MambaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
    """The tensors of an S4DMixer of this size and their layout."""
    features, channels, inner = block.features, block.channels, size.d_inner
    used = len(channels.names)
    in_proj, conv = np.zeros((2 * inner, size.d_model)), np.zeros((inner, 1, size.d_conv))
    put(in_proj[:used], features.rows[channels.feature], lane_in)
    put(in_proj[inner : inner + used], channels.gate, lane_in)
    conv[:used, 0, :] = features.taps[channels.feature][:, ::-1]
    bias, dt_bias, skip = np.zeros(inner), np.full(inner, OFF), np.zeros(inner)
    bias[:used], dt_bias[:used], skip[:used] = features.bias[channels.feature], channels.delta_bias, channels.skip
    a_log = np.full((inner, size.d_state), KEEP_LOG)
    a_log[:used] = a_logs(channels.decay)[:, None]
    write, read = _constants(block, size.d_state)
    out_proj = np.zeros((inner, size.d_model))
    put(out_proj[:used], channels.out, lane_out)
    arrays = {
        "in_proj.weight": in_proj,
        "conv1d.weight": conv,
        "conv1d.bias": bias,
        "dt_bias": dt_bias,
        "A_log": a_log,
        "B": np.tile(write, (inner, 1)),
        "C": np.tile(read, (inner, 1)),
        "D": skip,
        "out_proj.weight": out_proj.T,
    }
    return Emission(exact_tensors(arrays), _layout(block, size, lane_in, lane_out))


def _layout(block: SelectiveBlock, size: MambaSizes, lane_in, lane_out) -> Layout:
    channels, features = block.channels, block.features.coordinates
    lanes, lanes_out = (axis("lane", size.d_model, block.lanes, at) for at in (lane_in, lane_out))
    off = "a channel that is not used: it never writes"
    x = axis("x̂", size.d_inner, [features[f] for f in channels.feature], padding=off)
    channel = axis("channel", size.d_inner, channels.coordinates, padding=off)
    column = axis("column", size.d_state, block.columns.coordinates, padding="a column that is not used")
    return Layout(
        {
            "in_proj.weight": (joined(x, replace(channel, kind="gate of")), lanes),
            "conv1d.weight": (x, one_channel(), taps_axis(size.d_conv)),
            "conv1d.bias": (x,),
            "dt_bias": (channel,),
            "A_log": (channel, column),
            "B": (channel, column),
            "C": (channel, column),
            "D": (channel,),
            "out_proj.weight": (lanes_out, channel),
        }
    )


def _constants(block: SelectiveBlock, d_state: int) -> tuple[np.ndarray, np.ndarray]:
    """B and C as numbers: every column of this target is a multiple of the feature that is always on."""
    on = block.features.bias
    write, read = np.zeros(d_state), np.zeros(d_state)
    write[: block.d_state] = block.columns.write @ on
    read[: block.d_state] = block.columns.read @ on
    return write, read
