"""What a mixer of transformers computes, taken apart: the recurrence of each channel, and what stands around it.

One form for Mamba and Mamba-2: state(t) = exp(Δ(t)·A) ∘ state(t−1) + Δ(t)·x̂(t)·B(t), and C(t)·state(t) + D·x̂(t) is put
out, times silu of the gate. On Mamba-2 the channels of a head share Δ, A and D, those of a group share B and C, and a
norm follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus


@dataclass(frozen=True, eq=False)
class Recurrence:
    """Of n inputs. x, gate (before silu), delta: (n, time, d_inner); decay: A, (d_inner, d_state or 1); write, read: B
    and C, (n, time, d_inner or 1, d_state); skip: D, (d_inner).
    """

    x: Tensor
    gate: Tensor
    delta: Tensor
    decay: Tensor
    write: Tensor
    read: Tensor
    skip: Tensor

    def scanned(self) -> Tensor:
        """What the state and the skip path put out, before the gate: (n, time, d_inner)."""
        state, found = torch.zeros(()), []
        for t in range(self.x.shape[1]):
            kept = torch.exp(self.delta[:, t, :, None] * self.decay)
            state = kept * state + (self.delta[:, t] * self.x[:, t])[..., None] * self.write[:, t]
            found.append((state * self.read[:, t]).sum(dim=-1))
        return torch.stack(found, dim=1) + self.skip * self.x

    def attention(self) -> Tensor:
        """The hidden attention of each channel (Ali et al., 2024): (n, d_inner, time, time), C(i) · Π exp(Δ(k)·A) ·
        Δ(j)·B(j) over j < k ≤ i, so that it times x̂ is what the state puts out.
        """
        total = (self.delta[..., None] * self.decay).double().cumsum(dim=1)  # ≤ 0, and falling
        found = self.x.new_zeros(self.x.shape[0], self.x.shape[2], self.x.shape[1], self.x.shape[1])
        for i in range(self.x.shape[1]):
            kept = torch.exp(total[:, i, None] - total[:, : i + 1])  # (n, j, d_inner, columns)
            part = (self.read[:, i, None] * kept * self.write[:, : i + 1]).sum(dim=-1) * self.delta[:, : i + 1]
            found[:, :, i, : i + 1] = part.transpose(1, 2)
        return found


def silu(x: Tensor) -> Tensor:
    """silu, whose gradient is that of a product with a constant factor."""
    return x * torch.sigmoid(x).detach()


def mixers(model: Any, method: str) -> list[Any]:
    """The mixers of a model in order; ValueError where one is neither Mamba's nor Mamba-2's."""
    found = [m for m in model.modules() if hasattr(m, "out_proj")]
    if not found or not all(hasattr(m, "x_proj") or hasattr(m, "dt_bias") and hasattr(m, "head_dim") for m in found):
        raise ValueError(f"{method} knows the blocks of Mamba and Mamba-2, and {type(model).__name__} has others.")
    return found


def recurrence(mixer: Any, given: Tensor) -> Recurrence:
    """Of a mixer and its input (n, time, d_model), from the mixer's own weights. Δ, A, B and C carry no gradient."""
    return _mamba(mixer, given) if hasattr(mixer, "x_proj") else _mamba2(mixer, given)


def _mamba(mixer: Any, given: Tensor) -> Recurrence:
    x, gate = mixer.in_proj(given).chunk(2, dim=-1)
    x = _convolved(mixer, x)
    rank, columns = mixer.time_step_rank, mixer.ssm_state_size
    steps, write, read = mixer.x_proj(x).detach().split([rank, columns, columns], dim=-1)
    delta = softplus(mixer.dt_proj(steps)).detach()
    decay = -torch.exp(mixer.A_log.detach().float())
    return Recurrence(x, gate, delta, decay, write[:, :, None], read[:, :, None], mixer.D)


def _mamba2(mixer: Any, given: Tensor) -> Recurrence:
    inner, columns = mixer.intermediate_size, mixer.n_groups * mixer.ssm_state_size
    gate, mixed, steps = mixer.in_proj(given).split([inner, mixer.conv_dim, mixer.num_heads], dim=-1)
    x, write, read = _convolved(mixer, mixed).split([inner, columns, columns], dim=-1)
    delta = softplus(steps + mixer.dt_bias).clamp(*mixer.time_step_limit).detach()
    of_head = lambda one: one.repeat_interleave(mixer.head_dim, dim=-1)
    of_group = lambda one: (
        one.detach().unflatten(-1, (mixer.n_groups, -1)).repeat_interleave(inner // mixer.n_groups, dim=2)
    )
    decay = -torch.exp(mixer.A_log.detach().float())
    return Recurrence(
        x, gate, of_head(delta), of_head(decay)[:, None], of_group(write), of_group(read), of_head(mixer.D)
    )


def _convolved(mixer: Any, x: Tensor) -> Tensor:
    return silu(mixer.conv1d(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
