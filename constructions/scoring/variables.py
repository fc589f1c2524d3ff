"""Which variables of a circuit a model is held to: what stands on lanes, and is exchanged where the lanes are.

Streams that the passes found equal share their lanes. They are one variable: the circuit exchanges all of them, as the
model does. Where a rewriting took a reader to other lanes the two do not agree, and the variable is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compiler.compiled import Compiled, run_blocks
from compiler.ir.block import UnsafePreactivation
from compiler.language.stream import Stream
from compiler.tracing.intervention import Intervention, Setting, circuit_values
from compiler.tracing.variables import Variable, Variables

Equal = tuple[Variable, ...]
"""Streams that share their lanes, in the order of the circuit."""
_UNSAFE = "where its lanes are exchanged, the model leaves the numbers on which it is exact"
_OTHER = "where its lanes are exchanged, the model's scores are not those of the circuit where the stream is"


def standing(compiled: Compiled) -> dict[str, Equal]:
    """By name, what a block writes to lanes of its own. Of equal streams the first that has a name of its author's
    gives the name, or else the first."""
    found: dict[Stream, list[Variable]] = {}
    for variable in Variables(compiled):
        if _stands(compiled, variable):
            found.setdefault(variable.core, []).append(variable)
    name = lambda equal: next((v.name for v in equal if v.called), equal[0].name)
    return {name(equal): tuple(equal) for equal in found.values()}


def _stands(compiled: Compiled, variable: Variable) -> bool:
    reading = variable.reading
    placed = reading is not None and reading.after > 0 and reading.whole and variable.core in compiled.lanes.index
    return placed and bool((compiled.lanes.index[variable.core] >= 0).all())


def lanes_of(compiled: Compiled, equal: Equal) -> np.ndarray:
    """The lanes that equal streams share."""
    return compiled.lanes.index[equal[0].core]


def blocks_before(equal: Equal) -> int:
    """How many blocks have run when they stand there."""
    reading = equal[0].reading
    assert reading is not None, "what stands on lanes is read from them"
    return reading.after


def exchanged(compiled: Compiled, equal: Equal, source: np.ndarray) -> Intervention:
    """All of these streams as they are in other inputs (n, time), at every position."""
    values = circuit_values(compiled, source, {}, [v.stream for v in equal], True)
    everywhere = np.ones(source.shape, dtype=bool)
    return {v: Setting(everywhere, values[v.stream]) for v in equal}


def left_out(
    compiled: Compiled, variables: Mapping[str, Equal], base: np.ndarray, source: np.ndarray
) -> dict[str, str]:
    """Those of which no exchange of lanes is one of streams, each with the reason. base, source: inputs (n, time) on
    which it is tried."""
    here, there = run_blocks(compiled, base), run_blocks(compiled, source)
    output, found = compiled.source.output, {}
    for name, equal in variables.items():
        right = circuit_values(compiled, base, exchanged(compiled, equal, source), [output], True)[output]
        try:
            scores = _with_lanes(compiled, equal, here, there)
        except UnsafePreactivation:
            found[name] = _UNSAFE
            continue
        if not np.allclose(scores, right, rtol=1e-9, atol=1e-6):  # real numbers are rounded
            found[name] = _OTHER
    return found


def _with_lanes(
    compiled: Compiled, equal: Equal, here: Sequence[np.ndarray], there: Sequence[np.ndarray]
) -> np.ndarray:
    """The scores (n, time, letters) of the blocks where these lanes are as they are there. here, there: the residual
    stream behind so many blocks, of two batches."""
    at, lanes = blocks_before(equal), lanes_of(compiled, equal)
    stream = here[at].copy()
    stream[..., lanes] = there[at][..., lanes]
    for block in compiled.blocks[at:]:
        stream = stream + block.run(stream)
    return (stream.reshape(-1, stream.shape[-1]) @ compiled.head.T).reshape(*stream.shape[:2], -1)
