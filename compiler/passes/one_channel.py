"""Which linear forms one channel can compute.

The convolution of a block is depthwise, so a channel's pre-activation is Σ_lag tap(lag) ·
<row, lanes(t − lag)> + bias: one row for all lags (rank one over lags).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.passes.linear_form import ONE, Form


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


def one_channel(form: Form, width: int, d_conv: int, rectified: bool) -> ChannelRows | None:
    """Channels that compute the form, one for each of its `width` numbers; None where one channel is not enough.

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
    atoms = tuple(dict.fromkeys(atom for part in lagged.values() for atom in part))
    stacked = {lag: _stack(part, atoms, width) for lag, part in lagged.items()}
    found = _disjoint_conjunction(atoms, stacked, bias, d_conv) if rectified else None
    found = found or _proportional(stacked, width, d_conv)
    if found is None:
        return None
    rows, taps = found
    splits = np.cumsum([0, *(a.width for a in atoms)])
    columns = sparse.csc_array(rows)
    per_atom = tuple(sparse.csr_array(columns[:, i:j]) for i, j in zip(splits, splits[1:], strict=False))
    return ChannelRows(atoms, per_atom, taps, bias)


def _stack(part: dict[Stream, sparse.csr_array], atoms: tuple[Stream, ...], width: int) -> sparse.csr_array:
    blocks = [part.get(atom, sparse.csr_array((width, atom.width))) for atom in atoms]
    return ops.exact_matrix(sparse.hstack(blocks))


def _proportional(stacked: dict[int, sparse.csr_array], width: int, d_conv: int) -> tuple[sparse.csr_array, np.ndarray] | None:
    """(rows, taps) when in every row the lags are multiples of each other."""
    taps = np.zeros((width, d_conv))
    if not stacked:
        return sparse.csr_array((width, 0)), taps
    if len(stacked) == 1:
        ((lag, rows),) = stacked.items()
        taps[:, lag] = 1
        return rows, taps
    norms = {lag: np.asarray(abs(m).max(axis=1).todense(), dtype=float).reshape(-1) for lag, m in stacked.items()}
    base = np.zeros(next(iter(stacked.values())).shape)
    for lag, matrix in stacked.items():
        empty = ~base.any(axis=1) & (norms[lag] > 0)
        base[empty] = matrix[empty].toarray()
    rows = _unit_rows(base)
    for lag, matrix in stacked.items():
        taps[:, lag] = _coefficients(matrix, rows)
        if (ops.exact_matrix(sparse.diags_array(taps[:, lag]) @ sparse.csr_array(rows)) != matrix).nnz:
            return None
    return sparse.csr_array(rows), taps


def _unit_rows(base: np.ndarray) -> np.ndarray:
    """Rows divided by the power of two of their first entry, so that taps stay dyadic."""
    first = base[np.arange(len(base)), (base != 0).argmax(axis=1)]
    _, exponent = np.frexp(np.where(first == 0, 1, first))
    return base / np.exp2(exponent - 1)[:, None]


def _coefficients(matrix: sparse.csr_array, rows: np.ndarray) -> np.ndarray:
    """For each row, the factor that its first entry would need."""
    at = (rows != 0).argmax(axis=1)
    first = rows[np.arange(len(rows)), at]
    entry = np.asarray(matrix[np.arange(len(rows)), at]).reshape(-1)
    return np.divide(entry, first, out=np.zeros_like(entry), where=first != 0)


def _disjoint_conjunction(
    atoms: tuple[Stream, ...],
    stacked: dict[int, sparse.csr_array],
    bias: np.ndarray,
    d_conv: int,
) -> tuple[sparse.csr_array, np.ndarray] | None:
    """a(t − i) ∧ b(t − j) for flags of which no token has both: relu((a − b)(t − i) − (a − b)(t − j) − 1).

    a − b is in {−1, 0, 1}, and the difference reaches 2 only for a(t − i) = b(t − j) = 1.
    """
    if len(stacked) != 2 or not (bias == -1).all() or not all(isinstance(a.operation, ops.Embed) for a in atoms):
        return None
    (near, a), (far, b) = sorted(stacked.items())
    tables = sparse.hstack([atom.operation.table for atom in atoms], format="csr")
    flags_a, flags_b = ops.exact_matrix(tables @ a.T), ops.exact_matrix(tables @ b.T)
    if not all((f.data == 1).all() for f in (flags_a, flags_b)) or flags_a.multiply(flags_b).nnz:
        return None
    taps = np.zeros((len(bias), d_conv))
    taps[:, near], taps[:, far] = 1, -1
    return ops.exact_matrix(a - b), taps


def is_rectified(form: Form) -> bool:
    """Whether each number is one rectifier of the same block times a positive weight."""
    if not form or any(not isinstance(a.operation, ops.Relu) or lag for a, lag in form):
        return False
    entries = sum(np.diff(m.indptr) for m in form.values())
    return bool((entries <= 1).all()) and all((m.data > 0).all() for m in form.values())
