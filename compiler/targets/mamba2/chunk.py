"""A `Mamba2` on the next positions of sequences: what its forward does, from and to the caches of its `step()`."""

from __future__ import annotations

import torch
from torch import Tensor

from compiler.runtime.block import Block
from compiler.runtime.ssd import ssd_scan
from compiler.runtime.streaming import convolved


def mamba2_chunk(block: Block, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """u (b, l, d_model): the output, and the convolution window and state after it."""
    columns = block.ngroups * block.d_state
    z, xBC, dt = block.in_proj(u).split([block.d_ssm, block.d_ssm + 2 * columns, block.nheads], dim=-1)
    xBC, window = convolved(block.conv1d, xBC, window)
    x, B, C = xBC.split([block.d_ssm, columns, columns], dim=-1)
    heads = lambda m: m.unflatten(-1, (block.nheads, -1))
    y, state = ssd_scan(
        heads(x),
        dt,
        -torch.exp(block.A_log.float()),
        B.unflatten(-1, (block.ngroups, -1)),
        C.unflatten(-1, (block.ngroups, -1)),
        block.chunk_size,
        D=block.D,
        z=None if block.rmsnorm else heads(z),
        dt_bias=block.dt_bias,
        initial_states=state,
        dt_softplus=True,
        dt_limit=block.dt_limit,
        return_final_states=True,
    )
    y = y.flatten(-2)
    return block.out_proj(block.norm(y, z) if block.rmsnorm else y), window, state
