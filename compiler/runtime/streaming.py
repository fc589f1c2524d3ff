"""Sequences of any length in constant memory: a stack runs chunk by chunk, its caches carried from one to the next.

The modules of mamba_ssm take either a whole sequence or, in `step()`, one position; between the two they have nothing.
`Target.advance` does what their forward does, on a chunk: same weights, same caches as `step()` (so the two may
alternate), same bits wherever the circuit is exact.

Letters: b batch, l length of the chunk, d d_inner, w taps of the convolution, n d_state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.runtime.cpu_layers import wide
from compiler.targets import target_running

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
        out, window, state = target_running(block).advance(block, norm(stream), *cache)
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


def convolved(conv: nn.Conv1d, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
    """silu(conv(x)) of x (b, l, d) after a window (b, d, w) of what came before, and the window after it."""
    past = torch.cat([window, x.transpose(1, 2)], dim=2)
    taps = conv.kernel_size[0]
    seen = past[..., -(x.shape[1] + taps - 1) :]
    y = F.silu(F.conv1d(wide(seen), wide(conv.weight), wide(conv.bias), groups=x.shape[-1]))
    return y.to(x.dtype).transpose(1, 2), past[..., -taps:]
