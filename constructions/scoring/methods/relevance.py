"""MambaLRP (Jafari et al., 2024): relevance of channels, which no layer makes or loses.

Gradient times value, where the backward pass is that of a model made linear around what it computed. Held are the
factor that silu is, B, C and Δ of the state, and the spread of a norm. A product of a channel and its gate gives half
to each. The paper has the rules for Mamba; those of Mamba-2 are the same, and its second norm holds its spread too.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import torch

from constructions.scoring.methods.patching import inputs, measure
from constructions.scoring.methods.recurrence import mixers, recurrence, silu
from constructions.scoring.problem import Found, Given


def mamba_lrp(given: Given) -> Found:
    """The size of each component's relevance to the measure, summed; ValueError where blocks are neither Mamba's nor
    Mamba-2's."""
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
    norms = [m for m in model.modules() if type(m).__name__.endswith("RMSNorm")]
    hooks = ExitStack()
    for module, change in [*((m, _mixed) for m in mixers(model, "mamba-lrp")), *((m, _normed) for m in norms)]:
        hooks.callback(module.register_forward_hook(change).remove)
    return hooks


def _normed(norm: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
    return (norm.weight * _even(given[0].float(), norm.variance_epsilon).to(norm.weight.dtype)).to(out.dtype)


def _even(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    """x over its root mean square, which is held."""
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + epsilon).detach()


def _mixed(mixer: Any, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
    """The mixer again, from its own weights, with the rules of LRP."""
    parts = recurrence(mixer, given[0])
    product = parts.scanned() * silu(parts.gate)
    product = product / 2 + product.detach() / 2
    if hasattr(mixer, "norm"):  # Mamba-2's, within each group
        groups = product.float().unflatten(-1, (mixer.n_groups, -1))
        product = mixer.norm.weight * _even(groups, mixer.norm.variance_epsilon).flatten(-2)
    return mixer.out_proj(product.to(out.dtype))
