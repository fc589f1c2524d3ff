"""From exact float64 arrays to float32 tensors, or not at all."""

from __future__ import annotations

import numpy as np
import torch

from compiler.errors import CompileError


def exact_float32(array: np.ndarray, name: str) -> torch.Tensor:
    """The float32 tensor equal to the array; CompileError when a weight is not representable."""
    single = np.ascontiguousarray(array, dtype=np.float32)
    if not np.array_equal(single.astype(np.float64), array):
        worst = array[np.argwhere(single != array)[0][0]]
        raise CompileError([(None, f"{name} has a weight that float32 does not hold exactly ({np.ravel(worst)[0]!r}); weights must be dyadic")])
    return torch.from_numpy(single)
