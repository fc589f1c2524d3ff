"""Sequences of any length in constant memory: a stack runs chunk by chunk, its caches carried from one to the next.

The modules of mamba_ssm take either a whole sequence or, in `step()`, one position; between the two they have nothing.
`advance` does what their forward does, on a chunk: same weights, same caches as `step()` (so the two may alternate),
same bits wherever the circuit is exact.

Letters: b batch, l length of the chunk, d d_inner, w taps of the convolution, n d_state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.runtime.block import Block
from compiler.runtime.cpu_layers import wide
from compiler.runtime.selective_scan import selective_scan
from compiler.runtime.ssd import ssd_scan

if TYPE_CHECKING:
    from compiler.artifact.model import Stack

Caches = list[tuple[Tensor, Tensor]]


@torch.no_grad()
def advance(stack: Stack, tokens: Tensor, caches: Caches) -> tuple[Tensor, Caches]:
    """The next tokens (b, l) of sequences whose past is in the caches: scores (b, l, vocab) and the caches
    after them.
    """
    stream, after = stack._embed(tokens), []
    for norm, block, cache in zip(stack._norms(), stack.blocks, caches, strict=True):
        out, window, state = _chunk(block, norm(stream), *cache)
        stream = stack._add(stream, out)
        after.append((window, state))
    return stack.logits(stream), after


def stream_scores(stack: Stack, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
    """The scores of each chunk (b, l) of long sequences, from their start; only one chunk is held at a time."""
    caches: Caches | None = None
    for tokens in chunks:
        caches = stack.initial_state(tokens.shape[0]) if caches is None else caches
        scores, caches = advance(stack, tokens, caches)
        yield scores


def _chunk(block: Block, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """u (b, l, d_model) through one block: its output, and the convolution window and state after it."""
    if hasattr(block, "chunk"):  # the mixers of ours
        return block.chunk(u, window, state)
    return (_mamba2_chunk if hasattr(block, "headdim") else _mamba_chunk)(block, u, window, state)


def convolved(conv: nn.Conv1d, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
    """silu(conv(x)) of x (b, l, d) after a window (b, d, w) of what came before, and the window after it."""
    past = torch.cat([window, x.transpose(1, 2)], dim=2)
    taps = conv.kernel_size[0]
    seen = past[..., -(x.shape[1] + taps - 1) :]
    y = F.silu(F.conv1d(wide(seen), wide(conv.weight), wide(conv.bias), groups=x.shape[-1]))
    return y.to(x.dtype).transpose(1, 2), past[..., -taps:]


def _mamba_chunk(block, u, window, state):
    x, z = block.in_proj(u).chunk(2, dim=-1)
    x, window = convolved(block.conv1d, x, window)
    dt, B, C = block.x_proj(x).split([block.dt_rank, block.d_state, block.d_state], dim=-1)
    x, dt, B, C, z = (m.transpose(1, 2) for m in (x, F.linear(dt, block.dt_proj.weight), B, C, z))
    A = -torch.exp(block.A_log.float())
    y, state = selective_scan(x, dt, A, B, C, block.D.float(), z, block.dt_proj.bias.float(), True, True, state)
    return block.out_proj(y.transpose(1, 2)), window, state


def _mamba2_chunk(block, u, window, state):
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
