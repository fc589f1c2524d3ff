"""A host's layers in wider modules: the same numbers at the first places, and nothing anywhere else.

The host has the first places of every axis: of the stream, the channels, the columns, the ranks, the newest taps. All
other weights are 0, but the bias of steps that are not used. So each of its numbers is computed from the same operands
and zeros. A norm's mean is over D places instead of d: weights × √(d/D) and ε × d/D make up for it, without any
rounding where D/d is a power of four. In Mamba-2 the norm inside of the mixer is widened by the same factor.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from compiler.graft.errors import GraftError
from compiler.graft.widths import Widths

State = Mapping[str, Tensor]


def widened_norm(weight: Tensor, host: int, wide: int) -> Tensor:
    """The weight of an RMSNorm over `wide` places of which the first `host` are used."""
    result = weight.new_zeros(wide)
    result[:host] = weight * (host / wide) ** 0.5
    return result


def times(name: str, tensor: Tensor, factor: float) -> Tensor:
    """The tensor times a power of two; GraftError where a number is too small or too large for that."""
    result = tensor * factor
    if not torch.equal(result / factor, tensor):
        raise GraftError(f"the host's {name} has a number that times {factor:g} leaves its format; scale it.")
    return result


def placed(tensor: Tensor, shape: tuple[int, ...], at: Mapping[int, list[tuple[int, int, int]]], fill: float = 0.0):
    """The tensor inside of a larger one. at: by axis, (first index here, first index there, how many); elsewhere from 0
    on.
    """
    result = tensor.new_full(shape, fill)
    spans = [at.get(axis, [(0, 0, size)]) for axis, size in enumerate(tensor.shape)]
    for chosen in _products(spans):
        here = tuple(slice(a, a + n) for a, _, n in chosen)
        there = tuple(slice(b, b + n) for _, b, n in chosen)
        result[there] = tensor[here]
    return result


def _products(spans):
    if not spans:
        return [()]
    return [(first, *rest) for first in spans[0] for rest in _products(spans[1:])]


def convolution(state: State, rows: Mapping, channels: int, host: Widths, wide: Widths) -> dict[str, Tensor]:
    """The newest taps stand last; a host without a bias gets zeros."""
    taps = {2: [(0, wide.d_conv - host.d_conv, host.d_conv)]}
    weight = state["conv1d.weight"]
    bias = state.get("conv1d.bias", torch.zeros(weight.shape[0], dtype=weight.dtype))
    return {
        "conv1d.weight": placed(weight, (channels, 1, wide.d_conv), {**rows, **taps}),
        "conv1d.bias": placed(bias, (channels,), rows),
    }
