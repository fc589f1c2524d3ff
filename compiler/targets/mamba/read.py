"""The tensors of a `mamba_ssm.Mamba` read back as the equations of the block IR, from what the module computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from torch import Tensor

from compiler.exactness.read_back import Held, csr


def read(tensors: Mapping[str, Tensor]) -> Held:
    """x, z = in_proj u; x̂ = silu(conv x); δ, B, C = x_proj x̂; Δ = softplus(dt_proj δ + b); out_proj (y · silu z)."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    inner, state = arrays["A_log"].shape
    both, ports = csr(arrays["in_proj.weight"]), csr(arrays["x_proj.weight"])
    rank = ports.shape[0] - 2 * state
    return Held(
        rows=both[:inner],
        taps=arrays["conv1d.weight"][:, 0, ::-1].astype(np.float64),
        bias=arrays["conv1d.bias"].astype(np.float64),
        x=sparse.eye_array(inner, format="csr"),
        delta_features=csr(arrays["dt_proj.weight"]) @ ports[:rank],
        delta_lanes=sparse.csr_array((inner, both.shape[1])),
        delta_bias=arrays["dt_proj.bias"],
        a_log=arrays["A_log"].astype(np.float64),
        skip=arrays["D"],
        gate=both[inner:],
        out=csr(arrays["out_proj.weight"].T),
        write=ports[rank : rank + state],
        read=ports[rank + state :],
    )
