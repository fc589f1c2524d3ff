"""The last map of a circuit: scores as a matrix on one stream that has a state, plus what the present letter adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import Lanes
from verify.checker.meaning.entries import read_matrix
from verify.checker.values.exact import plus, times
from verify.checker.values.windows import is_window, letters_of, reach

_MOST_ENTRIES = 1 << 25
_MOST_COLUMNS = 1 << 24


@dataclass(frozen=True, eq=False)
class Scores:
    """score = head @ state + Σ matrix @ lanes, these functions of the present letter; letters beyond score 0.

    state: the number of the stream; head: (letters, width of the state).
    """

    reader: Reader
    state: int
    head: np.ndarray
    rest: list[tuple[np.ndarray, Lanes]]

    @classmethod
    def of(cls, reader: Reader, *operations: str) -> Scores:
        """Rejected unless the output is a linear map that reads one stream with one of these operations."""
        streams, parts = reader.data["streams"], readout_parts(reader)
        states = {k for _, k in parts if streams[k]["operation"] in operations}
        if len(states) != 1:
            kind = " or ".join(operations)
            raise Rejected(f"the scores are linear in {len(states)} streams of the kind {kind}; the proof needs one")
        (state,) = states
        head = sum_of([m for m, k in parts if k == state])
        rest = [(m, reader.lanes(k)) for m, k in parts if k != state]
        if any(m.shape[1] != len(lanes) for m, lanes in rest):
            raise Rejected("a matrix of the readout has another width than what it reads")
        return cls(reader, state, head, rest)

    def own(self, ids: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(what the rest adds to each score, which places of `ids` as present letters have it), each once."""
        world, letters = self.reader.world, len(self.head)
        found = [np.zeros((letters, 1))]
        for matrix, lanes in self.rest:
            if any(not is_window(world, v) or reach(world, v) for v in lanes):
                raise Rejected("the readout reads more than one memory and the present letter")
            varies = not all(v.constant for v in lanes)
            if varies and letters * len(ids) > _MOST_COLUMNS:
                raise Rejected("the readout adds too many functions of the present letter to go through")
            rows = [_at(letters_of(world, v, None), ids if varies else ids[:1]) for v in lanes]
            found.append(times(matrix, np.stack(rows)))
        total = sum_of([np.broadcast_to(f, (letters, max(f.shape[1] for f in found))) for f in found])
        columns, places = np.unique(total, axis=1, return_inverse=True)
        which = np.broadcast_to(places.reshape(-1), len(ids)) if total.shape[1] == 1 else places.reshape(-1)
        for i in range(columns.shape[1]):
            yield columns[:, i], np.flatnonzero(which == i)


def readout_parts(reader: Reader) -> list[tuple[np.ndarray, int]]:
    """The scores as a sum of matrix · stream, the matrices (letters, width); Rejected for other outputs.

    Linear maps of linear maps are multiplied out, from the last stream to the first, so that each is met once.
    """
    output, streams, letters = reader.data["output"], reader.data["streams"], reader.world.language.tokens
    if streams[output]["operation"] not in ("Linear", "Emit"):
        raise Rejected(f"the scores are the operation {streams[output]['operation']}, and the proof reads linear ones")
    found: dict[int, np.ndarray] = {}
    _add_parts(found, reader, output, None, letters)
    while inner := [k for k in found if streams[k]["operation"] == "Linear"]:
        k = max(inner)
        outer = found.pop(k)
        _add_parts(found, reader, k, outer, outer.shape[1])
    return [(matrix, k) for k, matrix in found.items()]


def _add_parts(found: dict[int, np.ndarray], reader: Reader, k: int, outer: np.ndarray | None, rows: int) -> None:
    """Add what a linear map reads, seen through the matrix `outer` (None: the identity)."""
    matrices = reader.data["streams"][k]["attributes"]["matrices"]
    for entry, source in zip(matrices, reader.inputs(k), strict=True):
        read = read_matrix(entry)
        if outer is not None and read.shape[0] != rows:
            raise Rejected(f"a matrix of {rows} columns is multiplied by {read.shape[0]} lanes")
        matrix = dense(read, rows)
        part = matrix if outer is None else times(outer, matrix)
        found[source] = plus(found[source], part) if source in found else part


def _at(part, ids: np.ndarray) -> np.ndarray:
    return part.table[part.axes[0][ids]] if 0 in part.axes else np.full(len(ids), float(part.table))


def dense(matrix: Matrix, letters: int) -> np.ndarray:
    """(letters, width); a matrix of fewer rows is filled up with zeros."""
    if matrix.shape[0] > letters or letters * matrix.shape[1] > _MOST_ENTRIES:
        raise Rejected(f"a readout of {matrix.shape[0]} × {matrix.shape[1]} numbers for {letters} letters")
    full = np.zeros((letters, matrix.shape[1]))
    np.add.at(full, (matrix.rows, matrix.cols), matrix.data)
    return full


def sum_of(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = plus(total, part)
    return total
