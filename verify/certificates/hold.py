"""Hold certificate: a two-block model keeps the n-th token for ever, at every length, past the saturation of its count.

Statement. Let block 1 count positions and block 2 be latches whose step Δ sees that count alone. Then y_t = x_n for
every t ≥ n. The proof runs the real module's `step()` and reads the weights at the Δ ports (`counted.py` for the count
and its ramps):

1. The count is the same whatever the tokens are: every token is tried at each t ≤ n.
2. At t ≤ n every latch forgets what it held: each channel comes from 0 and from the largest value ever written and ends
   in the same state, for every token. (A is diagonal and N = 1, so channels need no joint enumeration.)
3. From n + 1 on all ramps are shut, so Δ = softplus(at most −104) = 0 and h ← exp(0·A) h + 0·B·x̂ = h, bit for bit.
4. Nothing else sees the count, and every held token wins the argmax beside every present token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from compiler.artifact.model import Stack, State
from compiler.exactness.levels import SAFE_NEGATIVE
from verify.certificates.certificate import Certificate, Violated
from verify.certificates.counted import (
    check_count,
    check_count_unseen,
    check_shape,
    counter,
    output_channels,
    shut,
)
from verify.certificates.finite import check_finite, lead


@dataclass(frozen=True)
class HoldCertificate(Certificate):
    """n: the position kept; steps: how many `step()` transitions were run.

    frozen: the largest pre-activation of a ramp at n + 2.
    """

    n: int
    steps: int
    frozen: float
    level: ClassVar = "bit-exact"


@torch.no_grad()
def certify_hold(stack: Stack, n: int, vocab: int) -> HoldCertificate:
    """Prove y_t = x_n for t ≥ n over tokens 0 … vocab − 1, at every length; Refused or Violated with the reason."""
    check_shape(stack)
    check_finite(stack)
    check_count_unseen(stack)
    tokens = torch.arange(vocab)
    count, steps, largest = counter(stack.initial_state(vocab)), 0, 1.0
    for t in range(1, n + 1):
        low, after = _from(stack, count, tokens, 0.0)
        largest = max(largest, float(low.abs().max()))
        high, _ = _from(stack, count, tokens, largest)
        steps += 2 * vocab
        if not torch.equal(low, high):
            raise Violated(
                f"at position {t} ≤ n = {n} channel {int((low != high).nonzero()[0, 1])} remembers what it held before"
            )
        check_count(count, counter(after), t)
        count = counter(after)
    frozen = _frozen(stack, count, vocab)
    margin = _answers(stack, count, low, tokens)
    domain = f"every sequence of {vocab} tokens, at every length; float32"
    return HoldCertificate(margin, domain, n, steps + vocab**2, frozen)


def _from(stack: Stack, count: Tensor, tokens: Tensor, held: float) -> tuple[Tensor, State]:
    """The latches after one step from a count, every latch holding the same number before it; and the state."""
    state = stack.initial_state(len(tokens))
    state[0][1].copy_(count)
    state[1][1].fill_(held)
    _, after = stack.step(tokens, state)
    return _latched(stack, after), after


def _latched(stack: Stack, state: State) -> Tensor:
    """The states of block 2 that are read, 0 elsewhere: (batch, d_inner, 1)."""
    return torch.where(output_channels(stack, 1)[:, None], state[1][1], 0)


def _frozen(stack: Stack, count: Tensor, vocab: int) -> float:
    """Step 3, from the count at n."""
    block = stack.blocks[1]
    frozen = shut(
        stack, count, block.x_proj.weight[: block.dt_rank].abs().sum(dim=0).nonzero()[:, 0], vocab, "after position n"
    )
    latches = (block.dt_proj.weight.abs().sum(dim=1) > 0) & output_channels(stack, 1)
    if (block.dt_proj.bias[latches] > SAFE_NEGATIVE).any():
        raise Violated("a latch stays open where all ramps are shut")
    return frozen


def _answers(stack: Stack, count: Tensor, held: Tensor, tokens: Tensor) -> float:
    """The least lead of the held token, whatever the present token; the latches must stay as they are."""
    worst = float("inf")
    for present in tokens:
        state = stack.initial_state(len(tokens))
        state[0][1].copy_(count)
        state[1][1].copy_(held)
        logits, after = stack.step(present.expand(len(tokens)), state)
        if not torch.equal(_latched(stack, after), held):
            raise Violated(f"token {int(present)} changes a latch after position n")
        worst = min(worst, lead(logits, tokens))
    return worst
