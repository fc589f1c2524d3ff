"""Target Mamba-Δᵀ: the mixer of Lemma 3 (paper A, equation 15) as a module of ours.

The block of Mamba in which Δ varies along the state, not along the channels, and does not
scale what is written:

    h_t = exp(Λ ⊙ (1 ⊗ Δ_t)) ⊙ h_{t−1} + x̂_t ⊗ B_t,   y_t = h_t C_t + D ⊙ x̂_t.

The paper prints no D and no gate; both are those of Mamba. No library ships this mixer.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from compiler.exactness.levels import ERASE_LOG, KEEP_LOG, OFF
from compiler.ir.block import Block
from compiler.runtime.streaming import convolved
from compiler.targets.mamba import MambaSizes
from compiler.targets.tensors import exact_tensors, put


class MambaDeltaT(nn.Module):
    """x̂ = silu(conv(W_x u)); Δ = softplus(W_Δ x̂ + b), B = W_B x̂, C = W_C x̂; the state above; out = W_out (y · silu(W_z u)).

    dt_proj: (d_inner → d_state, with bias); A_log: (d_inner, d_state), Λ = −exp(A_log); D: (d_inner,).
    """

    def __init__(self, d_model: int, d_inner: int, d_state: int, d_conv: int = 4):
        super().__init__()
        self.d_inner, self.d_state, self.d_conv = d_inner, d_state, d_conv
        self.in_proj = nn.Linear(d_model, 2 * d_inner, bias=False)
        self.conv1d = nn.Conv1d(d_inner, d_inner, d_conv, groups=d_inner, padding=d_conv - 1)
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
        """The next positions u (b, l, d_model) of sequences with this convolution window (b, d_inner, d_conv) and state."""
        x, z = self.in_proj(u).chunk(2, dim=-1)
        x, window = convolved(self.conv1d, x, window)
        y, state = self._scan(x, state)
        return self.out_proj((y + self.D * x) * nn.functional.silu(z)), window, state

    def _scan(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """x̂ (b, l, d_inner) and h (b, d_inner, d_state) to y (b, l, d_inner) and the last state."""
        delta = nn.functional.softplus(self.dt_proj(x))
        b, c = self.BC_proj(x).chunk(2, dim=-1)
        decay = -torch.exp(self.A_log.float())
        ys = []
        for t in range(x.shape[1]):
            h = torch.exp(decay * delta[:, t, None, :]) * h + x[:, t, :, None] * b[:, t, None, :]
            ys.append((h * c[:, t, None, :]).sum(-1))
        return torch.stack(ys, dim=1), h

    def step(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One position u (b, 1, d_model): its output and the caches after it."""
        return self.chunk(u, window, state)


def sizes(block: Block, n_lanes: int) -> MambaSizes:
    """The least sizes of the mixer: its ports read every feature, so each feature is a channel, and Δ has full rank."""
    return MambaSizes(
        n_lanes, len(_wiring(block)[0]), max(1, block.d_state), max(1, block.d_state), block.features.taps.shape[1]
    )


def _wiring(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """(the feature of each channel of d_inner, a channel that computes each feature)."""
    channels, columns = block.channels, block.columns
    used = np.zeros(len(block.features.names), dtype=bool)
    for ports in (columns.write, columns.read, columns.step):
        used[ports.indices if ports is not None else []] = True
    used[channels.feature] = False
    feature = np.concatenate([channels.feature, np.flatnonzero(used)])
    channel_of = np.full(len(used), -1)
    channel_of[feature[::-1]] = np.arange(len(feature))[::-1]
    return feature, channel_of


def emit(block: Block, size: MambaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> dict:
    """The state dict of a MambaDeltaT of this size: {name: float32 tensor}.

    lane_in, lane_out: (L,) the coordinate of d_model that carries each lane before and after
    the block, −1 where it is not there. Columns beyond those in use never write: their B is 0.
    """
    features, channels, columns = block.features, block.channels, block.columns
    feature, channel_of = _wiring(block)
    used, recorded, inner, state, n = len(feature), len(channels.names), size.d_inner, size.d_state, block.d_state
    in_proj, conv, conv_bias = np.zeros((2 * inner, size.d_model)), np.zeros((inner, 1, size.d_conv)), np.zeros(inner)
    put(in_proj[:used], features.rows[feature], lane_in)
    put(in_proj[inner : inner + recorded], channels.gate, lane_in)
    conv[:used, 0, :] = features.taps[feature][:, ::-1]
    conv_bias[:used] = features.bias[feature]
    columns_in, step, step_bias = np.zeros((2 * state, inner)), np.zeros((state, inner)), np.full(state, OFF)
    a_log = np.full((inner, state), KEEP_LOG)
    if n:
        put(columns_in[:n], columns.write, channel_of)
        put(columns_in[state : state + n], columns.read, channel_of)
        put(step[:n], columns.step, channel_of)
        step_bias[:n] = columns.step_bias
        a_log[:, :n] = ERASE_LOG
    skip, out_proj = np.zeros(inner), np.zeros((inner, size.d_model))
    skip[:recorded] = channels.skip
    put(out_proj[:recorded], channels.out, lane_out)
    arrays = {
        "in_proj.weight": in_proj,
        "conv1d.weight": conv,
        "conv1d.bias": conv_bias,
        "dt_proj.weight": step,
        "dt_proj.bias": step_bias,
        "BC_proj.weight": columns_in,
        "A_log": a_log,
        "D": skip,
        "out_proj.weight": out_proj.T,
    }
    return exact_tensors(arrays)
