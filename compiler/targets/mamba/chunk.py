"""A `Mamba` on the next positions of sequences: what its forward does, from and to the caches of its `step()`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.runtime.block import Block
from compiler.runtime.selective_scan import selective_scan
from compiler.runtime.streaming import convolved


def mamba_chunk(block: Block, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """u (b, l, d_model): the output, and the convolution window and state after it."""
    x, z = block.in_proj(u).chunk(2, dim=-1)
    x, window = convolved(block.conv1d, x, window)
    dt, B, C = block.x_proj(x).split([block.dt_rank, block.d_state, block.d_state], dim=-1)
    x, dt, B, C, z = (m.transpose(1, 2) for m in (x, F.linear(dt, block.dt_proj.weight), B, C, z))
    A = -torch.exp(block.A_log.float())
    y, state = selective_scan(x, dt, A, B, C, block.D.float(), z, block.dt_proj.bias.float(), True, True, state)
    return block.out_proj(y.transpose(1, 2)), window, state
