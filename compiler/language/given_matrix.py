"""A matrix as an author gives it: exact numbers, or one sentence that says which entry is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from compiler.language.arguments import number, shown
from compiler.language.operations.exact import exact_matrix, is_dyadic, no_weight

_REAL = "biuf"  # kinds of NumPy numbers that a weight can be


def given_matrix(matrix: object, what: str, axes: tuple[str, str]) -> sparse.csr_array:
    """The matrix, every entry exact; TypeError or ValueError for what is none.

    what: its name for messages; axes: what its rows and its columns are.
    """
    table: Any = matrix if sparse.issparse(matrix) else _array(matrix, what)
    needed = f"({', '.join(axes)})"
    if not table.ndim:
        raise TypeError(f"{what} is {shown(matrix)}, and a matrix of {needed} numbers is needed")
    if table.ndim != 2:
        raise ValueError(f"{what} has {table.ndim} axes, and two are needed: {needed}")
    if not all(table.shape):
        raise ValueError(f"{what} has the shape {table.shape}, and at least one row and one column are needed")
    for place, entry in _doubtful(table):
        name = f"entry {list(map(int, place))} of {what}"
        exact = number(entry, name)
        if not is_dyadic(exact):
            raise ValueError(f"{name}: {no_weight(exact)}")
    return exact_matrix(table)


def _array(matrix: object, what: str) -> np.ndarray:
    try:
        return np.asarray(matrix)
    except ValueError:  # NumPy's word for it is "inhomogeneous"
        raise ValueError(f"{what} is {shown(matrix)}, and rows of as many numbers each are needed") from None


def _doubtful(table: Any) -> Iterable[tuple[Iterable[int], object]]:
    """The entries that may be no finite numbers, each with its place."""
    if sparse.issparse(table):
        entries = table.tocoo()
        places, held = np.transpose(entries.coords), entries.data
    else:
        places, held = None, np.asarray(table)
    doubtful = ~np.isfinite(held) if held.dtype.kind in _REAL else np.ones(held.shape, dtype=bool)
    for index in np.argwhere(doubtful):
        entry = held[tuple(index)]
        place = index if places is None else places[index[0]]
        yield place, entry.item() if isinstance(entry, np.generic) else entry
