"""The S4D mixer of Theorem 4 (paper A) as a module of ours: Mamba's block with its selectivity taken out.

Δ, B and C are parameters and do not see the input. No library ships it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from compiler.runtime import selective_scan


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
