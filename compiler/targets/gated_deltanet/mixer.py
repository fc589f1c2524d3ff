"""The gated delta rule as a module of ours, with the equations and tensors of transformers' `OlmoHybridGatedDeltaNet`.

    S ← e^g (I − β k kᵀ) S + β k vᵀ,  o = Sᵀ q/√d_k,  y = RMSNorm(o) · silu(W_g u),  out = W_o y

of each head, the decay first. q, k and v are silu(conv(W u)), q and k divided by their norms; β = c·σ(W_b u);
g = −exp(A_log) · softplus(W_a u + dt_bias). Published by Yang, Kautz, Hatamizadeh 2024.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.runtime.cpu_layers import wide
from compiler.runtime.streaming import convolved
from compiler.targets.gated_deltanet.heads import DeltaSizes

CHUNK = 64
NORM_EPSILON, LENGTH_EPSILON = 1e-5, 1e-6  # of the norm of a head, and of keys and queries


class GatedDeltaNet(nn.Module):
    """d_model: width; heads of d_state rows (keys) and headdim columns (values); largest_beta: c, 1 or 2."""

    def __init__(self, d_model: int, heads: int, d_state: int, headdim: int, d_conv: int = 4, largest_beta: int = 2):
        super().__init__()
        self.heads, self.d_state, self.headdim, self.d_conv = heads, d_state, headdim, d_conv
        self.d_inner, self.largest_beta = heads * headdim, largest_beta
        linear = lambda rows: nn.Linear(d_model, rows, bias=False)
        self.q_proj, self.k_proj, self.v_proj = linear(heads * d_state), linear(heads * d_state), linear(self.d_inner)
        self.a_proj, self.b_proj, self.g_proj = linear(heads), linear(heads), linear(self.d_inner)
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)
        rows = 2 * heads * d_state + self.d_inner
        self.conv1d = nn.Conv1d(rows, rows, d_conv, groups=rows, padding=d_conv - 1, bias=False)
        self.A_log, self.dt_bias = nn.Parameter(torch.zeros(heads)), nn.Parameter(torch.zeros(heads))
        self.o_norm = nn.ParameterDict({"weight": nn.Parameter(torch.ones(headdim))})

    def forward(self, u: Tensor) -> Tensor:
        """(batch, length, d_model) to the same shape."""
        window = u.new_zeros(len(u), self.conv1d.weight.shape[0], self.d_conv)
        state = u.new_zeros(len(u), self.heads, self.d_state, self.headdim, dtype=torch.float32)
        return self.chunk(u, window, state)[0]

    def step(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One position u (b, 1, d_model): its output and the caches after it."""
        return self.chunk(u, window, state)

    def chunk(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The next positions u (b, l, d_model) of sequences with this convolution window (b, rows, d_conv) and state
        (b, heads, d_state, headdim).
        """
        rows = torch.cat([self.q_proj(u), self.k_proj(u), self.v_proj(u)], dim=-1)
        rows, window = convolved(self.conv1d, rows, window)
        keyed = self.heads * self.d_state
        q, k, v = wide(rows).split([keyed, keyed, self.d_inner], dim=-1)
        by_head = lambda m, size: m.unflatten(-1, (self.heads, size)).transpose(1, 2)
        q, k = (_unit(by_head(m, self.d_state)) for m in (q, k))
        beta = wide(torch.sigmoid(self.b_proj(u)) * self.largest_beta).transpose(1, 2)
        g = -torch.exp(self.A_log.float()) * F.softplus(wide(self.a_proj(u)) + self.dt_bias.float())
        o, state = delta_rule(q * self.d_state**-0.5, k, by_head(v, self.headdim), beta, g.transpose(1, 2), state)
        y = self._normed(o.transpose(1, 2).to(u.dtype)) * F.silu(wide(self.g_proj(u)).unflatten(-1, (self.heads, -1)))
        return self.out_proj(y.flatten(-2).to(u.dtype)), window, state

    def _normed(self, o: Tensor) -> Tensor:
        """The norm of each head: float32 inside, rounded to the input's dtype before the weight."""
        unit = wide(o) * torch.rsqrt(wide(o).square().mean(-1, keepdim=True) + NORM_EPSILON)
        return wide(self.o_norm["weight"] * unit.to(o.dtype))


def empty_mixer(size: DeltaSizes) -> GatedDeltaNet:
    """A mixer of this size, its parameters on the meta device."""
    with torch.device("meta"):
        return GatedDeltaNet(size.d_model, size.heads, size.d_state, size.headdim, size.d_conv, size.largest_beta)


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + LENGTH_EPSILON)


def delta_rule(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, state: Tensor, chunk: int = CHUNK
) -> tuple[Tensor, Tensor]:
    """o (b, heads, l, headdim) and the last state, from q, k (b, heads, l, d_state), v, β and g (b, heads, l).

    Within a chunk the writes w solve the unit-triangular system w_i + β_i Σ_{j<i} e^{g(j, i]} <k_i, k_j> w_j =
    β_i (v_i − e^{g(0, i]} S₀ᵀk_i).
    """
    outs = []
    for start in range(0, q.shape[2], chunk):
        q_, k_, v_, b_, g_ = (m[:, :, start : start + chunk] for m in (q, k, v, beta, g))
        total = g_.cumsum(-1)
        length = total.shape[-1]
        later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        between = (total[..., :, None] - total[..., None, :]).masked_fill(later, -torch.inf).exp()
        found = (k_ @ state) * total.exp()[..., None]
        system = b_[..., None] * (k_ @ k_.transpose(-1, -2)) * between
        writes = torch.linalg.solve_triangular(system, b_[..., None] * (v_ - found), upper=False, unitriangular=True)
        outs.append((q_ @ state) * total.exp()[..., None] + ((q_ @ k_.transpose(-1, -2)) * between) @ writes)
        left = (total[..., -1:] - total).exp()[..., None]
        state = state * total[..., -1, None, None].exp() + (k_ * left).transpose(-1, -2) @ writes
    return torch.cat(outs, dim=2), state
