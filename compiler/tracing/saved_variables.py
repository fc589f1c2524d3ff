"""What the author of a saved circuit called its streams: circuit.json does not say it, causal_graph.json does."""

from __future__ import annotations

from pathlib import Path

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import GRAPH
from compiler.artifact.json_files import read_json
from compiler.language.circuit import Circuit
from compiler.language.variables import check_variable


def with_variables(circuit: Circuit, directory: Path) -> Circuit:
    """The circuit, read from a checkpoint, with what its author called its streams; CheckpointError for a name that no
    author can have given: nothing else in a checkpoint says them.
    """
    path = directory / GRAPH
    graph = read_json(path) if path.is_file() else {}
    nodes = graph.get("nodes") if isinstance(graph, dict) else None
    for node in nodes if isinstance(nodes, list) else ():
        at, name = (node.get("id"), node.get("variable")) if isinstance(node, dict) else (None, None)
        if isinstance(at, int) and 0 <= at < len(circuit.streams) and isinstance(name, str):
            try:
                check_variable(name)
            except ValueError as reason:
                raise CheckpointError(f"{path}: {reason}.") from None
            circuit.streams[at].variable = name
    return circuit
