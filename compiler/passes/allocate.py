"""Allocate: a named lane for every number that must stand in the residual stream.

Lanes, in order: what the embedding writes (equal columns share a lane) or the numeric inputs,
the constant `one` that closes and opens gates, and what each block writes. Lanes that nobody reads
are not allocated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE
from compiler.ir.coordinate import Coordinate, numbered
from compiler.language import operations as ops
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.lowering.lanes import Lanes
from compiler.passes.schedule import Schedule


def allocate(schedule: Schedule) -> Lanes:
    """Lanes for the demanded numbers of every atom."""
    alphabet = schedule.circuit.alphabet
    vocab = alphabet.size if alphabet else 1  # a circuit over numbers starts every position from one row
    held: list[Coordinate] = []
    index: dict[Stream, np.ndarray] = {}
    columns = _embedded_columns(schedule, held, index)
    held.append(Coordinate("one", ONE, text="1 at every position, 0 before the first"))
    index[ONE] = np.array([len(held) - 1])
    columns.append(sparse.csc_array(np.ones((vocab, 1))))
    for stream in schedule.circuit.streams:
        if stream.operation.source is Source.NUMBERS and stream in schedule.on_lanes:
            index[stream] = _numbered(schedule.on_lanes[stream], len(held))
            held += numbered(stream, np.flatnonzero(schedule.on_lanes[stream]))
    n_inputs = len(held)
    for block in schedule.blocks:
        for stream in block:
            index[stream] = _numbered(schedule.on_lanes[stream], len(held))
            held += numbered(stream, np.flatnonzero(schedule.on_lanes[stream]))
    embedding = ops.exact_matrix(sparse.hstack(columns))
    embedding.resize(vocab, len(held))
    return Lanes(_distinct(held), index, embedding, n_inputs)


def _embedded_columns(schedule: Schedule, held: list[Coordinate], index: dict) -> list[sparse.csc_array]:
    """Columns of the embedding, each once; fills in coordinates and indices."""
    known: dict[bytes, int] = {}
    columns = []
    for atom in schedule.circuit.streams:
        if atom.operation.token_table is None or atom not in schedule.on_lanes:
            continue
        at = np.full(atom.width, -1)
        table = sparse.csc_array(atom.operation.token_table)
        for lane in np.flatnonzero(schedule.on_lanes[atom]):
            span = slice(table.indptr[lane], table.indptr[lane + 1])
            tokens, values = table.indices[span], table.data[span]
            key = tokens.astype(np.int64).tobytes() + values.tobytes()
            if key not in known:
                known[key] = len(held)
                held += numbered(atom, [int(lane)])
                columns.append(sparse.csc_array((values, tokens, [0, len(values)]), shape=(table.shape[0], 1)))
            at[lane] = known[key]
        index[atom] = at
    return columns


def _numbered(wanted: np.ndarray, start: int) -> np.ndarray:
    at = np.full(len(wanted), -1)
    at[wanted] = np.arange(start, start + wanted.sum())
    return at


def _distinct(held: list[Coordinate]) -> tuple[Coordinate, ...]:
    """Names made unique by a counter: value[0], value[0]#2."""
    seen: Counter[str] = Counter()
    result = []
    for coordinate in held:
        seen[coordinate.name] += 1
        again = seen[coordinate.name]
        result.append(coordinate if again == 1 else replace(coordinate, name=f"{coordinate.name}#{again}"))
    return tuple(result)
