"""The causal graph of a circuit as data: what is computed of what, and where in the model each value stands.

    {"directed": true, "multigraph": true, "graph": {…}, "nodes": [{…}, …], "edges": [{…}, …]}

This is the node-link form of networkx (`networkx.node_link_graph(data, edges="edges")`).

graph   circuit, arch: its name and the compiler's target; alphabet: the letters; output: the id of the output;
        lanes: [{"name", "meaning", "after"}, …], lane i stands at coordinate i of the residual stream, and is
        written by block number `after` (0: the embedding)
nodes   id: the stream's place in circuit.json; name: unique; names: all that it goes by; variable: what its author
        called it; label, source: the expression and its line; operation, type, width; where: null, or
        {"after": blocks, "lags": {"0": [[number, lane, weight], …], …}, "channels": names, "complete": whether that is
        all of it}: value(t) = Σ weight · lane(t − lag)
edges   source, target: ids; key: which operand it is; lag: how many positions back the target reads it at most, null
        where it reads the whole past
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from compiler.compiled import Compiled
from compiler.language.operations.traits import Sees
from compiler.language.stream import Stream
from compiler.tracing.variables import Reading, Variable, Variables, written_after


def causal_graph(compiled: Compiled) -> dict[str, Any]:
    """The graph as a JSON value."""
    variables = Variables(compiled)
    place = {variable.stream: i for i, variable in enumerate(variables)}
    writers = _writers(compiled)
    with _uncollected():
        nodes = [_node(variable, writers) | {"id": i} for i, variable in enumerate(variables)]
    edges: list[dict[str, Any]] = [
        {"lag": _lag(reader), "source": place[source], "target": at, "key": operand}
        for reader, at in place.items()
        for operand, source in enumerate(reader.inputs)
    ]
    edges.sort(key=lambda edge: edge["source"])  # as networkx has them
    facts = _facts(compiled, place)
    return {"directed": True, "multigraph": True, "graph": facts, "nodes": nodes, "edges": edges}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which looks at a million short lists again and again and finds nothing to free."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _facts(compiled: Compiled, place: Mapping[Stream, int]) -> dict[str, Any]:
    alphabet, after = compiled.source.alphabet, written_after(compiled).tolist()
    lanes = zip(compiled.lanes.coordinates, after, strict=True)
    return {
        "circuit": compiled.source.name,
        "arch": compiled.context.target.name,
        "alphabet": None if alphabet is None else list(alphabet.tokens),
        "output": place[compiled.source.output],
        "lanes": [{"name": c.name, "meaning": c.meaning, "after": blocks} for c, blocks in lanes],
    }


def _node(variable: Variable, writers: Mapping[int, list[str]]) -> dict[str, Any]:
    stream = variable.stream
    return {
        "name": variable.name,
        "names": list(variable.names),
        "variable": variable.called,
        "label": stream.label,
        "source": stream.origin,
        "operation": stream.operation.symbol,
        "type": type(stream.type).__name__,
        "width": stream.width,
        "where": None if variable.reading is None else _where(variable.reading, writers),
    }


def _where(reading: Reading, writers: Mapping[int, list[str]]) -> dict[str, Any]:
    lags = {}
    for lag, matrix in sorted(reading.parts.items()):
        coo = matrix.tocoo()
        order = np.lexsort((coo.col, coo.row))
        rows, columns, weights = (part[order].tolist() for part in (coo.row, coo.col, coo.data))
        lags[str(lag)] = [list(entry) for entry in zip(rows, columns, weights, strict=True)]
    channels = dict.fromkeys(name for lane in reading.lanes.tolist() for name in writers.get(lane, ()))
    return {"after": reading.after, "lags": lags, "channels": list(channels), "complete": reading.whole}


def _writers(compiled: Compiled) -> dict[int, list[str]]:
    """For each lane the channels that write to it, as `block number: name`."""
    found: dict[int, list[str]] = {}
    for number, block in enumerate(compiled.blocks, start=1):
        out = block.channels.out.tocoo()
        for channel, lane in zip(out.row.tolist(), out.col.tolist(), strict=True):
            found.setdefault(lane, []).append(f"{number}: {block.channels.names[channel]}")
    return found


def _lag(reader: Stream) -> int | None:
    delay = reader.operation.delay
    if delay is not None:
        return delay
    return None if reader.operation.sees is Sees.PAST else 0
