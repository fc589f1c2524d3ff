"""Copies and sums of whole lanes, as sparse linear maps: NumPy's tile and repeat, over the lanes of a stream."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from compiler.language.stream import Stream


def place_matrix(places: np.ndarray, width: int) -> sparse.csr_array:
    """(width × places): lane i at places[i], 0 in between."""
    return sparse.csr_array((np.ones(len(places)), (places, np.arange(len(places)))), shape=(width, len(places)))


def placed(x: Stream, places: np.ndarray, width: int) -> Stream:
    """The lanes of x at these places of a stream of this width, 0 in between."""
    return place_matrix(places, width) @ x


def in_groups(matrix: sparse.sparray | np.ndarray, x: Stream) -> Stream:
    """matrix · each group of as many lanes as it has columns, side by side."""
    groups = x.width // matrix.shape[1]
    return sparse.kron(sparse.eye_array(groups), matrix, format="csr") @ x


def tiled(x: Stream, copies: int) -> Stream:
    """The whole stream so many times: lane i of copy k is at k·width + i."""
    return sparse.kron(np.ones((copies, 1)), sparse.eye_array(x.width), format="csr") @ x if copies > 1 else x


def repeated(x: Stream, copies: int) -> Stream:
    """Each lane so many times: copy k of lane i is at i·copies + k."""
    return in_groups(np.ones((copies, 1)), x) if copies > 1 else x


def copies_added(x: Stream, copies: int) -> Stream:
    """The sum of the copies that `tiled` lays out, lane by lane: (width / copies,)."""
    lanes = x.width // copies
    return sparse.kron(np.ones((1, copies)), sparse.eye_array(lanes), format="csr") @ x if copies > 1 else x


def repeats_added(x: Stream, copies: int) -> Stream:
    """The sum of the copies that `repeated` lays out, lane by lane: (width / copies,)."""
    return in_groups(np.ones((1, copies)), x) if copies > 1 else x
