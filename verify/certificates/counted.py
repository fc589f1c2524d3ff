"""What the hold and clock certificates share: a first block that counts, a second one that sees the count through
falling ramps.

The count. Block 1 has A = 0 and adds the same non-negative number at each step, whatever the tokens (both checked).
Float addition is monotone, so the computed count never falls, where it saturates or is summed in another order
included.

What block 2 sees of it does not fall either: for every token C, the gate and out_proj are at least 0 on the way there.

A ramp is a rectified channel of block 2 whose row does not rise with the count and sees nothing else that varies. If
its pre-activation is 0 or at most −104 at one count, and at most −104 at the next, it is shut for ever: silu gives −0
or 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from compiler.artifact.model import Stack, State
from compiler.exactness.levels import SAFE_NEGATIVE
from verify.certificates.certificate import Refused, Violated


def check_shape(stack: Stack) -> None:
    """Two Mamba blocks without norms, N = 1, that read the present position only; block 1 never forgets."""
    if len(stack.blocks) != 2 or stack.norms is not None or any(not hasattr(b, "x_proj") for b in stack.blocks):
        raise Refused("this certificate is for two Mamba blocks without norms")
    if any(block.d_state != 1 for block in stack.blocks):
        raise Refused("this certificate is for one state per channel, N = 1")
    if any(block.conv1d.weight[..., :-1].any() for block in stack.blocks):
        raise Refused("this certificate is for blocks that read the present position only")
    if torch.exp(stack.blocks[0].A_log[output_channels(stack, 0)]).any():
        raise Refused("block 1 forgets, so it does not count")


def output_channels(stack: Stack, block: int) -> Tensor:
    """The channels of a block whose output reaches the residual stream: (d_inner,) bool."""
    return stack.blocks[block].out_proj.weight.abs().sum(dim=0) > 0


def count_lanes(stack: Stack) -> Tensor:
    """The coordinates of d_model that block 1 writes: (d_model,) bool."""
    return stack.blocks[0].out_proj.weight.abs().sum(dim=1) > 0


def counter(state: State) -> Tensor:
    """The recurrent state of block 1: (batch, d_inner, 1)."""
    return state[0][1]


def check_count(before: Tensor, after: Tensor, t: int) -> None:
    """The count is the same for every token and does not fall."""
    if not torch.equal(after, after[:1].expand_as(after)):
        raise Violated(f"at position {t} the count depends on the tokens")
    if (after < before).any():
        raise Violated(f"at position {t} the count falls")


def check_count_unseen(stack: Stack) -> None:
    """Nothing but ramps sees the count: not the head, nor a gate or a D path of block 2 on the way to the output, nor
    its C.
    """
    block, lanes, out = stack.blocks[1], count_lanes(stack), output_channels(stack, 1)
    rows, gates = block.in_proj.weight.chunk(2)
    sees = rows[:, lanes].abs().sum(dim=1) > 0
    read = block.x_proj.weight[-1] != 0
    ramps = out & sees & (block.D != 0)
    if stack.head.weight[:, lanes].any() or gates[out][:, lanes].any() or (read & sees).any():
        raise Refused("the head, a gate or C sees the count itself")
    if (ramps & (block.dt_proj.weight.abs().sum(dim=1) > 0)).any():
        raise Refused("a channel sees the count both through D and in its state")


def shut(stack: Stack, before: Tensor, ramps: Tensor, vocab: int, when: str) -> float:
    """The largest pre-activation of the ramps (channel indices) two steps after a count.

    Violated unless they are shut for ever.
    """
    block, lanes = stack.blocks[1], count_lanes(stack)
    rows, embedding = block.in_proj.weight[ramps], stack.embedding.weight[:vocab]
    told_apart = (embedding != embedding[0]).any(dim=0)
    taps, bias = block.conv1d.weight[ramps, 0, -1:], block.conv1d.bias[ramps, None]
    _check_rising(stack, vocab)
    if not len(ramps):
        raise Refused("nothing in block 2 sees the count, so nothing can stop with it")
    falling = (rows[:, lanes] <= 0).all() and (taps >= 0).all()
    if not falling or rows[:, told_apart & ~lanes].any():
        raise Refused("a ramp does not fall with the count, or sees the tokens")
    state = stack.initial_state(vocab)
    state[0][1].copy_(before)
    at_once, later = (rows @ _entering(stack, state, vocab).T * taps + bias for _ in range(2))
    if not (((at_once == 0) | (at_once <= SAFE_NEGATIVE)).all() and (later <= SAFE_NEGATIVE).all()):
        raise Violated(f"{when} a ramp is at {float(torch.stack([at_once, later]).max())}, and it must be at most −104")
    return float(later.max())


def _check_rising(stack: Stack, vocab: int) -> None:
    """What block 1 writes does not fall with its states, whatever the present token."""
    block, out = stack.blocks[0], output_channels(stack, 0)
    x, z = block.in_proj(stack.embedding.weight[:vocab]).chunk(2, dim=-1)
    features = torch.nn.functional.silu(x * block.conv1d.weight[:, 0, -1] + block.conv1d.bias)
    read = features @ block.x_proj.weight[-1]
    gates = torch.nn.functional.silu(z)[:, out]
    if (stack.blocks[0].out_proj.weight < 0).any() or (read < 0).any() or (gates < 0).any():
        raise Refused("what block 1 writes may fall as the count rises")


def _entering(stack: Stack, state: State, vocab: int) -> Tensor:
    """What enters block 2 at the next position, for every token: (tokens, d_model); the counter moves on, in place."""
    stream = stack._embed(torch.arange(vocab)[:, None])
    out, *_ = stack.blocks[0].step(stream, *state[0])
    return stack._add(stream, out)[:, 0]
