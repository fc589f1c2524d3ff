"""Read back: the tensors that a target printed hold the block that it was given.

Each target reads its own tensors back as the equations of `ir/block.py` over the coordinates of d_model
(`Target.read`), from what its module computes and not from how they were printed. Both sides are brought into one form
that knows no order and no padding, and must be equal. So what was compared before holds of the weights, at all inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from compiler.exactness.compare import MISTAKE, Miscompiled
from compiler.exactness.levels import ERASE_LOG, KEEP_LOG, OFF
from compiler.ir.block import SelectiveBlock

_AT_ONCE = 1 << 18  # numbers that the cache holds


@dataclass(frozen=True, eq=False)
class Held:
    """What tensors compute, in the terms of the block IR; the lanes are the D coordinates of d_model.

    rows (F × D), taps (F × d_conv) by lag, bias (F,); x (C × F): x̂ of each channel; delta_features (C × F),
    delta_lanes (C × D), delta_bias, skip (C,); a_log (C × N), (C × 1) where it is the same in all columns; gate, out
    (C × D); write, read (N × F).
    step (N × F), step_bias, step_a_log (N,): where Δ belongs to the columns; then the channels' own Δ is not looked at.
    """

    rows: sparse.csr_array
    taps: np.ndarray
    bias: np.ndarray
    x: sparse.csr_array
    delta_features: sparse.csr_array
    delta_lanes: sparse.csr_array
    delta_bias: np.ndarray
    a_log: np.ndarray
    skip: np.ndarray
    gate: sparse.csr_array
    out: sparse.csr_array
    write: sparse.csr_array
    read: sparse.csr_array
    step: sparse.csr_array | None = None
    step_bias: np.ndarray | None = None
    step_a_log: np.ndarray | None = None


def check_read_back(held: Held, block: SelectiveBlock, lane_in: np.ndarray, lane_out: np.ndarray) -> None:
    """Raise Miscompiled, naming what differs, unless the tensors hold the block, nothing less and nothing more.

    lane_in, lane_out: (L,) the coordinate of each lane before and after the block, −1 where it is not there.
    """
    seen = _Features()
    expected = _of_block(block, lane_in, lane_out, held.rows.shape[1])
    printed, meant = _canonical(held, seen), _canonical(expected, seen)
    own_steps = held.step is not None or not any(meant.columns)
    for what, names, given, wanted in (
        ("column", block.columns.names, printed.columns, meant.columns),
        ("channel", block.channels.names, printed.channels(own_steps), meant.channels(own_steps)),
    ):
        missing, beyond = Counter(wanted), Counter(given)
        missing.subtract(given), beyond.subtract(wanted)
        lacks = next((i for i, key in enumerate(wanted) if key is not None and missing[key] > 0), None)
        if lacks is not None:
            raise Miscompiled(
                f"{MISTAKE} the weights that were printed do not hold {what} {names[lacks]} of its block."
            )
        more = next((i for i, key in enumerate(given) if key is not None and beyond[key] > 0), None)
        if more is not None:
            raise Miscompiled(
                f"{MISTAKE} the weights that were printed hold a {what}, number {more}, that its block lacks."
            )


def csr(dense: np.ndarray) -> sparse.csr_array:
    """The nonzero numbers of a dense array, as float64."""
    width = max(1, dense.shape[1])
    step, found = max(1, _AT_ONCE // width), []
    for start in range(
        0, len(dense), step
    ):  # in the cache, of booleans and along one axis, it counts twenty times faster
        rows, columns = np.divmod(np.flatnonzero(dense[start : start + step] != 0), width)
        found.append((rows + start, columns, dense[rows + start, columns].astype(np.float64)))
    rows, columns, data = (
        (np.concatenate(parts) for parts in zip(*found, strict=True)) if found else np.zeros((3, 0), int)
    )
    ends = np.searchsorted(rows, np.arange(len(dense) + 1))
    return sparse.csr_array((data, columns, ends), shape=dense.shape)


def same_along(array: np.ndarray, axis: int, what: str) -> np.ndarray:
    """The one vector that all slices along an axis are; Miscompiled where they are not."""
    first = array.take(0, axis)
    if not (array == np.expand_dims(first, axis)).all():
        raise Miscompiled(f"{MISTAKE} the weights that were printed have no one {what}.")
    return first.astype(np.float64)


# One form for both sides ------------------------------------------------------------------------------------


def _of_block(block: SelectiveBlock, lane_in: np.ndarray, lane_out: np.ndarray, d_model: int) -> Held:
    features, channels, columns = block.features, block.channels, block.columns
    count, used = len(features.names), len(channels.names)
    own = columns.step is not None
    return Held(
        moved(features.rows, lane_in, d_model),
        features.taps,
        features.bias,
        sparse.csr_array((np.ones(used), (np.arange(used), channels.feature)), shape=(used, count)),
        channels.delta_features,
        moved(channels.delta_lanes, lane_in, d_model),
        channels.delta_bias,
        block.a_log,
        channels.skip,
        moved(channels.gate, lane_in, d_model),
        moved(channels.out, lane_out, d_model),
        columns.write,
        columns.read,
        columns.step,
        columns.step_bias,
        np.full(block.d_state, ERASE_LOG) if own else None,
    )


def moved(matrix: sparse.csr_array, to: np.ndarray, width: int) -> sparse.csr_array:
    """Column j of the matrix in column to[j] of as many as there are; ValueError where that is −1."""
    matrix = matrix.tocsr()
    columns = np.asarray(to)[matrix.indices]
    if (columns < 0).any():
        raise ValueError("a weight stands on a coordinate that is not there")
    return sparse.csr_array((matrix.data, columns, matrix.indptr), shape=(matrix.shape[0], width))


@dataclass(frozen=True)
class _Canonical:
    """A key for each column, for Δ and decay of each channel, and for all else of it. None: it computes nothing."""

    columns: list[tuple | None]
    steps: list[tuple]
    rests: list[tuple | None]

    def channels(self, own_steps: bool) -> list[tuple | None]:
        if own_steps:
            return self.rests
        return [None if rest is None else (*rest, *step) for rest, step in zip(self.rests, self.steps, strict=True)]


def _canonical(held: Held, seen: _Features) -> _Canonical:
    """Rows by their numbers instead of their places. What computes 0 whatever the input is left out."""
    known = seen.places(held)
    x, delta, write, read = (keys(m @ known) for m in (held.x, held.delta_features, held.write, held.read))
    gate, out, lanes = (keys(m) for m in (held.gate, held.out, held.delta_lanes))
    never = [not f and not m and b == OFF for f, m, b in zip(delta, lanes, held.delta_bias, strict=True)]
    rests: list[tuple | None] = [
        None
        if not g and not o and a <= ERASE_LOG and (not v or ((n or held.step is not None) and s == 0))
        else (v, g, o, float(s))
        for v, g, o, s, n, a in zip(x, gate, out, held.skip, never, held.a_log.max(axis=1), strict=True)
    ]
    parts: list[Sequence] = [write, read]
    if held.step is not None and held.step_bias is not None and held.step_a_log is not None:
        parts += [keys(held.step @ known), held.step_bias.tolist(), held.step_a_log.tolist()]
    columns = [key if key[0] else None for key in zip(*parts, strict=True)]
    steps = list(zip(delta, lanes, held.delta_bias.tolist(), _decays(held.a_log, columns), strict=True))
    return _Canonical(columns, steps, rests)


def _decays(a_log: np.ndarray, columns: list[tuple | None]) -> list[float | bytes]:
    """Of each channel: its A_log, one number where that is the same in all columns; else that of the columns that
    compute something, in the order of their keys, and that of all others, which must be kept. Columns that are alike
    stand in the order of their A_log.
    """
    used = sorted((key, n) for n, key in enumerate(columns) if key is not None)
    table = a_log[:, [n for _, n in used]] if a_log.shape[1] > 1 else a_log
    first = 0
    for last in range(1, len(used) + 1):
        if last == len(used) or used[last][0] != used[first][0]:
            table[:, first:last] = np.sort(table[:, first:last], axis=1)
            first = last
    same = (a_log == a_log[:, :1]).all(axis=1)
    others = a_log[:, [n for n, key in enumerate(columns) if key is None]] if a_log.shape[1] > 1 else a_log[:, :0]
    rest = [row[row != KEEP_LOG].tobytes() for row in others]
    return [
        float(own) if alike else row.tobytes() + beyond
        for own, row, alike, beyond in zip(a_log[:, 0], table, same, rest, strict=True)
    ]


class _Features:
    """Numbers for features: equal ones share a number, those that are constant are multiples of number 0."""

    def __init__(self) -> None:
        self.number: dict[tuple, int] = {}

    def places(self, held: Held) -> sparse.csr_array:
        """(F × numbers): what each feature is. A feature that is 0 everywhere is nothing."""
        entries = []
        for i, row in enumerate(keys(held.rows)):
            if row and held.taps[i].any():
                key = (row, (held.taps[i] + 0.0).tobytes(), float(held.bias[i]))
                entries.append((i, self.number.setdefault(key, len(self.number) + 1), 1.0))
            elif held.bias[i] > 0:
                entries.append((i, 0, float(held.bias[i])))
        rows, numbers, values = zip(*entries, strict=True) if entries else ((), (), ())
        shape = (len(held.bias), 1 + max((len(self.number), *numbers)))
        return sparse.csr_array((np.array(values, float), (np.array(rows, int), np.array(numbers, int))), shape=shape)


def canonical(matrix: sparse.csr_array) -> sparse.csr_array:
    """The matrix with the nonzero entries of each row once and in order, and no others."""
    if not (isinstance(matrix, sparse.csr_array) and matrix.has_canonical_format and matrix.data.all()):
        matrix = sparse.csr_array(matrix, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def keys(matrix: sparse.csr_array) -> list[bytes]:
    """The nonzero entries of each row and where they stand; b"" for an empty one."""
    matrix = canonical(matrix)
    places, values, ends = matrix.indices.astype(np.int64), matrix.data, matrix.indptr.tolist()
    spans = zip(ends[:-1], ends[1:], strict=True)
    return [places[start:stop].tobytes() + values[start:stop].tobytes() for start, stop in spans]
