"""The tensors of a `MambaDeltaT` read back as the equations of the block IR, from what the module computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from torch import Tensor

from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.exactness.read_back import Held, csr, same_along


def read(tensors: Mapping[str, Tensor]) -> Held:
    """x, z = in_proj u; x̂ = silu(conv x); B, C = BC_proj x̂; Δ = softplus(dt_proj x̂ + b), of the columns."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    inner, state = arrays["A_log"].shape
    both, ports = csr(arrays["in_proj.weight"]), csr(arrays["BC_proj.weight"])
    return Held(
        rows=both[:inner],
        taps=arrays["conv1d.weight"][:, 0, ::-1].astype(np.float64),
        bias=arrays["conv1d.bias"].astype(np.float64),
        x=sparse.eye_array(inner, format="csr"),
        delta_features=sparse.csr_array((inner, inner)),
        delta_lanes=sparse.csr_array((inner, both.shape[1])),
        delta_bias=np.full(inner, OFF),
        a_log=np.full((inner, 1), KEEP_LOG),
        skip=arrays["D"],
        gate=both[inner:],
        out=csr(arrays["out_proj.weight"].T),
        write=ports[:state],
        read=ports[state:],
        step=csr(arrays["dt_proj.weight"]),
        step_bias=arrays["dt_proj.bias"],
        step_a_log=same_along(arrays["A_log"], 0, "decay of a column for all channels"),
    )
