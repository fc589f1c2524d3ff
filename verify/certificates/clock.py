"""Clock certificate: a two-block model says the position up to a horizon, and the horizon for ever after.

Statement. y_t = answers[min(t, H) − 1] for every sequence of the tokens and every t. The first H positions are run
through the real module's `step()`, every token at each of them, for the count is the same whatever came before. From H
on the ramps of block 2 are shut (`counted.py`), nothing else sees the count and no channel of block 2 has a state, so
the scores depend on the present token
alone: they are those at H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from compiler.artifact.model import Stack
from verify.certificates.certificate import Certificate, Refused
from verify.certificates.counted import (
    check_count,
    check_count_unseen,
    check_shape,
    count_lanes,
    counter,
    output_channels,
    shut,
)
from verify.certificates.finite import check_finite, lead


@dataclass(frozen=True)
class ClockCertificate(Certificate):
    """horizon: H; steps: how many `step()` transitions were run.

    shut: the largest pre-activation of a ramp at H + 1.
    """

    horizon: int
    steps: int
    shut: float
    level: ClassVar = "bit-exact"


@torch.no_grad()
def certify_clock(stack: Stack, answers: Sequence[int], vocab: int) -> ClockCertificate:
    """Prove the clock over tokens 0 … vocab − 1, at every length; Refused or Violated with the reason."""
    check_shape(stack)
    check_finite(stack)
    check_count_unseen(stack)
    block = stack.blocks[1]
    out = output_channels(stack, 1)
    if block.dt_proj.weight[out].any() or torch.nn.functional.softplus(block.dt_proj.bias[out]).any():
        raise Refused("block 2 has a state; the clock certificate is for one that only rectifies")
    tokens, worst = torch.arange(vocab), float("inf")
    count = before = counter(stack.initial_state(vocab))
    for t, answer in enumerate(answers, start=1):
        state = stack.initial_state(vocab)
        state[0][1].copy_(count)
        logits, after = stack.step(tokens, state)
        worst = min(worst, lead(logits, torch.full((vocab,), answer)))
        check_count(count, counter(after), t)
        before, count = count, counter(after)
    ramps = (out & (block.in_proj.weight[: block.d_inner][:, count_lanes(stack)].abs().sum(dim=1) > 0)).nonzero()[:, 0]
    last = shut(stack, before, ramps, vocab, "at the horizon")
    domain = f"every sequence of {vocab} tokens, at every length; float32"
    return ClockCertificate(worst, domain, len(answers), vocab * len(answers), last)
