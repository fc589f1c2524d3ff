"""The tensors of a `mamba_ssm.Mamba2` read back as the equations of the block IR, from what the module computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from torch import Tensor

from compiler.exactness.read_back import Held, csr


def read(tensors: Mapping[str, Tensor], headdim: int) -> Held:
    """z, (x, B, C), δ = in_proj u; x̂, B, C = silu(conv (x, B, C)); headdim channels share Δ = softplus(δ + b)."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    inner, convolved = arrays["out_proj.weight"].shape[1], arrays["conv1d.bias"].shape[0]
    state, head_of = (convolved - inner) // 2, np.arange(inner) // headdim
    every, feature = csr(arrays["in_proj.weight"]), sparse.eye_array(convolved, format="csr")
    return Held(
        rows=every[inner : inner + convolved],
        taps=arrays["conv1d.weight"][:, 0, ::-1].astype(np.float64),
        bias=arrays["conv1d.bias"].astype(np.float64),
        x=feature[:inner],
        delta_features=sparse.csr_array((inner, convolved)),
        delta_lanes=every[inner + convolved :][head_of],
        delta_bias=arrays["dt_bias"][head_of],
        a_log=arrays["A_log"][head_of, None].astype(np.float64),
        skip=arrays["D"][head_of],
        gate=every[:inner],
        out=csr(arrays["out_proj.weight"].T),
        write=feature[inner : inner + state],
        read=feature[inner + state :],
    )
