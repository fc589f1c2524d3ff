"""Blocks as the tensors of an `S4DMixer`."""

from __future__ import annotations

import numpy as np

from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.ir.block import SelectiveBlock
from compiler.ir.decay import a_logs
from compiler.targets.sizes import MambaSizes
from compiler.targets.tensors import exact_tensors, put


def sizes(block: SelectiveBlock, n_lanes: int) -> MambaSizes:
    """The least sizes of the mixer: its columns are parameters, so only channels with a record count."""
    return MambaSizes(n_lanes, len(block.channels.names), max(1, block.d_state), 1, block.features.taps.shape[1])


def emit(block: SelectiveBlock, size: MambaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> dict:
    """The state dict of an S4DMixer of this size: {name: float32 tensor}."""
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
    return exact_tensors(arrays)


def _constants(block: SelectiveBlock, d_state: int) -> tuple[np.ndarray, np.ndarray]:
    """B and C as numbers: every column of this target is a multiple of the feature that is always on."""
    on = block.features.bias
    write, read = np.zeros(d_state), np.zeros(d_state)
    write[: block.d_state] = block.columns.write @ on
    read[: block.d_state] = block.columns.read @ on
    return write, read
