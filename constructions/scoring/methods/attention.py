"""Hidden attention (Ali et al., 2024): which positions a channel's state reads, and where the answer depends on it.

Mamba-attribution weighs the attention of each channel, where it is positive, with the gradient of the answer by what
the channel puts out behind its gate, where that is positive; both are measured by the greatest of their block. The
authors then take the mean over channels to look at positions. Here channels are ranked, so the sum over positions is
taken instead. A channel that passes its input by the skip path alone has no attention.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import torch

from constructions.scoring.methods.patching import inputs, measure
from constructions.scoring.methods.recurrence import mixers, recurrence
from constructions.scoring.problem import Found, Given, NothingFound


def hidden_attention(given: Given) -> Found:
    """The sum over positions of each channel's Mamba-attribution. NothingFound where components are no channels;
    ValueError where blocks are neither Mamba's nor Mamba-2's."""
    blocks = mixers(given.model, "hidden-attention")
    projections = [given.model.get_submodule(site.path) for site in given.nodes]
    if [id(m.out_proj) for m in blocks] != [id(p) for p in projections]:
        raise NothingFound("hidden-attention scores channels, and the components of this model are lanes.")
    ids, _, wanted = inputs(given)
    read: dict[int, torch.Tensor] = {}
    put: dict[int, torch.Tensor] = {}

    def keep(mixer: Any, given: tuple[torch.Tensor, ...], i: int) -> None:
        read[i] = given[0].detach()

    def retain(values: torch.Tensor, i: int) -> torch.Tensor:
        put[i] = values
        values.retain_grad()
        return values

    with ExitStack() as hooks:
        for i, (mixer, site) in enumerate(zip(blocks, given.nodes, strict=True)):
            hooks.callback(mixer.register_forward_pre_hook(partial(keep, i=i)).remove)
            hooks.enter_context(site.changed(given.model, partial(retain, i=i)))
        measure(given.model(ids, use_cache=False).logits, wanted).backward()
    given.model.zero_grad(set_to_none=True)
    components = []
    with torch.no_grad():
        for i, mixer in enumerate(blocks):
            gradient = _relative(put[i].grad)  # (n, time, d_inner)
            attention = _relative(recurrence(mixer, read[i]).attention())
            weighed = attention.sum(dim=-1) * gradient.transpose(1, 2)
            components.append(weighed.sum(dim=(0, 2)).double().numpy())
    return Found(components)


def _relative(values: torch.Tensor | None) -> torch.Tensor:
    """What is positive, over the greatest of it."""
    assert values is not None, "the measure depends on every block"
    positive = values.clamp(min=0)
    return positive / positive.amax().clamp(min=1e-30)
