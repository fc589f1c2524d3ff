"""What a block holds between its projections, from its own weights: x̂, the gate, Δ, B, C, and every state.

The fused forward of the real modules hands out none of this. Here their own submodules compute it (in_proj, the
convolution, x_proj, dt_proj), and the recurrence is the one of their `step()`:

    h_t = exp(Δ_t A) h_{t−1} + Δ_t x̂_t B_t,   y_t = <h_t, C_t> + D x̂_t

Letters: b batch, l length, d d_inner, g groups of B and C, n d_state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Inside:
    """x, gate (before its silu), delta: (b, l, d); A: (d, n); B, C: (b, l, g, n); D: (d,); all float32.

    Channel i belongs to group i // (d / g).
    """

    x: Tensor
    gate: Tensor
    delta: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor

    @cached_property
    def _group(self) -> Tensor:
        channels, groups = self.x.shape[2], self.B.shape[2]
        return torch.arange(channels) // (channels // groups)

    def steps(self, channels: Tensor | None = None) -> Iterator[Tensor]:
        """The state after each position, (b, channels, n), of these channels of d_inner [default: all]."""
        at = torch.arange(self.x.shape[2]) if channels is None else channels
        x, delta, A, group = self.x[:, :, at], self.delta[:, :, at], self.A[at], self._group[at]
        h = x.new_zeros(x.shape[0], len(at), self.A.shape[1])
        driven = delta * x
        for t in range(x.shape[1]):
            h = torch.exp(delta[:, t, :, None] * A) * h + driven[:, t, :, None] * self.B[:, t, group]
            yield h

    def states(self, channels: Tensor | None = None) -> Tensor:
        """All of them: (b, l, channels, n)."""
        return torch.stack(list(self.steps(channels)), dim=1)
