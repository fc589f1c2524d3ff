"""The tensors of an `S4DMixer` read back as the equations of the block IR, from what the module computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from torch import Tensor

from compiler.exactness.read_back import Held, csr, same_along


def read(tensors: Mapping[str, Tensor]) -> Held:
    """As Mamba, but Δ = softplus(dt_bias), and B and C are parameters: multiples of one more feature, which is 1."""
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    inner, state = arrays["A_log"].shape
    both, always = csr(arrays["in_proj.weight"]), inner
    d_model, taps = both.shape[1], arrays["conv1d.weight"][:, 0, ::-1]

    def constant(name: str) -> sparse.csr_array:
        values = same_along(arrays[name], 0, f"{name} for all channels")
        return sparse.csr_array((values, (np.arange(state), np.full(state, always))), shape=(state, inner + 1))

    return Held(
        rows=sparse.vstack([both[:inner], sparse.csr_array((1, d_model))], format="csr"),
        taps=np.vstack([taps, np.zeros(taps.shape[1])]),
        bias=np.append(arrays["conv1d.bias"], 1.0),
        x=sparse.eye_array(inner, inner + 1, format="csr"),
        delta_features=sparse.csr_array((inner, inner + 1)),
        delta_lanes=sparse.csr_array((inner, d_model)),
        delta_bias=arrays["dt_bias"],
        a_log=same_along(arrays["A_log"], 1, "decay for all columns of a channel")[:, None],
        skip=arrays["D"],
        gate=both[inner:],
        out=csr(arrays["out_proj.weight"].T),
        write=constant("B"),
        read=constant("C"),
    )
