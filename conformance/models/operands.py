"""What the scan of each layer is given when a checkpoint runs on tokens, and its exact results.

The operands come from the layers around it (PyTorch on lattice data, every sum exact); the results from the plain
equations of `conformance.exact`. So the states of a model are known without any kernel having run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from conformance import exact
from conformance.loader import Case

FAMILIES = ("mamba", "mamba2")


@torch.no_grad()
def layers(
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    tokens: Tensor,
    kind: exact.Kind = exact.Faint,
    work: torch.dtype = torch.float32,
) -> tuple[list[Case], Tensor]:
    """A case of the scan for each layer, for tokens (b, l), and the logits (b, l, vocab) that come of their results.

    kind: what the scans are computed in; work: what the layers around them are, float64 for weights that are on no
    lattice. Raises Inexact where an operand is not on the lattice.
    """
    weights = {name: tensor.to(work) for name, tensor in tensors.items()}
    dtype = getattr(torch, config["dtype"]) if work == torch.float32 else work
    stream = weights["backbone.embeddings.weight"][tokens]
    found = []
    for i in range(config["num_hidden_layers"]):
        part = {name.removeprefix(f"backbone.layers.{i}."): m for name, m in weights.items()}
        u = _rms(stream, config["layer_norm_epsilon"], dtype) * part["norm.weight"]
        mixer = {name.removeprefix("mixer."): m for name, m in part.items() if name.startswith("mixer.")}
        case, out = (_mamba2 if config["model_type"] == "mamba2" else _mamba)(
            config, mixer, u, f"layer {i}", dtype, kind
        )
        found.append(case)
        stream = stream + out
    final = _rms(stream, config["layer_norm_epsilon"], dtype) * weights["backbone.norm_f.weight"]
    return found, final @ weights.get("lm_head.weight", weights["backbone.embeddings.weight"]).T


def _rms(x: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    """In the dtype of the weights, as both libraries have it before the weight is applied."""
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)).to(dtype).to(x.dtype)


def _convolved(x: Tensor, weights: Mapping[str, Tensor]) -> Tensor:
    taps = weights["conv1d.weight"].shape[-1]
    past = F.pad(x.transpose(1, 2), (taps - 1, 0))
    y = F.conv1d(past, weights["conv1d.weight"], weights["conv1d.bias"], groups=x.shape[-1])
    return F.silu(y).transpose(1, 2)


def _mamba(
    config: Mapping[str, Any], w: Mapping[str, Tensor], u: Tensor, name: str, dtype: torch.dtype, kind: exact.Kind
) -> tuple[Case, Tensor]:
    n, rank = config["state_size"], config["time_step_rank"]
    x, z = (u @ w["in_proj.weight"].T).chunk(2, dim=-1)
    x = _convolved(x, w)
    dt, B, C = (x @ w["x_proj.weight"].T).split([rank, n, n], dim=-1)
    names = {"u": x, "delta": dt @ w["dt_proj.weight"].T, "B": B, "C": C, "z": z}
    inputs = {key: m.transpose(1, 2) for key, m in names.items()}
    inputs |= {"A": -w["A_log"].exp(), "D": w["D"], "delta_bias": w["dt_proj.bias"]}
    case = _case("selective_scan", name, inputs, {"delta_softplus": True}, kind)
    return case, case.expected["y"].to(u.dtype).transpose(1, 2) @ w["out_proj.weight"].T


def _mamba2(
    config: Mapping[str, Any], w: Mapping[str, Tensor], u: Tensor, name: str, dtype: torch.dtype, kind: exact.Kind
) -> tuple[Case, Tensor]:
    groups, n, heads, p = (config[key] for key in ("n_groups", "state_size", "num_heads", "head_dim"))
    inner = heads * p
    z, x, dt = (u @ w["in_proj.weight"].T).split([inner, inner + 2 * groups * n, heads], dim=-1)
    x, B, C = _convolved(x, w).split([inner, groups * n, groups * n], dim=-1)
    inputs = {"x": x.unflatten(-1, (heads, p)), "dt": dt, "A": -w["A_log"].exp(), "D": w["D"], "dt_bias": w["dt_bias"]}
    inputs |= {"B": B.unflatten(-1, (groups, n)), "C": C.unflatten(-1, (groups, n))}
    options = {"dt_softplus": True, "dt_limit": list(config["time_step_limit"]), "chunk_size": 16}
    case = _case("ssd", name, inputs, options, kind)
    y = case.expected["y"].to(u.dtype).flatten(-2) * F.silu(z)
    grouped = y.unflatten(-1, (groups, -1))
    normed = _rms(grouped, config["layer_norm_epsilon"], dtype).flatten(-2)
    return case, (normed * w["norm.weight"]) @ w["out_proj.weight"].T


def _case(op: str, name: str, inputs: dict[str, Tensor], options: dict[str, Any], kind: exact.Kind) -> Case:
    """exp is asked for as 0 or 1; decays that only stop mattering after very many steps count as 1 (exactness, E9)."""
    inputs = {key: m.contiguous() for key, m in inputs.items()}
    known = {key: value for key, value in options.items() if key != "chunk_size"}
    results = getattr(exact, op)(kind, **inputs, **known)
    expected = {key: torch.from_numpy(m.astype(np.float64)) for key, m in results.items()}
    return Case(op, "circuit", name, "the operands of a compiled circuit", inputs, options, expected)
