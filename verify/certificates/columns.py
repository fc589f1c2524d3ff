"""Columns certificate: induction heads by one Mamba-Δᵀ block (Lemma 3), at every length.

Statement. For every sequence of the given tokens, the answer at t is the token after the last earlier occurrence of
x_t, or the blank. The proof enumerates every window (previous token or none, present token) through the real module's
`step()`:

1. The block reads two positions only, so that windows are all there is (taps of larger lags are 0).
2. A step is affine in each state entry, h ← a·h + w. It is run from 0 and from S, the largest value ever written: a is
   1 and w is 0 in every column but that of the previous token, where a is 0 and w is the code of the present token. So
   column k holds the code of what followed k last, or 0: by induction, at every length.
3. C is zero outside the column of the present token, so the answer depends on the window and on that column's content.
   All of these pairs are run, and the right token must win strictly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from compiler.artifact.model import Stack
from compiler.targets.mamba_delta_t.mixer import MambaDeltaT
from verify.certificates.certificate import Certificate, Refused, Violated
from verify.certificates.finite import check_finite, lead


@dataclass(frozen=True)
class ColumnsCertificate(Certificate):
    """windows: how many were enumerated; steps: transitions of `step()`; columns: state columns in use."""

    windows: int
    steps: int
    columns: int
    level: ClassVar = "bit-exact"


@torch.no_grad()
def certify_columns(stack: Stack, tokens: Sequence[int], blank: int) -> ColumnsCertificate:
    """Prove induction heads over these token ids; Refused or Violated with the reason."""
    block = _only_block(stack)
    check_finite(stack)
    ids, count = torch.tensor(tokens), len(tokens)
    previous, present = (
        grid.reshape(-1) for grid in torch.meshgrid(torch.arange(-1, count), torch.arange(count), indexing="ij")
    )
    start = _after_previous(stack, ids, previous)
    read = block.out_proj.weight.abs().sum(dim=0) > 0  # channels whose output goes nowhere may hold what they like
    written = _stepped(stack, ids[present], start, 0.0)[1][:, read]
    largest = float(written.abs().max())
    from_largest = _stepped(stack, ids[present], start, largest)[1][:, read]
    codes = torch.zeros(count, block.d_inner)
    codes[:, read] = _check_columns(written, from_largest, previous, present, largest, count)
    _check_reads(block, start, stack, ids[present], present)
    margin, steps = _answers(stack, ids, start, codes, previous, present, blank)
    domain = f"every sequence of {count} tokens, of every length, by step(); float32"
    return ColumnsCertificate(margin, domain, len(present), 2 * len(present) + steps, count)


def _only_block(stack: Stack) -> MambaDeltaT:
    if len(stack.blocks) != 1 or not isinstance(stack.blocks[0], MambaDeltaT) or stack.norms is not None:
        raise Refused("the columns certificate is for one Mamba-Δᵀ block without norms")
    block = stack.blocks[0]
    if block.conv1d.weight[..., :-2].any():
        raise Refused("the block reads more than two positions back")
    return block


def _after_previous(stack: Stack, ids: Tensor, previous: Tensor) -> Tensor:
    """The convolution windows after the previous token of each window, or before the start: (windows, d_inner,
    d_conv).
    """
    (empty, state), *_ = stack.initial_state(len(previous))
    _, after = stack.step(ids[previous.clamp_min(0)], [(empty.clone(), state)])
    return torch.where((previous >= 0)[:, None, None], after[0][0], empty)


def _stepped(stack: Stack, tokens: Tensor, start: Tensor, held: float | Tensor) -> tuple[Tensor, Tensor]:
    """(logits, state) after one step from a state that is `held` everywhere, or as given."""
    state = stack.initial_state(len(tokens))[0][1] + held
    logits, after = stack.step(tokens, [(start.clone(), state)])
    return logits, after[0][1]


def _check_columns(
    zero: Tensor, large: Tensor, previous: Tensor, present: Tensor, largest: float, count: int
) -> Tensor:
    """Step 2; returns the code of every token, (tokens, channels that are read)."""
    own = torch.nn.functional.one_hot(previous.clamp_min(0), zero.shape[2]).bool() & (previous >= 0)[:, None]
    kept = ~own[:, None, :]
    if (zero.masked_select(kept) != 0).any() or (large.masked_select(kept) != largest).any():
        raise Violated("a column other than the previous token's does not stay as it is")
    if not torch.equal(zero.masked_fill(kept, 0), large.masked_fill(kept, 0)):
        raise Violated("the previous token's column remembers what it held before")
    at = previous >= 0
    content = zero[at, :, previous[at]]
    codes = content[present[at].argsort(stable=True)].view(count, count, -1)
    if not torch.equal(codes, codes[:, :1].expand_as(codes)):
        raise Violated("what is stored depends on the previous token")
    return codes[:, 0]


def _check_reads(block: MambaDeltaT, start: Tensor, stack: Stack, tokens: Tensor, present: Tensor) -> None:
    """C, read off the response of y to each column: nothing outside the present token's column."""
    x, _ = block.in_proj(stack.embedding(tokens)).chunk(2, dim=-1)
    seen = torch.cat([start[..., 1:], x[..., None]], dim=-1)
    features = torch.nn.functional.silu((seen * block.conv1d.weight[:, 0]).sum(-1) + block.conv1d.bias)
    reads = block.BC_proj(features).chunk(2, dim=-1)[1]
    outside = torch.nn.functional.one_hot(present, reads.shape[1]) == 0
    if (reads[outside] != 0).any():
        raise Violated("a read sees a column other than the present token's")


def _answers(
    stack: Stack, ids: Tensor, start: Tensor, codes: Tensor, previous: Tensor, present: Tensor, blank: int
) -> tuple[float, int]:
    """(the least lead of the right answer over all others, steps run) over every window and content of the column that
    is read.
    """
    worst, steps = float("inf"), 0
    for content in range(-1, len(ids)):
        at = torch.arange(len(present)) if content < 0 else (previous >= 0).nonzero()[:, 0]
        state = torch.zeros(len(at), codes.shape[1], stack.blocks[0].d_state)
        if content >= 0:
            state[torch.arange(len(at)), :, present[at]] = codes[content]
        logits, _ = _stepped(stack, ids[present[at]], start[at], state)
        stored = ids[content] if content >= 0 else torch.tensor(blank)
        right = torch.where(previous[at] == present[at], ids[present[at]], stored)
        worst, steps = min(worst, lead(logits, right)), steps + len(at)
    return worst, steps
