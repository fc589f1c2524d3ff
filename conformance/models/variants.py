"""Other weights with the same logits: several groups of B and C, and no channel or head idle.

A copy of a channel beside it changes nothing where the last linear map reads 2 of the one and −1 of the other; a kernel
that leaves one of them out, or gives it the B of another group, shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

Files = tuple[dict[str, Any], dict[str, Tensor]]


def _mixers(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> list[tuple[str, dict[str, Tensor]]]:
    """(prefix, tensors) of each layer's mixer."""
    found = []
    for i in range(config["num_hidden_layers"]):
        prefix = f"backbone.layers.{i}.mixer."
        mixer = {name.removeprefix(prefix): m for name, m in tensors.items() if name.startswith(prefix)}
        found.append((prefix, mixer))
    return found


def grouped(config: Mapping[str, Any], tensors: Mapping[str, Tensor], groups: int) -> Files:
    """A Mamba-2 with `groups` copies of its heads, each a group of its own level.

    In group i, B and C are larger by 2^i each and D by 4^i, so all that the group puts out is larger by 4^i, the
    ballast of its norm included, and the norm over the group takes that back. The last linear map reads the groups with
    shares whose sum is 1. All factors are powers of two, and what is rectified only moves away from 0.
    """
    new = dict(tensors)
    for prefix, mixer in _mixers(config, tensors):
        new |= {prefix + name: m.contiguous() for name, m in _grouped(config, mixer, groups).items()}
    changed = {name: config[name] * groups for name in ("num_heads", "expand", "intermediate_size")}
    return {**config, **changed, "n_groups": groups}, new


def _grouped(config: Mapping[str, Any], w: Mapping[str, Tensor], groups: int) -> dict[str, Tensor]:
    inner, n, heads = config["intermediate_size"], config["state_size"], config["num_heads"]
    again = lambda m: torch.cat([m] * groups)
    larger = lambda m, base: torch.cat([m * float(base**i) for i in range(groups)])
    z, x, B, C, dt = w["in_proj.weight"].split([inner, inner, n, n, heads])
    taps, bias = (w[name].split([inner, n, n]) for name in ("conv1d.weight", "conv1d.bias"))
    return {
        "in_proj.weight": torch.cat([again(z), again(x), larger(B, 2), larger(C, 2), again(dt)]),
        "conv1d.weight": torch.cat([again(part) for part in taps]),
        "conv1d.bias": torch.cat([again(bias[0]), larger(bias[1], 2), larger(bias[2], 2)]),
        "A_log": again(w["A_log"]),
        "dt_bias": again(w["dt_bias"]),
        "D": larger(w["D"], 4),
        "norm.weight": again(w["norm.weight"]),
        "out_proj.weight": torch.cat([w["out_proj.weight"] * share for share in _shares(groups)], 1),
    }


def _shares(count: int) -> list[float]:
    """Numbers other than 0 whose sum is 1, no two neighbours equal: −1 2 −1 1 …"""
    return [1.0] if count == 1 else [-1.0, 2.0, *([-1.0, 1.0] * count)[: count - 2]]


def occupied(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Files:
    """The same model with no channel idle: each idle channel, or head, becomes a copy of an active one, which the last
    linear map reads twice, and the active one −1 times.
    """
    new = dict(tensors)
    for prefix, mixer in _mixers(config, tensors):
        filled = (
            _occupied_heads(config, mixer) if config["model_type"] == "mamba2" else _occupied_channels(config, mixer)
        )
        new |= {prefix + name: m.contiguous() for name, m in filled.items()}
    return dict(config), new


def _occupied_channels(config: Mapping[str, Any], w: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mamba: a channel is idle where neither the last map nor Δ, B and C read it."""
    inner = config["intermediate_size"]
    new = {name: m.clone() for name, m in w.items()}
    read = (w["out_proj.weight"] != 0).any(0) | (w["x_proj.weight"] != 0).any(0)
    rows = ("conv1d.weight", "conv1d.bias", "dt_proj.weight", "dt_proj.bias", "A_log", "D")
    for source, copy in _pairs(read):
        for name in rows:
            new[name][copy] = new[name][source]
        for start in (0, inner):
            new["in_proj.weight"][start + copy] = new["in_proj.weight"][start + source]
        for name in ("out_proj.weight", "x_proj.weight"):
            _split(new[name], [source], [copy])
    return new


def _occupied_heads(config: Mapping[str, Any], w: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Mamba-2: a head is idle where nothing enters it; the ballast of the norm stays alone, for its level counts."""
    inner, n, heads, p = (config[name] for name in ("intermediate_size", "state_size", "num_heads", "head_dim"))
    new = {name: m.clone() for name, m in w.items()}
    places = lambda head: list(range(head * p, head * p + p))
    enters = (w["in_proj.weight"][inner : 2 * inner] != 0).any(1) | (w["conv1d.bias"][:inner] != 0)
    read = (w["out_proj.weight"] != 0).any(0).unflatten(0, (heads, p)).any(1)
    idle = ~enters.unflatten(0, (heads, p)).any(1)
    for source, copy in _pairs(read, idle):
        for name in ("A_log", "D", "dt_bias"):
            new[name][copy] = new[name][source]
        new["in_proj.weight"][2 * inner + 2 * n + copy] = new["in_proj.weight"][2 * inner + 2 * n + source]
        for name in ("conv1d.weight", "conv1d.bias", "norm.weight"):
            new[name][places(copy)] = new[name][places(source)]
        for start in (0, inner):
            rows = new["in_proj.weight"]
            rows[[start + i for i in places(copy)]] = rows[[start + i for i in places(source)]]
        _split(new["out_proj.weight"], places(source), places(copy))
    return new


def _pairs(active: Tensor, idle: Tensor | None = None) -> list[tuple[int, int]]:
    """(source, copy) for every idle place: all that are active in turn, copies included."""
    sources = active.nonzero().flatten().tolist()
    free = (~active if idle is None else idle).nonzero().flatten().tolist()
    pairs = []
    for copy in free if sources else []:
        source = sources.pop(0)
        pairs.append((source, copy))
        sources += [source, copy]
    return pairs


def _split(matrix: Tensor, sources: list[int], copies: list[int]) -> None:
    """What a matrix reads of columns, read as 2 of their copies and −1 of themselves."""
    matrix[:, copies] = 2 * matrix[:, sources]
    matrix[:, sources] = -matrix[:, sources]
