"""MambaLRP (Jafari et al., 2024): relevance of channels, which no layer makes or loses.

Gradient times value, where the backward pass is that of a model made linear around what it computed. Held are the
factor that silu is, B, C and Δ of the state, and the spread of a norm. A product of a channel and its gate gives half
to each.
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
    """The size of each component's relevance to the measure, summed; ValueError where blocks are no Mamba's."""
    ids, _, wanted = inputs(given)
    seen: dict[int, torch.Tensor] = {}

    def keep(values: torch.Tensor, i: int) -> torch.Tensor:
        seen[i] = values  # a site that is run again within its block was run by the rules the last time
        values.retain_grad()
        return values

    with linear(given.model) as hooks:
        for i, site in enumerate(given.nodes):
            hooks.enter_context(site.changed(given.model, partial(keep, i=i)))
        measure(given.model(ids, use_cache=False).logits, wanted).backward()
    given.model.zero_grad(set_to_none=True)
    relevance = [(seen[i] * seen[i].grad).detach().abs() for i in range(len(given.nodes))]
    return Found([each.sum(dim=(0, 1)).double().numpy() for each in relevance])


def linear(model: Any) -> ExitStack:
    """A context in which `model` computes what it does, with LRP's backward pass."""
    modules = list(model.modules())
    mixers = [m for m in modules if hasattr(m, "out_proj")]
    if not mixers or not all(hasattr(m, "x_proj") for m in mixers):
        raise ValueError(f"mamba-lrp knows the blocks of Mamba, and {type(model).__name__} has others.")
    norms = [m for m in modules if type(m).__name__.endswith("RMSNorm")]
    hooks = ExitStack()
    for module, change in [*((m, _mixed) for m in mixers), *((m, _normed) for m in norms)]:
        hooks.callback(module.register_forward_hook(change).remove)
    return hooks


def _normed(norm: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
    x = given[0].float()
    held = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + norm.variance_epsilon).detach()
    return (norm.weight * (x * held).to(norm.weight.dtype)).to(out.dtype)


def _silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x).detach()


def _mixed(mixer: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
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
    return mixer.out_proj((product / 2 + product.detach() / 2).to(out.dtype))
