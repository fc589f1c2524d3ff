"""What a `Mamba2` holds between its projections, by its own submodules."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.runtime.block import Block
from compiler.runtime.inside import Inside
from compiler.runtime.streaming import convolved


def mamba2_inside(block: Block, u: Tensor) -> Inside:
    """u (b, l, d_model): the block's input, behind the norm. What heads share is repeated for their channels."""
    columns = block.ngroups * block.d_state
    z, xBC, dt = block.in_proj(u).split([block.d_ssm, block.d_ssm + 2 * columns, block.nheads], dim=-1)
    xBC, _ = convolved(block.conv1d, xBC, xBC.new_zeros(len(u), xBC.shape[-1], block.d_conv))
    x, B, C = xBC.float().split([block.d_ssm, columns, columns], dim=-1)
    delta = F.softplus(dt.float() + block.dt_bias.float()).clamp(*block.dt_limit)
    each = lambda m: m.repeat_interleave(block.headdim, dim=-1)
    A = -torch.exp(block.A_log.float())
    D = block.D.float().reshape(-1) if block.D_has_hdim else each(block.D.float())
    B, C = (m.unflatten(-1, (block.ngroups, -1)) for m in (B, C))
    return Inside(x, z.float(), each(delta), each(A)[:, None].expand(-1, block.d_state), B, C, D)
