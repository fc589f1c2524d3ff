"""MambaLRP (Jafari et al., 2024): relevance of channels, which no layer makes or loses.

Gradient times value, where the backward pass is that of a model made linear around what it computed. Held are the
factor that silu is, B, C and Δ of the state, and the spread of a norm; a product of a channel and its gate gives half to each.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch.nn.functional import softplus

from constructions.scoring.methods.patching import inputs, measure
from constructions.scoring.problem import Found, Given


def mamba_lrp(given: Given) -> Found:
    """The size of each channel's relevance to the measure, summed; ValueError where blocks are no Mamba's."""
    ids, _, wanted = inputs(given)
    written: dict[str, torch.Tensor] = {}
    with linear(given.model, written):
        measure(given.model(ids, use_cache=False).logits, wanted).backward()
    found = []
    for site in given.nodes:
        if (there := written.get(site.path)) is None:
            raise ValueError("mamba-lrp ranks the channels of Mamba blocks, and these components are none.")
        found.append((there * there.grad).detach().abs().sum(dim=(0, 1)).double().numpy())
    given.model.zero_grad(set_to_none=True)
    return Found(found)


def linear(model: Any, written: dict[str, torch.Tensor]) -> ExitStack:
    """A context in which `model` computes what it does, with LRP's backward pass. written: gets for each out_proj what
    stands at its input, (n, time, d_inner), with its gradient after the backward pass.
    """
    hooks = ExitStack()
    for name, module in model.named_modules():
        if hasattr(module, "x_proj") and hasattr(module, "out_proj"):
            change = partial(_mixed, name=f"{name}.out_proj", written=written)
        elif type(module).__name__.endswith("RMSNorm"):
            change = _normed
        else:
            continue
        hooks.callback(module.register_forward_hook(change).remove)
    return hooks


def _normed(norm: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
    x = given[0].float()
    held = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + norm.variance_epsilon).detach()
    return (norm.weight * (x * held).to(norm.weight.dtype)).to(out.dtype)


def _silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x).detach()


def _mixed(mixer: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor, name: str, written: dict) -> torch.Tensor:
    """The mixer again, from its own weights, with the rules of LRP."""
    x, gate = mixer.in_proj(given[0]).transpose(1, 2).chunk(2, dim=1)
    x = _silu(mixer.conv1d(x)[..., : given[0].shape[1]])
    rank, columns = mixer.time_step_rank, mixer.ssm_state_size
    steps, write, read = mixer.x_proj(x.transpose(1, 2)).detach().split([rank, columns, columns], dim=-1)
    delta = softplus(mixer.dt_proj(steps)).detach()  # (n, time, d_inner)
    decay = -torch.exp(mixer.A_log.float()).detach()
    state, scanned = torch.zeros(*x.shape[:2], columns), []
    for t in range(x.shape[-1]):
        kept = torch.exp(delta[:, t, :, None] * decay)
        state = kept * state + (delta[:, t] * x[..., t])[..., None] * write[:, t, None]
        scanned.append((state * read[:, t, None]).sum(dim=-1))
    product = (torch.stack(scanned, dim=1) + mixer.D * x.transpose(1, 2)) * _silu(gate).transpose(1, 2)
    here = product / 2 + product.detach() / 2
    here.retain_grad()
    written[name] = here
    return mixer.out_proj(here.to(out.dtype))
