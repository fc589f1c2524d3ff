"""How much there is to find in a model: blocks, lanes, memories, lags."""

from __future__ import annotations

from compiler.artifact.package import bare_sizes
from compiler.compiled import Compiled
from constructions.zoo.labels import variables


def difficulty(compiled: Compiled) -> dict[str, int]:
    """blocks: Mamba layers; lanes: numbers of the residual stream; channels, columns: the most of a block; memories,
    latches: of the circuit as written; lags: how many positions back its longest shift looks; variables: named streams.
    """
    sizes, operations = bare_sizes(compiled), [stream.operation for stream in compiled.source.streams]
    return {
        "blocks": len(compiled.blocks),
        "lanes": compiled.lanes.count,
        "channels": max((size.d_inner for size in sizes), default=0),
        "columns": max((size.d_state for size in sizes), default=0),
        "memories": sum(operation.keyed for operation in operations),
        "latches": sum(operation.latches for operation in operations),
        "lags": max((operation.delay or 0 for operation in operations), default=0),
        "variables": len(variables(compiled.source)),
    }
