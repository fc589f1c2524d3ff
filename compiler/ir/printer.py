"""The stages of a compiled circuit as text: the circuit as written, its core, the schedule, the blocks.

One line for each stream, and in a block one line for each part, all by name:

    x̂    key.shift1[0] = relu(32·key[0](t−1))                  a feature
    B     recalled.column[0] = 0.000244·key.shift1[0]            a column's write port (C: its read port)
    chan  recalled[0]: x̂ u.value[0], Δ = 128, keep, z = 32·one, out 0.03125 → recalled[0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from compiler.ir.block import SelectiveBlock
from compiler.language.circuit import Circuit
from compiler.language.markdown import one_line
from compiler.language.stream import Stream

if TYPE_CHECKING:
    from compiler.compiled import Compiled

_MOST_TERMS = 6


def stages() -> dict[str, Callable[[Compiled], Iterator[str]]]:
    """The stages by name, in the order of the passes."""
    return {
        "source": lambda compiled: circuit_lines(compiled.source),
        "core": lambda compiled: circuit_lines(compiled.core),
        "schedule": schedule_lines,
        "blocks": blocks_lines,
    }


def show(compiled: Compiled, stage: str) -> str:
    """One stage as text; ValueError for a name that is none."""
    known = stages()
    if stage not in known:
        raise ValueError(f"stage {stage!r} is unknown; it must be one of {', '.join(known)}")
    return "\n".join(known[stage](compiled)) + "\n"


def circuit_lines(circuit: Circuit) -> Iterator[str]:
    """A line for each stream, inputs first: %number name = operation(inputs): type, where it was written."""
    number = {stream: i for i, stream in enumerate(circuit.streams)}
    yield f"circuit {one_line(circuit.name)}: {len(number)} streams, up to {circuit.max_length} positions"
    for stream, i in number.items():
        inputs = ", ".join(f"%{number[source]}" for source in stream.inputs)
        name = f" {stream.name}" if stream.name else ""
        yield f"  %{i}{name} = {stream.operation.symbol}({inputs}): {stream.type}{_written(stream)}"
    yield f"  output %{number[circuit.output]}"


def schedule_lines(compiled: Compiled) -> Iterator[str]:
    """For each block its operations, and how many of their numbers stand on lanes or feed ports of the block."""
    plan = compiled.schedule
    blocks = f"{len(plan.blocks)} block{'s' * (len(plan.blocks) != 1)}"
    yield f"{blocks} for {compiled.context.target.name}; lanes: {compiled.lanes.count}"
    served = [stream.label for stream, mask in plan.in_ports.items() if mask.any()]
    yield f"  before the first block: {_listed(compiled.lanes.names[: compiled.lanes.n_inputs])}"
    for i, operations in enumerate(plan.blocks, start=1):
        yield f"block {i}"
        for stream in operations:
            group = compiled.context.target.needed_gadget(stream.operation).column_group(stream)
            columns = "" if group is None else f", columns: {group[0]}"
            yield f"  {_title(stream)}: {int(plan.on_lanes[stream].sum())} of {stream.width} on lanes{columns}"
    if served:
        yield f"rectified in the blocks that read them: {_listed(served)}"


def blocks_lines(compiled: Compiled) -> Iterator[str]:
    """Every block, part by part, and the head."""
    for i, block in enumerate(compiled.blocks, start=1):
        yield f"block {i}"
        yield from block_lines(block)
    yield f"head: {compiled.head.shape[0]} scores from {len(np.unique(compiled.head.indices))} lanes"


def block_lines(block: SelectiveBlock) -> Iterator[str]:
    """A block by its named parts."""
    lanes, features = [c.name for c in block.lanes], block.features.names
    for f, name in enumerate(features):
        taps = block.features.taps[f]
        row = _terms(block.features.rows, f, lanes)
        past = " + ".join(
            f"{tap:g}·({row})(t−{lag})" if lag else f"{tap:g}·({row})" for lag, tap in enumerate(taps) if tap
        )
        bias = block.features.bias[f]
        yield f"  x̂     {name} = relu({' + '.join(filter(None, [past, f'{bias:g}' if bias else ''])) or '0'})"
    columns = block.columns
    for port, matrix in (
        ("B", columns.write),
        ("C", columns.read),
        *((("Δ", columns.step),) if columns.step is not None else ()),
    ):
        for n, name in enumerate(columns.names):
            bias = f" + {columns.step_bias[n]:g}" if port == "Δ" and columns.step_bias is not None else ""
            yield f"  {port:5} {name} = {_terms(matrix, n, features) or '0'}{bias}"
    for c, name in enumerate(block.channels.names):
        yield f"  chan  {name}: {_channel(block, c, lanes)}"


def _channel(block: SelectiveBlock, c: int, lanes: Sequence[str]) -> str:
    channels, features = block.channels, block.features.names
    step = [
        f"{channels.delta_bias[c]:g}",
        _terms(channels.delta_features, c, features),
        _terms(channels.delta_lanes, c, lanes),
    ]
    parts = [f"x̂ {features[channels.feature[c]]}"]
    if channels.writes[c]:
        parts.append(f"Δ = softplus({' + '.join(filter(None, step))}), {channels.decay[c]}")
    if channels.skip[c]:
        parts.append(f"D = {channels.skip[c]:g}")
    parts.append(f"z = {_terms(channels.gate, c, lanes) or '0'}")
    return ", ".join(parts) + f" → {_terms(channels.out, c, lanes) or 'nothing'}"


def _terms(matrix: sparse.csr_array, row: int, names: Sequence[str]) -> str:
    """Σ weight·name over the entries of a row."""
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    terms = [f"{weight:g}·{names[i]}" for i, weight in zip(matrix.indices[span], matrix.data[span], strict=True)]
    more = f" + … ({len(terms)} terms)" if len(terms) > _MOST_TERMS else ""
    return " + ".join(terms[:_MOST_TERMS]) + more


def _title(stream: Stream) -> str:
    return f"{stream.label} = {stream.operation.symbol}({', '.join(s.label for s in stream.inputs)}){_written(stream)}"


def _written(stream: Stream) -> str:
    """A comment that says where a stream was written; nothing for what the compiler added."""
    return f"  # {stream.origin}" if stream.origin else ""


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f", … ({len(names)})" if len(names) > most else "")
