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

from compiler.exactness.levels import OFF
from compiler.graft.sizes import Widths

State = Mapping[str, Tensor]


def widened_mixer(kind: str, state: State, host: Widths, wide: Widths) -> dict[str, Tensor]:
    """The tensors of a mixer of the wide sizes that computes what this one does; kind: "mamba" or "mamba2"."""
    return (_mamba if kind == "mamba" else _mamba2)(state, host, wide)


def widened_norm(weight: Tensor, host: int, wide: int) -> Tensor:
    """The weight of an RMSNorm over `wide` places of which the first `host` are used."""
    result = weight.new_zeros(wide)
    result[:host] = weight * (host / wide) ** 0.5
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


def _mamba(state: State, host: Widths, wide: Widths) -> dict[str, Tensor]:
    d, D, inner, wider = host.d_model, wide.d_model, host.d_inner, wide.d_inner
    halves = {0: [(0, 0, inner), (inner, wider, inner)]}
    n, rank = host.d_state, host.rank
    ports = {0: [(0, 0, rank), (rank, wide.rank, n), (rank + n, wide.rank + wide.d_state, n)]}
    result = {
        "in_proj.weight": placed(state["in_proj.weight"], (2 * wider, D), halves),
        "x_proj.weight": placed(state["x_proj.weight"], (wide.rank + 2 * wide.d_state, wider), ports),
        "dt_proj.weight": placed(state["dt_proj.weight"], (wider, wide.rank), {}),
        "dt_proj.bias": placed(state["dt_proj.bias"], (wider,), {}, OFF),
        "A_log": placed(state["A_log"], (wider, wide.d_state), {}),
        "D": placed(state["D"], (wider,), {}),
        "out_proj.weight": placed(state["out_proj.weight"], (D, wider), {}),
    } | _convolution(state, {}, wider, host, wide)
    if "in_proj.bias" in state:
        result["in_proj.bias"] = placed(state["in_proj.bias"], (2 * wider,), halves)
        result["out_proj.bias"] = placed(state["out_proj.bias"], (D,), {0: [(0, 0, d)]})
    return result


def _mamba2(state: State, host: Widths, wide: Widths) -> dict[str, Tensor]:
    """in_proj rows are [z; x; B; C; dt], convolved channels [x; B; C]."""
    D, inner, wider, n, state_size = wide.d_model, host.d_inner, wide.d_inner, host.d_state, wide.d_state
    heads, wide_heads = inner // host.rank, wider // wide.rank
    convolved = [(0, 0, inner), (inner, wider, n), (inner + n, wider + state_size, n)]
    rows = [(0, 0, inner), *((inner + a, wider + b, count) for a, b, count in convolved)]
    rows.append((2 * inner + 2 * n, 2 * wider + 2 * state_size, heads))
    count = 2 * wider + 2 * state_size + wide_heads
    result = {
        "in_proj.weight": placed(state["in_proj.weight"], (count, D), {0: rows}),
        "dt_bias": placed(state["dt_bias"], (wide_heads,), {}, OFF),
        "A_log": placed(state["A_log"], (wide_heads,), {}),
        "D": placed(state["D"], (wide_heads,), {}),
        "norm.weight": widened_norm(state["norm.weight"], inner, wider),
        "out_proj.weight": placed(state["out_proj.weight"], (D, wider), {}),
    } | _convolution(state, {0: convolved}, wider + 2 * state_size, host, wide)
    if "in_proj.bias" in state:
        result["in_proj.bias"] = placed(state["in_proj.bias"], (count,), {0: rows})
        result["out_proj.bias"] = placed(state["out_proj.bias"], (D,), {})
    return result


def _convolution(state: State, rows: Mapping, channels: int, host: Widths, wide: Widths) -> dict[str, Tensor]:
    """The newest taps stand last; a host without a bias gets zeros."""
    taps = {2: [(0, wide.d_conv - host.d_conv, host.d_conv)]}
    weight = state["conv1d.weight"]
    bias = state.get("conv1d.bias", torch.zeros(weight.shape[0], dtype=weight.dtype))
    return {
        "conv1d.weight": placed(weight, (channels, 1, wide.d_conv), {**rows, **taps}),
        "conv1d.bias": placed(bias, (channels,), rows),
    }
