"""Hold certificate: a two-block model keeps the n-th token for ever, at every length, past the saturation of its count.

Statement. Let block 1 count positions and block 2 be latches whose step Δ depends on that count alone. Then y_t = x_n for
every t ≥ n. The proof runs the real module's `step()` and reads the weights at the Δ ports:

1. The count is the same whatever the tokens are: every token is tried at each t ≤ n + 1.
2. At t ≤ n every latch forgets what it held: each channel comes from 0 and from its own largest value and ends in the same state,
   for every token. (A is diagonal and N = 1, so channels need no joint enumeration; block 2 reads no earlier position.)
3. From n + 1 on Δ = 0. Its ports read rectified channels; each such channel falls with the count and sees nothing else that varies.
   At count n + 1 it is 0 or at most −104, and at n + 2 at most −104, where silu is −0. Rounding is monotone and increments are
   non-negative, so that no later count, saturated or summed in another order, is computed below n + 2: all give −0.
   Then h ← exp(0·A) h + 0·B·x̂ = h, bit for bit.
4. Every held token wins the argmax, beside every present token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from compiler.block import SAFE_NEGATIVE
from compiler.model import State, Stack
from verify.certificates.certificate import Certificate, Refused, Violated


@dataclass(frozen=True)
class HoldCertificate(Certificate):
    """n: the position kept; steps: how many `step()` transitions were run; frozen: the largest pre-activation of a ramp at n + 2."""

    n: int
    steps: int
    frozen: float
    level: ClassVar = "bit-exact"


@torch.no_grad()
def certify_hold(stack: Stack, n: int, vocab: int) -> HoldCertificate:
    """Prove y_t = x_n for t ≥ n over tokens 0 … vocab − 1, at every length; Refused or Violated with the reason."""
    _check_shape(stack)
    tokens = torch.arange(vocab)
    counter, steps, largest = _counter(stack.initial_state(vocab)), 0, 1.0
    for t in range(1, n + 1):
        low, after = _from(stack, counter, tokens, 0.0)
        largest = max(largest, float(low.abs().max()))
        high, _ = _from(stack, counter, tokens, largest)
        steps += 2 * vocab
        if not torch.equal(low, high):
            raise Violated(f"at position {t} ≤ n = {n} channel {int((low != high).nonzero()[0, 1])} remembers what it held before")
        counter = _counter(after)
        _check_independent(counter, t)
    frozen = _frozen(stack, counter, low)
    margin = _answers(stack, counter, low, tokens)
    domain = f"every sequence of {vocab} tokens, at every length; float32"
    return HoldCertificate(margin, domain, n, steps + vocab**2, frozen)


def _check_shape(stack: Stack) -> None:
    if len(stack.blocks) != 2 or stack.norms is not None or any(not hasattr(b, "x_proj") for b in stack.blocks):
        raise Refused("the hold certificate is for two Mamba blocks without norms")
    if any(block.d_state != 1 for block in stack.blocks):
        raise Refused("the hold certificate is for one state per channel, N = 1")
    if any(block.conv1d.weight[..., :-1].any() for block in stack.blocks):
        raise Refused("the hold certificate is for blocks that read the present position only")


def _counter(state: State) -> Tensor:
    return state[0][1]


def _check_independent(counter: Tensor, t: int) -> None:
    if not torch.equal(counter, counter[:1].expand_as(counter)):
        raise Violated(f"at position {t} the count depends on the tokens")


def _from(stack: Stack, counter: Tensor, tokens: Tensor, held: float) -> tuple[Tensor, State]:
    """The latches after one step from a count, every latch holding the same number before it; and the state."""
    state = stack.initial_state(len(tokens))
    state[0][1].copy_(counter)
    state[1][1].fill_(held)
    _, after = stack.step(tokens, state)
    return torch.where(_read(stack)[:, None], after[1][1], 0), after


def _frozen(stack: Stack, counter: Tensor, held: Tensor) -> float:
    """The largest pre-activation among the ramps that Δ reads, at count n + 2; checks that they are shut, and only fall."""
    block = stack.blocks[1]
    read = block.x_proj.weight[: block.dt_rank].abs().sum(dim=0).nonzero()[:, 0]
    rows = block.in_proj.weight[read]
    embedding = stack.embedding.weight[: len(held)]
    out = stack.blocks[0].out_proj.weight
    grown, told_apart = out.abs().sum(dim=1) > 0, (embedding != embedding[0]).any(dim=0)
    if (out[grown] < 0).any() or (rows[:, grown] > 0).any() or rows[:, told_apart & ~grown].any():
        raise Refused("a channel that Δ reads does not fall with the count, or sees the tokens")
    state = stack.initial_state(len(held))
    state[0][1].copy_(counter)
    taps, bias = block.conv1d.weight[read, 0, -1:], block.conv1d.bias[read, None]
    at_once, later = (rows @ _entering(stack, state, held).T * taps + bias for _ in range(2))
    shut = ((at_once == 0) | (at_once <= SAFE_NEGATIVE)).all() and (later <= SAFE_NEGATIVE).all() and (taps >= 0).all()
    if not shut or (block.dt_proj.bias[_latching(stack)] > SAFE_NEGATIVE).any():
        raise Violated(f"after position n a ramp that opens the latches is at {float(torch.stack([at_once, later]).max())}, not at most −104")
    return float(later.max())


def _entering(stack: Stack, state: State, held: Tensor) -> Tensor:
    """What enters block 2 at the next position, for every token: (tokens, d_model); the counter moves on, in place."""
    stream = stack._embed(torch.arange(len(held))[:, None])
    out, *_ = stack.blocks[0].step(stream, *state[0])
    return stack._add(stream, out)[:, 0]


def _latching(stack: Stack) -> Tensor:
    """The channels of block 2 whose output is read and whose step varies."""
    block = stack.blocks[1]
    return (block.dt_proj.weight.abs().sum(dim=1) > 0) & _read(stack)


def _read(stack: Stack) -> Tensor:
    """The channels of block 2 whose output reaches the residual stream: (d_inner,)."""
    return stack.blocks[1].out_proj.weight.abs().sum(dim=0) > 0


def _answers(stack: Stack, counter: Tensor, held: Tensor, tokens: Tensor) -> float:
    """The least lead of the held token over all others, whatever the present token; the latches must stay as they are."""
    worst = float("inf")
    for present in tokens:
        state = stack.initial_state(len(tokens))
        state[0][1].copy_(counter)
        state[1][1].copy_(held)
        logits, after = stack.step(present.expand(len(tokens)), state)
        if not torch.equal(torch.where(_read(stack)[:, None], after[1][1], 0), held):
            raise Violated(f"token {int(present)} changes a latch after position n")
        right = logits.gather(1, tokens[:, None])
        others = logits.scatter(1, tokens[:, None], -torch.inf).max(dim=1, keepdim=True).values
        worst = min(worst, float((right - others).min()))
    return worst
