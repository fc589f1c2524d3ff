"""`trainable(model)`: how a compiled checkpoint can be trained at all.

Adam's steps are absolute, and exact weights are not: x_proj holds 2^-12 beside zeros that multiply 128. Here each
weight is w = w₀ + s·θ with its own s: |w₀|, and for a zero the smallest nonzero of its row (of the tensor, where the
row has none). θ starts at zero and is what an optimiser moves, so steps are relative. Constants that everything else
rests on stay as they are: norms, A_log, D, the steps' biases, and the ballast lanes. The head can be scaled to a
moderate lead: one of 10^7 has no gradient, and one below 1 is pushed apart at the cost of all else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from compiler.graft.errors import GraftError
from compiler.graft.faint import FAINTEST_SEEN
from compiler.language.arguments import shown

_CLASSES = ("MambaForCausalLM", "Mamba2ForCausalLM")
FIXED = ("norm", "A_log", "dt_bias", "dt_proj.bias", "D")


class Relative(nn.Module):
    """w₀ + s·θ for a parameter θ. rows, columns: which stay as they are."""

    def __init__(self, weight: Tensor, rows: Tensor | None = None, columns: Tensor | None = None):
        super().__init__()
        step = relative_steps(weight.detach())
        if rows is not None:
            step[rows] = 0
        if columns is not None:
            step[:, columns] = 0
        self.register_buffer("start", weight.detach().clone())
        self.register_buffer("step", step)

    start: Tensor
    step: Tensor

    def forward(self, theta: Tensor) -> Tensor:
        return self.start + self.step * theta

    def right_inverse(self, weight: Tensor) -> Tensor:
        """θ of the weights at the start: 0."""
        return torch.zeros_like(weight)


def relative_steps(weight: Tensor) -> Tensor:
    """|w|, and for zeros the smallest nonzero of their row, or of the tensor."""
    rows = weight.abs().reshape(weight.shape[0], -1)
    infinite = torch.where(rows > 0, rows, torch.inf)
    least = infinite.min(dim=1, keepdim=True).values
    whole = infinite.min()
    least = torch.where(least.isinf(), whole, least)
    steps = torch.where(rows > 0, rows, least.expand_as(rows))
    return torch.where(steps.isinf(), torch.zeros_like(steps), steps).reshape(weight.shape)


def trainable(model: nn.Module, head_scale: float = 1.0) -> nn.Module:
    """Make a compiled language model trainable by relative steps, in place; returns it.

    model: a `MambaForCausalLM` or `Mamba2ForCausalLM` with compiled weights. head_scale: what the scores are multiplied
    by first; a lead of a few nats has gradients, one of 10^7 has none.

    Train `parameters_to_train(model)`, with Adam at about 1e-2; then `finished(model)` leaves plain parameters. Before
    that `save_pretrained` is refused, for its files would hold θ.
    Raises GraftError for a model of another class, one that is being trained so already or has parametrizations of
    other kinds, tied embeddings, a head_scale that is no positive number, and a direct sum: beside lanes of 2^-40 and
    less no common rate trains a host. Put the circuit beside it as a side branch instead.
    """
    lm: Any = model
    if type(model).__name__ not in _CLASSES:
        known = " and ".join(_CLASSES)
        raise GraftError(f"the model is {type(model).__name__}, and relative steps are for {known}.")
    if isinstance(model, _InTraining):
        raise GraftError("the model is trained by relative steps already; call finished(model) before another start.")
    _check_plain(lm)
    if not isinstance(head_scale, (int, float)) or not math.isfinite(head_scale) or head_scale <= 0:
        raise GraftError(f"head_scale is {head_scale!r}, and a positive number is needed.")
    if not torch.isfinite(lm.lm_head.weight.detach() * head_scale).all():
        raise GraftError(f"head_scale is {head_scale:g}, beyond which a weight of the head is infinite; choose less.")
    if _is_direct_sum(lm):
        raise GraftError("the model is a direct sum of host and circuit, which is frozen; train a side branch instead.")
    with torch.no_grad():
        lm.lm_head.weight.mul_(head_scale)
    closed = _closed_lanes(lm)
    asked = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    model.requires_grad_(False)
    for name, module in list(model.named_modules()):
        if "parametrizations" in name or not _is_trained(name):
            continue
        for key, parameter in list(module.named_parameters(recurse=False)):
            if _is_trained(f"{name}.{key}"):
                columns = closed if module is lm.backbone.embeddings else None
                rows = closed if name.endswith("out_proj") else None
                parameter.requires_grad_(True)
                parametrize.register_parametrization(module, key, Relative(parameter, rows, columns))
    kind = type(model)
    model.__class__ = type(kind.__name__, (_InTraining, kind), {"asked": asked})
    return model


class _InTraining(nn.Module):
    """What stands before the class of a model while θ stands where its weights are looked for.

    asked: of each parameter, whether it asked for a gradient before.
    """

    asked: dict[str, bool]

    def save_pretrained(self, *_: Any, **__: Any) -> None:
        raise GraftError(
            "the model is trained by relative steps, and its files would hold these in place of weights; save "
            "finished(model), from which trainable(model) can go on."
        )


def _check_plain(model: Any) -> None:
    """GraftError where a weight is computed from others, or is two weights at once."""
    for name, module in model.named_modules():
        if parametrize.is_parametrized(module):
            raise GraftError(f"the model's {name} has a parametrization already; remove it before relative steps.")
    if model.lm_head.weight is model.backbone.embeddings.weight:
        raise GraftError("the model's head and embedding are one weight, and relative steps need two; untie them.")


def _is_direct_sum(model: Any) -> bool:
    """Whether layers of a host read lanes that the circuit's first layer does not, behind a norm for faint lanes.

    A norm is as large in a checkpoint of its own whose promise is for long texts, but its layers read the same lanes.
    """
    first, last = (model.backbone.layers[i].norm.weight for i in (0, -1))
    return bool((model.backbone.norm_f.weight >= 1 / FAINTEST_SEEN).any() and ((last != 0) & (first == 0)).any())


def _is_trained(name: str) -> bool:
    last = name.split(".")
    return not any(part in FIXED or part.startswith("norm") for part in last) and not name.endswith("dt_proj.bias")


def _closed_lanes(model: Any) -> Tensor:
    """Lanes that no layer's norm lets through: the ballast, and padding."""
    weights = torch.stack([layer.norm.weight.detach() for layer in model.backbone.layers])
    return (weights == 0).all(0).nonzero().flatten()


def parameters_to_train(model: nn.Module) -> Iterator[nn.Parameter]:
    """The θ of every tensor that is trained; GraftError for what is no module."""
    _check_module(model)
    return (parameter for parameter in model.parameters() if parameter.requires_grad)


def _check_module(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise GraftError(f"the model is {shown(model)}, and a module of PyTorch is needed.")


def finished(model: nn.Module) -> nn.Module:
    """The model with plain parameters again, at the trained values; they ask for gradients where they did before.

    A model that is not trained by relative steps is left as it is.
    Raises GraftError for what is no module, and for a part of a model in training.
    """
    _check_module(model)
    if isinstance(model, _InTraining):
        for module in model.modules():
            if parametrize.is_parametrized(module):
                _take_weights(module)
        asked, model.__class__ = model.asked, type(model).__bases__[1]
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(asked[name])
    elif any(isinstance(module, Relative) for module in model.modules()):
        raise GraftError(
            "what is finished is a part of a model in training; call finished on what trainable was given."
        )
    return model


def _take_weights(module: Any) -> None:
    """Each weight as a parameter in place of what computes it.

    torch's own remove_parametrizations takes properties from a class that the module shares with its deep copies.
    """
    weights = {name: getattr(module, name).detach() for name in module.parametrizations}
    del module.parametrizations
    module.__class__ = type(module).__bases__[0]
    for name, weight in weights.items():
        module.register_parameter(name, nn.Parameter(weight))
