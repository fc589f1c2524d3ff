"""One step of the scan, the convolution and the gated norm: right, or with one bug."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from conformance.faults import numerics
from conformance.faults.reported import reportable


@reportable("step")
def step(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, bug=""):
    """y like x; state (b, d, n) or (b, h, p, n) is updated in place; arguments as mamba_ssm's
    selective_state_update has them.
    """
    dtype = x.dtype
    x, dt, B, C = (m.float() for m in (x, dt, B, C))
    dt = numerics.steps(dt, dt_bias, dt_softplus, bug)
    if state.dim() == 4:
        per_group = x.shape[1] // B.shape[1]
        if bug == "heads tiled, not interleaved":
            B, C = (m.repeat(1, per_group, 1) for m in (B, C))
        elif bug == "group 0 for all":
            B, C = (m[:, :1].expand(-1, x.shape[1], -1) for m in (B, C))
        else:
            B, C = (m.repeat_interleave(per_group, 1) for m in (B, C))
    old = numerics.handed(state, bug)
    if bug == "row of another sequence":
        old = old.roll(1, 0)
    decay = numerics.exp(dt[..., None] * A, bug)
    new = decay * old + (dt * numerics.operand(x, bug))[..., None] * numerics.operand(B, bug).unsqueeze(-2)
    y = ((old if bug == "y before the update" else new) * numerics.operand(C, bug).unsqueeze(-2)).sum(-1)
    if bug != "state not stored":
        state.copy_(numerics.handed(new, bug))
    y = y if D is None or bug == "D left out" else y + D * x
    y = y if z is None else numerics.gate(y, z.float(), bug)
    if bug == "last tile of channels left out" and y.shape[1] > 64:
        y[:, y.shape[1] // 64 * 64 :] = 0
    return y.to(dtype)


@reportable("conv")
def conv(x, weight, bias=None, seq_idx=None, initial_states=None, activation=None, bug=""):
    """y (b, d, l) and the last d_conv − 1 inputs; arguments as `conformance.exact.conv` has them."""
    dtype, (batch, channels, length), taps = x.dtype, x.shape, weight.shape[1]
    x, weight = x.float(), weight.float()
    before = x.new_zeros(batch, channels, taps - 1) if initial_states is None else initial_states.float()
    if bug == "window given ignored":
        before = torch.zeros_like(before)
    past = torch.cat([before, numerics.operand(x, bug)], 2)
    weight = weight.flip(1) if bug == "taps in reverse" else weight
    weight = weight.bfloat16().float() if bug == "taps in bfloat16" else weight
    y = torch.zeros_like(x)
    shift = {"window one step early": -1, "window one step late": 1}.get(bug, 0)
    padded = F.pad(past, (1, 1))
    for k in range(taps):
        back = taps - 1 - k
        if bug == "oldest tap left out" and back == taps - 1:
            continue
        seen = padded[:, :, k + 1 - shift : k + 1 - shift + length]
        if seq_idx is not None and back and bug != "documents ignored":
            same = torch.ones(batch, length, dtype=torch.bool)
            same[:, back:] = seq_idx[:, back:] == seq_idx[:, : max(0, length - back)]
            seen = seen * same[:, None]
        y = y + weight[None, :, k, None] * seen
    if bias is not None and bug != "bias left out":
        y = y + bias.float()[None, :, None] * (2 if bug == "bias twice" else 1)
    if activation and bug != "activation left out":
        y = F.relu(y) if bug == "silu is a relu" else F.silu(y)
    if bug == "last channels left out":
        y[:, channels // 4 * 4 :] = 0
    if bug == "window lost at blocks of 128":
        y = _lost(y, x, weight, bias, activation, 128)
    last = past[:, :, past.shape[2] - taps + 1 :]
    if bug == "short window at the wrong end" and length < taps - 1:
        last = F.pad(x, (0, taps - 1 - length))
    return y.to(dtype), last.to(dtype) if bug != "last window one step early" else past[
        :, :, length - 1 : length + taps - 2
    ]


def _lost(y: Tensor, x: Tensor, weight: Tensor, bias, activation, size: int) -> Tensor:
    """Every block of positions begins with an empty window."""
    blocks = [conv(x[..., s : s + size], weight, bias, activation=activation)[0] for s in range(0, x.shape[2], size)]
    return torch.cat(blocks, 2)


@reportable("norm")
def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=False, bug=""):
    """y like x; arguments as `conformance.exact.norm` has them."""
    dtype = x.dtype
    y = x.float() if bug != "mean in bfloat16" else x.bfloat16().float()
    before = norm_before_gate if bug != "gate on the other side of the norm" else not norm_before_gate
    if z is not None and not before:
        y = numerics.gate(y, z.float(), bug)
    size = y.shape[-1] if group_size is None or bug == "mean over all groups" else group_size
    grouped = y.unflatten(-1, (-1, size))
    mean = grouped.square().mean(-1, keepdim=True)
    if bug == "mean centred":
        mean = grouped.var(-1, keepdim=True, unbiased=False)
    if bug == "mean over n - 1":
        mean = mean * size / (size - 1)
    if bug == "mean without the last channels":
        mean = grouped[..., : max(4, size // 64 * 64) if size > 64 else size].square().sum(-1, keepdim=True) / size
    eps = {"epsilon left out": 0.0, "epsilon of 1e-3": 1e-3, "epsilon twice": 2 * eps}.get(bug, eps)
    root = (mean.sqrt() + eps) if bug == "epsilon after the root" else (mean + eps).sqrt()
    y = (grouped / root).flatten(-2)
    y = y if bug == "weight left out" else y * numerics.operand(weight.float(), bug)
    if z is not None and before:
        y = numerics.gate(y, z.float(), bug)
    return y.to(dtype)
