"""Target S4D: the mixer of Theorem 4 (paper A) as a module of ours.

The block of Mamba with its selectivity taken out: Δ, B and C are parameters and do not
see the input. No library ships it; the same circuit as an unmodified Mamba with constant
Δ, B, C is printed by `targets/mamba.py`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.ir.block import Block
from compiler.runtime import selective_scan
from compiler.targets.mamba import MambaSizes
from compiler.targets.tensors import exact_tensors, put


class S4DMixer(nn.Module):
    """x = silu(conv(W_x u)); h ← exp(ΔA) h + Δ B x; y = C h + D x; out = W_out (y · silu(W_z u)).

    d_model, d_inner, d_state, d_conv as in Mamba; dt_bias (d_inner,) is softplus⁻¹ of Δ;
    A_log, B, C: (d_inner, d_state); D: (d_inner,).
    """

    def __init__(self, d_model: int, d_inner: int, d_state: int, d_conv: int = 4):
        super().__init__()
        self.in_proj = nn.Linear(d_model, 2 * d_inner, bias=False)
        self.conv1d = nn.Conv1d(d_inner, d_inner, d_conv, groups=d_inner, padding=d_conv - 1)
        self.dt_bias = nn.Parameter(torch.zeros(d_inner))
        self.A_log = nn.Parameter(torch.zeros(d_inner, d_state))
        self.B = nn.Parameter(torch.ones(d_inner, d_state))
        self.C = nn.Parameter(torch.ones(d_inner, d_state))
        self.D = nn.Parameter(torch.zeros(d_inner))
        self.out_proj = nn.Linear(d_inner, d_model, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        """(batch, length, d_model) to the same shape."""
        x, z = self.in_proj(u).transpose(1, 2).chunk(2, dim=1)
        x = nn.functional.silu(self.conv1d(x)[..., : u.shape[1]])
        delta = torch.zeros_like(x)
        a = -torch.exp(self.A_log.float())
        b, c = (m[None, :, :, None].expand(*x.shape[:2], -1, x.shape[2]) for m in (self.B, self.C))
        y = selective_scan(
            x, delta, a, b, c, D=self.D.float(), z=z, delta_bias=self.dt_bias.float(), delta_softplus=True
        )
        return self.out_proj(y.transpose(1, 2))


def sizes(block: Block, n_lanes: int) -> MambaSizes:
    """The least sizes of the mixer: its columns are parameters, so only channels with a record count."""
    return MambaSizes(n_lanes, len(block.channels.names), max(1, block.d_state), 1, block.features.taps.shape[1])


def emit(block: Block, size: MambaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> dict:
    """The state dict of an S4DMixer of this size: {name: float32 tensor}."""
    features, channels, inner = block.features, block.channels, size.d_inner
    used = len(channels.names)
    in_proj, conv = np.zeros((2 * inner, size.d_model)), np.zeros((inner, 1, size.d_conv))
    put(in_proj[:used], features.rows[channels.feature], lane_in)
    put(in_proj[inner : inner + used], channels.gate, lane_in)
    conv[:used, 0, :] = features.taps[channels.feature][:, ::-1]
    bias, dt_bias, skip = np.zeros(inner), np.full(inner, OFF), np.zeros(inner)
    bias[:used], dt_bias[:used], skip[:used] = features.bias[channels.feature], channels.delta_bias, channels.skip
    write, read = _constants(block, size.d_state)
    out_proj = np.zeros((inner, size.d_model))
    put(out_proj[:used], channels.out, lane_out)
    arrays = {
        "in_proj.weight": in_proj,
        "conv1d.weight": conv,
        "conv1d.bias": bias,
        "dt_bias": dt_bias,
        "A_log": np.full((inner, size.d_state), KEEP_LOG),
        "B": np.tile(write, (inner, 1)),
        "C": np.tile(read, (inner, 1)),
        "D": skip,
        "out_proj.weight": out_proj.T,
    }
    return exact_tensors(arrays)


def _constants(block: Block, d_state: int) -> tuple[np.ndarray, np.ndarray]:
    """B and C as numbers: every column of this target is a multiple of the feature that is always on."""
    on = block.features.bias
    write, read = np.zeros(d_state), np.zeros(d_state)
    write[: block.d_state] = block.columns.write @ on
    read[: block.d_state] = block.columns.read @ on
    return write, read
