"""A Mamba of any `expand` as one with d_inner = 2 · d_model, the only kind that llama.cpp takes; not a bit changes.

Dead channels (zero rows and columns) add only zeros to sums. Where d_inner > 2 · d_model, the residual stream gets dead
coordinates as well, and then the mean square in each norm is taken over more of them. The width is multiplied by 4^k:
the mean square and ε are divided by 4^k and the norm's output is multiplied by 2^k, all powers of two, so every float32
is the old one times a power of two, and the norm's weight divided by 2^k gives back the old numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD

_NORM = re.compile(r"backbone\.(norm_f|layers\.\d+\.norm)\.weight")


def expanded_by_two(
    config: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
    """(config, tensors) of the same model with expand = 2; what needs no padding comes back as it is."""
    if config["model_type"] != "mamba" or config["expand"] == 2:
        return config, tensors
    width, inner = config["hidden_size"], config["intermediate_size"]
    power = 0
    while 2 * width * 4**power < inner:
        power += 1
    new_width = width * 4**power
    sizes = {
        "expand": 2,
        "hidden_size": new_width,
        "intermediate_size": 2 * new_width,
        "layer_norm_epsilon": config["layer_norm_epsilon"] / 4**power,
    }
    wider = _Wider(new_width - width, 2 * new_width - inner, 2.0**-power)
    return dict(config) | sizes, {name: wider(name, tensor) for name, tensor in tensors.items()}


class _Wider:
    """Pads a tensor of the model with zeros: `lanes` more coordinates of the stream, `channels` more of d_inner."""

    def __init__(self, lanes: int, channels: int, scale: float):
        self.lanes, self.channels, self.scale = lanes, channels, scale

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        if name in (EMBEDDING, HEAD):
            return _padded(tensor, 1, self.lanes)
        if name == FINAL_NORM or _NORM.fullmatch(name):
            return _padded(tensor * self.scale, 0, self.lanes)
        part = name.split(".mixer.")[1]
        if part == "in_proj.weight":  # rows [x; z]
            rows = [_padded(half, 0, self.channels) for half in tensor.chunk(2)]
            return _padded(torch.cat(rows), 1, self.lanes)
        if part == "out_proj.weight":
            return _padded(_padded(tensor, 1, self.channels), 0, self.lanes)
        return _padded(tensor, 1 if part == "x_proj.weight" else 0, self.channels)


def _padded(tensor: Tensor, axis: int, more: int) -> Tensor:
    """The tensor with zeros at the end of an axis."""
    after = [0, 0] * (tensor.dim() - 1 - axis) + [0, more]
    return F.pad(tensor, after) if more else tensor
