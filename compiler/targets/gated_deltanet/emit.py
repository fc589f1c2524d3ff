"""Blocks as the tensors of a Gated DeltaNet mixer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from compiler.exactness.levels import ERASE_LOG, KEEP_LOG, OFF, ON
from compiler.ir.block import SelectiveBlock
from compiler.ir.coordinate import Coordinate
from compiler.layout import Axis, Emission, Layout, axis, one_channel, taps_axis
from compiler.targets.gated_deltanet.heads import (
    BALLAST,
    LEVEL,
    RAISED,
    DeltaSizes,
    Head,
    factors,
    heads_of,
    height,
    one_lane,
)
from compiler.targets.tensors import exact_tensors, put


class _Rows:
    """Convolved rows of queries, keys or values: weights over d_model, taps, coordinates."""

    def __init__(self, count: int, size: DeltaSizes, block: SelectiveBlock, lane_in: np.ndarray):
        self.weight = np.zeros((count, size.d_model))
        self.taps = np.zeros((count, size.d_conv))
        self.places: dict[int, Coordinate] = {}
        self.block, self.lane_in = block, lane_in

    def put(self, at: np.ndarray, features: Sequence[int], scale: float = 1.0) -> None:
        """The rows of the block's features, times a factor."""
        rows = self.block.features
        put(self.weight, sparse.csr_array(rows.rows[features] * scale), self.lane_in, np.asarray(at))
        self.taps[at] = rows.taps[features]
        self.places.update({int(i): rows.coordinates[f] for i, f in zip(at, features, strict=True)})

    def constant(self, at: int, level: float, one: int, coordinate: Coordinate) -> None:
        self.weight[at, one], self.taps[at, 0], self.places[at] = level, 1, coordinate


def emit(block: SelectiveBlock, size: DeltaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission:
    """The tensors of a mixer of this size and their layout; a head that is not used has β = 0 keys and forgets."""
    one = int(lane_in[one_lane(block)])
    heads = heads_of(block, size.headdim)
    keyed, valued = size.heads * size.d_state, size.d_inner
    query, key = (_Rows(keyed, size, block, lane_in) for _ in range(2))
    value = _Rows(valued, size, block, lane_in)
    gate, out = np.zeros((valued, size.d_model)), np.zeros((valued, size.d_model))
    step, strength = np.zeros((size.heads, size.d_model)), np.zeros((size.heads, size.d_model))
    a_log, dt_bias = np.full(size.heads, KEEP_LOG), np.full(size.heads, OFF)
    channels: dict[int, Coordinate] = {}
    for number, head in enumerate(heads):
        rows, columns = number * size.d_state, number * size.headdim
        _keys(block, head, rows, query, key, one)
        seats = columns + head.values
        scale = _values(block, head, columns, size, value, one, channels)
        put(gate, block.channels.gate[head.channels], lane_in, seats)
        put(out, _scaled(block, head, scale), lane_out, seats)
        strength[number, one] = LEVEL if max(head.beta, 1) == size.largest_beta else 0.0
        first = head.channels[0]
        if head.beta:
            a_log[number], dt_bias[number] = block.channels.decay[first].a_log, block.channels.delta_bias[first]
            put(step, block.channels.delta_lanes[[first]], lane_in, np.array([number]))
        else:
            a_log[number], dt_bias[number] = ERASE_LOG, ON
    parts = (query, key, value)
    tensors = exact_tensors(
        {
            "q_proj.weight": query.weight,
            "k_proj.weight": key.weight,
            "v_proj.weight": value.weight,
            "a_proj.weight": step,
            "b_proj.weight": strength,
            "g_proj.weight": gate,
            "out_proj.weight": out.T,
            "conv1d.weight": np.concatenate([part.taps[:, ::-1] for part in parts])[:, None, :],
            "A_log": a_log,
            "dt_bias": dt_bias,
            "o_norm.weight": np.full(size.headdim, BALLAST),
        }
    )
    return Emission(tensors, _layout(block, size, heads, parts, channels, lane_in, lane_out))


def _keys(block: SelectiveBlock, head: Head, rows: int, query: _Rows, key: _Rows, one: int) -> None:
    """Columns of a head at its rows. The module divides by their norm, so only their ratios matter."""
    if not head.beta:
        always = Coordinate("constant", text="the one key and query of a head that passes values on")
        for part in (query, key):
            part.constant(rows, LEVEL, one, always)
        return
    for part, matrix in ((key, block.columns.write), (query, block.columns.read)):
        for i, column in enumerate(head.columns):
            span = slice(matrix.indptr[column], matrix.indptr[column + 1])
            part.put(np.array([rows + i])[: span.stop - span.start], matrix.indices[span])


def _values(
    block: SelectiveBlock,
    head: Head,
    columns: int,
    size: DeltaSizes,
    value: _Rows,
    one: int,
    channels: dict[int, Coordinate],
) -> float:
    """The value rows of a head and its ballast; what undoes the scale of its output, that of x̂ in the block."""
    of_channels, features = block.channels.coordinates, block.channels.feature
    parts = factors(size.headdim)
    if head.reflects:
        (channel,) = head.channels
        for i, a in enumerate(parts):
            value.put(np.array([columns + i]), [features[channel]], a * RAISED)
            channels[columns + i] = of_channels[channel]
        return height(block, channel) / (BALLAST * parts[0])
    for i, a in enumerate(parts):
        held = Coordinate(f"ballast[{i}]", text="a constant that makes the norm of the head the identity")
        value.constant(columns + i, a * BALLAST, one, held)
        channels[columns + i] = held
    value.put(columns + head.values, features[head.channels])
    channels.update({int(columns + v): of_channels[c] for v, c in zip(head.values, head.channels, strict=True)})
    return 1.0


def _scaled(block: SelectiveBlock, head: Head, scale: float) -> sparse.csr_array:
    """out of the channels, times the skip where they have no state."""
    rows = block.channels.out[head.channels]
    skip = np.ones(len(head.channels)) if head.beta else block.channels.skip[head.channels]
    return sparse.csr_array(sparse.diags_array(skip * scale) @ rows)


def _layout(block, size: DeltaSizes, heads, parts, channels, lane_in, lane_out) -> Layout:
    lanes, lanes_out = (axis("lane", size.d_model, block.lanes, at) for at in (lane_in, lane_out))
    off = "a place that is not used: nothing is written there"
    query, key, value = (
        Axis(kind, len(part.weight), part.places, off)
        for kind, part in zip(("query", "key", "value"), parts, strict=True)
    )
    channel = Axis("channel", size.d_inner, channels, off)
    named = {i: _named(block, head, i) for i, head in enumerate(heads)}
    head = Axis("head", size.heads, named, "a head that is not used: it has no keys")
    within = Axis("value", size.headdim, {}, "the level of the ballast, which the norm divides by")
    places: dict[int, Coordinate] = {}
    for start, part in ((0, query), (query.size, key), (query.size + key.size, value)):
        places.update({start + i: replace(c, name=f"{part.kind} {c.name}") for i, c in part.places.items()})
    convolved = Axis("row", query.size + key.size + value.size, places, off)
    return Layout(
        {
            "q_proj.weight": (query, lanes),
            "k_proj.weight": (key, lanes),
            "v_proj.weight": (value, lanes),
            "a_proj.weight": (replace(head, kind="decay of head"), lanes),
            "b_proj.weight": (replace(head, kind="β of head"), lanes),
            "g_proj.weight": (replace(channel, kind="gate of"), lanes),
            "out_proj.weight": (lanes_out, channel),
            "conv1d.weight": (convolved, one_channel(), taps_axis(size.d_conv)),
            "A_log": (head,),
            "dt_bias": (head,),
            "o_norm.weight": (within,),
        }
    )


def _named(block: SelectiveBlock, head: Head, number: int) -> Coordinate:
    first = block.channels.coordinates[head.channels[0]]
    does = {0.0: "passes on", 1.0: "keeps", 2.0: "reflects"}[head.beta]
    return replace(first, name=f"head {number}, which {does} {first.name}, …")
