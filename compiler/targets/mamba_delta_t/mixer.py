"""The Mamba-Δᵀ mixer (paper A, equation 15) as a module of ours: Δ varies along the state, not along the channels.

Δ does not scale what is written:

    h_t = exp(Λ ⊙ (1 ⊗ Δ_t)) ⊙ h_{t−1} + x̂_t ⊗ B_t,   y_t = h_t C_t + D ⊙ x̂_t.

The paper prints no D. Its gate is that of (14g), which the proof of Lemma 3 does not use and Appendix D.4 disables. D
is that of `mamba_ssm`. No library ships this mixer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from compiler.runtime.block import Convolution
from compiler.runtime.cpu_layers import wide
from compiler.runtime.streaming import convolved


class MambaDeltaT(nn.Module):
    """x̂ = silu(conv(W_x u)); Δ = softplus(W_Δ x̂ + b), B = W_B x̂, C = W_C x̂; the state above.

    Out = W_out (y · silu(W_z u)).

    dt_proj: (d_inner → d_state, with bias); A_log: (d_inner, d_state), Λ = −exp(A_log); D: (d_inner,).
    """

    def __init__(self, d_model: int, d_inner: int, d_state: int, d_conv: int = 4):
        super().__init__()
        self.d_inner, self.d_state, self.d_conv = d_inner, d_state, d_conv
        self.in_proj = nn.Linear(d_model, 2 * d_inner, bias=False)
        self.conv1d = Convolution(d_inner, d_inner, d_conv, groups=d_inner, padding=d_conv - 1)
        self.dt_proj = nn.Linear(d_inner, d_state)
        self.BC_proj = nn.Linear(d_inner, 2 * d_state, bias=False)
        self.A_log = nn.Parameter(torch.zeros(d_inner, d_state))
        self.D = nn.Parameter(torch.zeros(d_inner))
        self.out_proj = nn.Linear(d_inner, d_model, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        """(batch, length, d_model) to the same shape."""
        window, state = self.D.new_zeros(len(u), self.d_inner, self.d_conv), self.D.new_zeros(len(u), *self.A_log.shape)
        return self.chunk(u, window, state)[0]

    def chunk(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The next positions u (b, l, d_model) of sequences with this convolution window (b, d_inner, d_conv) and
        state.
        """
        x, z = self.in_proj(u).chunk(2, dim=-1)
        x, window = convolved(self.conv1d, x, window)
        y, state = self._scan(x, state)
        y = (y + self.D * wide(x)) * nn.functional.silu(wide(z))  # rounded once, as the kernels of Mamba do
        return self.out_proj(y.to(u.dtype)), window, state

    def _scan(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """x̂ (b, l, d_inner) and h (b, d_inner, d_state) to y (b, l, d_inner) and the last state."""
        delta = nn.functional.softplus(wide(self.dt_proj(x)))
        b, c = wide(self.BC_proj(x)).chunk(2, dim=-1)
        x = wide(x)
        decay = -torch.exp(self.A_log.float())
        ys = []
        for t in range(x.shape[1]):
            h = torch.exp(decay * delta[:, t, None, :]) * h + x[:, t, :, None] * b[:, t, None, :]
            ys.append((h * c[:, t, None, :]).sum(-1))
        return torch.stack(ys, dim=1), h

    def step(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One position u (b, 1, d_model): its output and the caches after it."""
        return self.chunk(u, window, state)
