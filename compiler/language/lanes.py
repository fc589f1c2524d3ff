"""Copies and sums of whole lanes, as sparse linear maps: NumPy's tile and repeat, over the lanes of a stream."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from compiler.language.stream import Stream


def placed(x: Stream, places: np.ndarray, width: int) -> Stream:
    """The lanes of x at these places of a stream of this width, 0 in between."""
    entries = (np.ones(len(places)), (places, np.arange(len(places))))
    return sparse.csr_array(entries, shape=(width, len(places))) @ x


def tiled(x: Stream, copies: int) -> Stream:
    """The whole stream so many times: lane i of copy k is at k·width + i."""
    return sparse.kron(np.ones((copies, 1)), sparse.eye_array(x.width), format="csr") @ x if copies > 1 else x


def repeated(x: Stream, copies: int) -> Stream:
    """Each lane so many times: copy k of lane i is at i·copies + k."""
    return sparse.kron(sparse.eye_array(x.width), np.ones((copies, 1)), format="csr") @ x if copies > 1 else x


def copies_added(x: Stream, copies: int) -> Stream:
    """The sum of the copies that `tiled` lays out, lane by lane: (width / copies,)."""
    lanes = x.width // copies
    return sparse.kron(np.ones((1, copies)), sparse.eye_array(lanes), format="csr") @ x if copies > 1 else x


def repeats_added(x: Stream, copies: int) -> Stream:
    """The sum of the copies that `repeated` lays out, lane by lane: (width / copies,)."""
    lanes = x.width // copies
    return sparse.kron(sparse.eye_array(lanes), np.ones((1, copies)), format="csr") @ x if copies > 1 else x
