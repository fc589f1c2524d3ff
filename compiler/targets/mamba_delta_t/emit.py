"""Blocks as the tensors of a `MambaDeltaT`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler.exactness.levels import ERASE_LOG, KEEP_LOG, OFF
from compiler.ir.block import SelectiveBlock
from compiler.layout import Emission, Layout, axis, joined, one_channel, taps_axis
from compiler.targets.sizes import MambaSizes
from compiler.targets.tensors import exact_tensors, put


def sizes(block: SelectiveBlock, n_lanes: int) -> MambaSizes:
    """The least sizes of the mixer: its ports read every feature, so each feature is a channel, and Δ has full rank."""
    return MambaSizes(
        n_lanes, len(_wiring(block)[0]), max(1, block.d_state), max(1, block.d_state), block.features.taps.shape[1]
    )


def _wiring(block: SelectiveBlock) -> tuple[np.ndarray, np.ndarray]:
    """(the feature of each channel of d_inner, a channel that computes each feature)."""
    channels, columns = block.channels, block.columns
    used = np.zeros(len(block.features.names), dtype=bool)
    for ports in (columns.write, columns.read, columns.step):
        used[ports.indices if ports is not None else []] = True
    used[channels.feature] = False
    feature = np.concatenate([channels.feature, np.flatnonzero(used)])
    channel_of = np.full(len(used), -1)
    channel_of[feature[::-1]] = np.arange(len(feature))[::-1]
    return feature, channel_of


def emit(block: SelectiveBlock, size: MambaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
    """The tensors of a MambaDeltaT of this size and their layout.

    lane_in, lane_out: (L,) the coordinate of d_model that carries each lane before and after
    the block, −1 where it is not there. Columns beyond those in use never write: their B is 0.
    """
    features, channels, columns = block.features, block.channels, block.columns
    feature, channel_of = _wiring(block)
    used, recorded, inner, state, n = len(feature), len(channels.names), size.d_inner, size.d_state, block.d_state
    in_proj, conv, conv_bias = np.zeros((2 * inner, size.d_model)), np.zeros((inner, 1, size.d_conv)), np.zeros(inner)
    put(in_proj[:used], features.rows[feature], lane_in)
    put(in_proj[inner : inner + recorded], channels.gate, lane_in)
    conv[:used, 0, :] = features.taps[feature][:, ::-1]
    conv_bias[:used] = features.bias[feature]
    columns_in, step, step_bias = np.zeros((2 * state, inner)), np.zeros((state, inner)), np.full(state, OFF)
    a_log = np.full((inner, state), KEEP_LOG)
    if n:
        put(columns_in[:n], columns.write, channel_of)
        put(columns_in[state : state + n], columns.read, channel_of)
        put(step[:n], columns.step, channel_of)
        step_bias[:n] = columns.step_bias
        a_log[:, :n] = ERASE_LOG
    skip, out_proj = np.zeros(inner), np.zeros((inner, size.d_model))
    skip[:recorded] = channels.skip
    put(out_proj[:recorded], channels.out, lane_out)
    arrays = {
        "in_proj.weight": in_proj,
        "conv1d.weight": conv,
        "conv1d.bias": conv_bias,
        "dt_proj.weight": step,
        "dt_proj.bias": step_bias,
        "BC_proj.weight": columns_in,
        "A_log": a_log,
        "D": skip,
        "out_proj.weight": out_proj.T,
    }
    return Emission(exact_tensors(arrays), _layout(block, feature, size, lane_in, lane_out))


def _layout(block: SelectiveBlock, feature: np.ndarray, size: MambaSizes, lane_in, lane_out) -> Layout:
    records = block.channels.coordinates
    computed = [block.features.coordinates[f] for f in feature]
    lanes, lanes_out = (axis("lane", size.d_model, block.lanes, at) for at in (lane_in, lane_out))
    off = "a channel that is not used: nothing reads it"
    x = axis("x̂", size.d_inner, computed, padding=off)
    channel = axis("channel", size.d_inner, [*records, *computed[len(records) :]], padding=off)
    column = axis("column", size.d_state, block.columns.coordinates, padding="a column that is not used")
    return Layout(
        {
            "in_proj.weight": (joined(x, replace(channel, kind="gate of")), lanes),
            "conv1d.weight": (x, one_channel(), taps_axis(size.d_conv)),
            "conv1d.bias": (x,),
            "dt_proj.weight": (replace(column, kind="Δ of"), x),
            "dt_proj.bias": (column,),
            "BC_proj.weight": (joined(replace(column, kind="B"), replace(column, kind="C")), x),
            "A_log": (channel, column),
            "D": (channel,),
            "out_proj.weight": (lanes_out, channel),
        }
    )
