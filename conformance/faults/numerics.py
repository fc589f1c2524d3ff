"""Functions of one number, right or wrong in the way that a bug names."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

HALVES = {"half": torch.float16, "bfloat16": torch.bfloat16}


def exp(x: Tensor, bug: str) -> Tensor:
    match bug:
        case "exp in half":
            return x.half().exp().float()
        case "exp in bfloat16":
            return x.bfloat16().exp().float()
        case "exp to 1e-5":
            return x.exp() * torch.where(x < 0, 1 + 1e-5, 1.0)
        case "exp clamped at -20":
            return x.clamp(min=-20).exp()
        case "decay grows":
            return (-x).exp()
        case "exp is 0 or 1":
            return x.exp().round()
        case "decay in base 2":
            return torch.exp2(x)
    return x.exp()


def steps(delta: Tensor, bias: Tensor | None, softplus: bool, bug: str) -> Tensor:
    """Δ after bias and softplus; bias broadcasts against delta."""
    if bias is not None and bug != "bias of the step left out":
        delta = delta + (2 * bias if bug == "bias of the step twice" else bias)
    if softplus and bug != "softplus left out":
        delta = _softplus(delta, bug)
        if bias is not None and bug == "bias after the softplus as well":
            delta = delta + bias
    if bug == "step at least 0.001":
        delta = delta.clamp(min=0.001)
    return delta.clamp(max=100.0) if bug == "step at most 100" else delta


def _softplus(x: Tensor, bug: str) -> Tensor:
    match bug:
        case "softplus overflows":
            return (1 + x.exp()).log()
        case "softplus gives up at 8":
            return torch.where(x > 8, x, F.softplus(x))
        case "softplus is a relu":
            return F.relu(x)
        case "softplus twice":
            return F.softplus(F.softplus(x))
        case "softplus in half":
            return F.softplus(x.half().float()).half().float()
    return F.softplus(x)


def gate(y: Tensor, z: Tensor, bug: str) -> Tensor:
    match bug:
        case "gate left out":
            return y
        case "gate is a sigmoid":
            return y * z.sigmoid()
        case "gate in half":
            return y * F.silu(z.half()).float()
        case "gate of another row":
            return y * F.silu(z.roll(1, 0))
    return y * F.silu(z)


def operand(x: Tensor, bug: str) -> Tensor:
    """An operand of a product, rounded where the bug says."""
    match bug:
        case "products in TF32":
            return tf32(x)
        case "products in bfloat16":
            return x.bfloat16().float()
        case "products in half":
            return x.half().float()
    return x


def tf32(x: Tensor) -> Tensor:
    """Rounded to ten fraction bits."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


def handed(state: Tensor, bug: str) -> Tensor:
    """The state as it is kept between chunks, calls or steps."""
    match bug:
        case "state kept in bfloat16":
            return state.bfloat16().float()
        case "state kept in half":
            return state.half().float()
    return state
