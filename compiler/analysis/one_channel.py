"""Which affine forms one channel can compute.

The convolution of a block is depthwise, so a channel's pre-activation is Σ_lag tap(lag) ·
<row, lanes(t − lag)> + bias: one row for all lags (rank one over lags).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm
from compiler.language import operations as ops
from compiler.language.graph import with_operation
from compiler.language.stream import Stream
from compiler.lattice.units import array_divisor


@dataclass(frozen=True, eq=False)
class ChannelRows:
    """One channel for each of `count` numbers: rows over atoms, taps per lag, bias.

    atoms: the atoms that the rows read; rows[i]: (count × atoms[i].width) matrix.
    taps:  (count × d_conv), indexed by lag; bias: (count,).
    """

    atoms: tuple[Stream, ...]
    rows: tuple[sparse.csr_array, ...]
    taps: np.ndarray
    bias: np.ndarray


def one_channel(
    form: AffineForm, width: int, d_conv: int, rectified: bool, row_bias: bool = True
) -> ChannelRows | None:
    """Channels that compute the form, one for each of its `width` numbers; None where one channel is not enough.

    row_bias: whether a row has a bias of its own. Without one a constant is part of the row, so a row of the past has
    none, but where it is a conjunction.
    rectified: the form is only asked for through relu, so that any pre-activation with
    the same positive part will do.
    """
    bias = np.zeros(width)
    lagged: dict[int, dict[Stream, sparse.csr_array]] = {}
    for (atom, lag), matrix in form.items():
        if atom is ONE and lag == 0:
            bias = matrix.toarray()[:, 0]
        elif lag >= d_conv:
            return None
        else:
            lagged.setdefault(lag, {})[atom] = matrix
    if len(lagged) <= 1:
        return None if not row_bias and bias.any() and any(lagged) else _at_one_lag(lagged, bias, d_conv)
    atoms = tuple(dict.fromkeys(atom for part in lagged.values() for atom in part))
    stacked = {lag: _stack(part, atoms, width) for lag, part in lagged.items()}
    taps = np.zeros((width, d_conv))
    rows, hard = _proportional(stacked, taps)
    if not row_bias and np.delete(bias, hard).any():
        return None
    if len(hard):
        conjunctions = _disjoint_conjunctions(atoms, stacked, bias, hard, taps) if rectified else None
        if conjunctions is None:
            return None
        rows = rows + conjunctions
        if not row_bias:
            atoms, rows = (*atoms, ONE), _carried_by_constant(rows, hard, taps)
            bias = np.zeros(width)
    splits = np.cumsum([0, *(a.width for a in atoms)])
    columns = sparse.csc_array(rows)
    per_atom = tuple(sparse.csr_array(columns[:, i:j]) for i, j in zip(splits, splits[1:], strict=False))
    return ChannelRows(atoms, per_atom, taps, bias)


def _at_one_lag(lagged: dict[int, dict[Stream, sparse.csr_array]], bias: np.ndarray, d_conv: int) -> ChannelRows:
    taps = np.zeros((len(bias), d_conv))
    taps[:, list(lagged)] = 1
    part = next(iter(lagged.values()), {})
    return ChannelRows(tuple(part), tuple(part.values()), taps, bias)


def _stack(part: dict[Stream, sparse.csr_array], atoms: tuple[Stream, ...], width: int) -> sparse.csr_array:
    blocks = [part.get(atom, sparse.csr_array((width, atom.width))) for atom in atoms]
    return ops.exact_matrix(sparse.hstack(blocks))


def _proportional(stacked: dict[int, sparse.csr_array], taps: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """(rows, the indices of rows whose lags are no multiples of each other); fills in the taps of the others."""
    width = len(taps)
    entries: list[tuple[np.ndarray, np.ndarray]] = []
    hard = []
    for i in range(width):
        parts = {lag: _row(matrix, i) for lag, matrix in stacked.items() if matrix.indptr[i] < matrix.indptr[i + 1]}
        row = _common_row(parts, taps[i])
        if row is None:
            hard.append(i)
            taps[i] = 0
        entries.append(row or (np.zeros(0, dtype=np.int64), np.zeros(0)))
    indptr = np.cumsum([0, *(len(indices) for indices, _ in entries)])
    indices = np.concatenate([i for i, _ in entries]) if entries else np.zeros(0, dtype=np.int64)
    data = np.concatenate([d for _, d in entries]) if entries else np.zeros(0)
    columns = next(iter(stacked.values())).shape[1]
    return sparse.csr_array((data, indices, indptr), shape=(width, columns)), np.array(hard, dtype=np.int64)


def _row(matrix: sparse.csr_array, i: int) -> tuple[np.ndarray, np.ndarray]:
    span = slice(matrix.indptr[i], matrix.indptr[i + 1])
    order = np.argsort(matrix.indices[span])
    return matrix.indices[span][order], matrix.data[span][order]


def _common_row(
    parts: dict[int, tuple[np.ndarray, np.ndarray]], taps: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The row of integers without a common divisor of which every lag is a multiple, so that taps are dyadic.

    None if there is none.
    """
    if not parts:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    indices, data = next(iter(parts.values()))
    unit = data / float(array_divisor(data))
    for lag, (others, values) in parts.items():
        tap = float(array_divisor(values)) * np.sign(values[0] * unit[0])
        if not np.array_equal(others, indices) or not np.array_equal(unit, values / tap):
            return None
        taps[lag] = tap
    return indices, unit


def _disjoint_conjunctions(
    atoms: tuple[Stream, ...],
    stacked: dict[int, sparse.csr_array],
    bias: np.ndarray,
    hard: np.ndarray,
    taps: np.ndarray,
) -> sparse.csr_array | None:
    """a(t − i) ∧ b(t − j) for flags of which no token has both: relu((a − b)(t − i) − (a − b)(t − j) − 1).

    a − b is in {−1, 0, 1}, and the difference reaches 2 only for a(t − i) = b(t − j) = 1.
    Returns (all rows × atoms) with the hard rows filled in, or None where one is no such conjunction.
    """
    embeds = with_operation(atoms, ops.Embed)
    if not (bias[hard] == -1).all() or len(embeds) < len(atoms):
        return None
    read = np.array([np.diff(matrix.indptr)[hard] > 0 for matrix in stacked.values()])
    if (read.sum(axis=0) != 2).any() or len(set(map(tuple, read.T))) != 1:
        return None
    (near, a), (far, b) = sorted(
        ((lag, matrix) for (lag, matrix), on in zip(stacked.items(), read[:, 0], strict=True) if on),
        key=lambda part: part[0],
    )
    tables = sparse.hstack([embed.table for _, embed in embeds], format="csr")
    flags_a, flags_b = ops.exact_matrix(tables @ a[hard].T), ops.exact_matrix(tables @ b[hard].T)
    if not all((f.data == 1).all() for f in (flags_a, flags_b)) or flags_a.multiply(flags_b).nnz:
        return None
    taps[hard, near], taps[hard, far] = 1, -1
    spread = sparse.csr_array((np.ones(len(hard)), (hard, range(len(hard)))), shape=(len(taps), len(hard)))
    return ops.exact_matrix(spread @ (a[hard] - b[hard]))


def _carried_by_constant(rows: sparse.csr_array, hard: np.ndarray, taps: np.ndarray) -> sparse.csr_array:
    """The hard rows a − b without a bias of −1: r = 2·one − a + b and r(t − j) − 2r(t − i) for taps 1 at i, −1 at j.

    That is 2a(t − i) − 2b(t − i) − a(t − j) + b(t − j) − 2, at most 1 and 1 for a(t − i) = b(t − j) = 1 alone, since
    no token has both; before the start of the later tap it is −4 + 2a − 2b, at most −2. Changes the taps.
    """
    sign = np.ones(len(taps))
    sign[hard] = -1
    taps[hard] = np.where(taps[hard] == 1, -2.0, -taps[hard])
    constant = np.zeros((len(taps), 1))
    constant[hard] = 2
    return sparse.csr_array(sparse.hstack([sparse.diags_array(sign) @ rows, sparse.csr_array(constant)]))


def is_rectified(form: AffineForm) -> bool:
    """Whether each number is one rectifier of the same block times a positive weight."""
    if not form or any(not a.operation.rectifies or lag for a, lag in form):
        return False
    entries = sum(np.diff(m.indptr) for m in form.values())
    return bool((entries <= 1).all()) and all((m.data > 0).all() for m in form.values())
