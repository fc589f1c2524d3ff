"""What a `Mamba` holds between its projections, by its own submodules."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.runtime.block import Block
from compiler.runtime.inside import Inside
from compiler.runtime.streaming import convolved


def mamba_inside(block: Block, u: Tensor) -> Inside:
    """u (b, l, d_model): the block's input, behind the norm."""
    x, z = block.in_proj(u).chunk(2, dim=-1)
    x, _ = convolved(block.conv1d, x, x.new_zeros(len(u), block.d_inner, block.d_conv))
    dt, B, C = block.x_proj(x).split([block.dt_rank, block.d_state, block.d_state], dim=-1)
    delta = F.softplus((F.linear(dt, block.dt_proj.weight) + block.dt_proj.bias).float())
    A = -torch.exp(block.A_log.float())
    return Inside(x.float(), z.float(), delta, A, B.float()[:, :, None], C.float()[:, :, None], block.D.float())
