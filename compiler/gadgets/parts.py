"""What the gadgets share: levels, targets, the constant column, the Δ and column ports."""

from __future__ import annotations

import numpy as np

from compiler.errors import CompileError
from compiler.exactness.levels import CONSTANT, GATE, ON
from compiler.ir.coordinate import Coordinate, numbered
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.ports import Ports


def targets(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> np.ndarray:
    return builder.lanes.index[stream][np.flatnonzero(wanted)]


def places(stream: Stream, wanted: np.ndarray) -> list[Coordinate]:
    """The coordinates of the channels that compute the wanted numbers."""
    return numbered(stream, np.flatnonzero(wanted))


def columns_of(operand: Stream, stream: Stream) -> list[Coordinate]:
    """The coordinates of one column for each number of a key (or of the first factor of an inner product)."""
    return [Coordinate(f"{stream.label}.column[{n}]", operand, n) for n in range(operand.width)]


def per_lane(builder: BlockBuilder, value: Stream, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x̂ features and units for the listed (repeated) numbers of a value."""
    used = np.zeros(value.width, dtype=bool)
    used[lanes] = True
    ids, unit = builder.written(value, used)
    position = np.cumsum(used) - 1
    return ids[position[lanes]], unit[position[lanes]]


def constant_column(builder: BlockBuilder) -> None:
    """The one column of running sums and latches: B = 1/128 and C = 1/32 at every position (x̂ = 32 where nothing
    follows silu).
    """
    on = np.array([builder.constant()])
    write, read = (1.0, 1.0) if builder.target.column == "written" else (1 / (ON * CONSTANT), 1 / (GATE * CONSTANT))
    row = np.zeros(1, dtype=np.int64)
    builder.set_columns(
        [Coordinate("constant", text="on at every position")],
        [(row, on, np.array([write]))],
        [(row, on, np.array([read]))],
    )


def column_gain(builder: BlockBuilder) -> float:
    """What undoes 128·B·C·32 of the constant column."""
    return 1 / (ON * CONSTANT * CONSTANT * GATE) if builder.target.column == "written" else 1.0


def read_gain(target: Ports) -> float:
    """C·silu(z) of an open entry, where a query stands at the level of the constant channel."""
    return CONSTANT * GATE if target.column == "written" else 1.0


def threshold(builder: BlockBuilder, when: Stream, flags: np.ndarray) -> dict:
    """The Δ port of one channel per listed flag: 256·level − 128."""
    if builder.target.step == "lanes":
        rows = builder.on_lanes(when, flags)
        return {"delta_lanes": ops.exact_matrix(2 * ON * rows), "delta_bias": -ON}
    used, flags = np.unique(flags, return_inverse=True)
    parts, bias = builder.linear(when, used)
    count = np.bincount(flags)
    order = np.argsort(flags, kind="stable")
    start = np.cumsum(count) - count
    entries = []
    for row, feature, weight in parts:
        repeat = count[row]
        offset = np.concatenate([np.arange(n) for n in repeat]) if len(repeat) else np.zeros(0, dtype=np.int64)
        channel = order[np.repeat(start[row], repeat) + offset.astype(np.int64)]
        entries.append((channel, np.repeat(feature, repeat), np.repeat(2 * ON * weight, repeat)))
    return {"delta_features": entries, "delta_bias": (2 * ON * bias - ON)[flags]}


def column_entries(builder: BlockBuilder, stream: Stream) -> list[tuple]:
    """(column, feature, weight) triples of a key or query; its constants come from the channel that is always on."""
    parts, bias = builder.linear(stream)
    constant = np.flatnonzero(bias)
    if len(constant):
        parts.append((constant, np.full(len(constant), builder.constant()), bias[constant] / CONSTANT))
    return parts


def column(builder: BlockBuilder, stream: Stream, level: float) -> tuple[list[tuple], float]:
    """(entries, unit) of a key or query at B or C: the columns are stream·unit/level.

    Where the port is linear the unit is the level; where nothing follows silu the columns stand at their own scale.
    """
    if builder.target.column == "linear":
        return [(r, f, w / level) for r, f, w in column_entries(builder, stream)], level
    return single_features(builder, stream)


def single_features(builder: BlockBuilder, stream: Stream) -> tuple[list[tuple], float]:
    """Columns that are one feature each, and their common unit."""
    ids, unit = builder.written(stream, np.ones(stream.width, dtype=bool))
    if len(set(unit)) != 1:
        raise CompileError(
            [
                (
                    stream,
                    (
                        f"its columns stand at {len(set(unit))} different scales, and "
                        f"{builder.target.name} needs one for all"
                    ),
                )
            ]
        )
    return [(np.arange(stream.width), ids, np.ones(stream.width))], float(unit[0])
