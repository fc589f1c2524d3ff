"""From exact float64 arrays to float32 tensors, or not at all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy import sparse

from compiler.analysis.exact_matrices import row_numbers
from compiler.errors import CompileError

LEAST, LARGEST = 2.0**-149, 2.0**128  # of float32, subnormal numbers included


def exact_float32(array: np.ndarray, name: str) -> torch.Tensor:
    """The float32 tensor equal to the array; CompileError when a weight is not representable."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(array, dtype=np.float32)
    wrong = single != array
    if wrong.any():
        value = float(np.asarray(array)[wrong][0])
        if LEAST <= abs(value) < LARGEST:
            why = "which no float32 holds exactly; use dyadic weights of at most 24 bits"
        else:
            why = "and float32 reaches from 2^-149 to 2^128; use numbers that are less small or large"
        raise CompileError([(None, f"{name} would need the weight {value!r}, {why}")])
    return torch.from_numpy(single)


def exact_tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """A state dict of float32 tensors equal to the arrays; CompileError names the first that has none."""
    return {name: exact_float32(array, name) for name, array in arrays.items()}


def put(target: np.ndarray, matrix: sparse.csr_array, column_of: np.ndarray, row_of: np.ndarray | None = None) -> None:
    """target[row_of[i], column_of[j]] += matrix[i, j]; rows keep their place where row_of is None."""
    columns, rows = column_of[matrix.indices], row_numbers(matrix)
    if (columns < 0).any():
        raise AssertionError("a weight was placed on a lane that the block does not have")
    np.add.at(target, (rows if row_of is None else row_of[rows], columns), matrix.data)
