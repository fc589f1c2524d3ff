"""A checkpoint as a module that `torch.compile` and `torch.export` take with any batch and any length.

`torch.export` unrolls a Python loop over time, and the modules of mamba_ssm and transformers have one on a CPU. Here
time runs in PyTorch's own `scan` operator. The arithmetic is that of the real modules in float32.

    model = traceable("out/mqar")
    length = torch.export.Dim("length", min=2, max=65536)
    program = torch.export.export(model, (ids,), dynamic_shapes=({1: length},))

Shapes: B batch, T length, E channels of d_inner, N columns, H heads of P channels in G groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from compiler.export.checkpoint import read
from compiler.export.record import need_float32
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name


def traceable(directory: str | Path) -> TraceableModel:
    """The language model of a checkpoint directory; ExportError where its promise is not for float32."""
    package = read(directory)
    need_float32(package, "this module")
    return TraceableModel(package.model.config, package.model.tensors).eval()


class TraceableModel(nn.Module):
    """Token ids (B, T) to logits (B, T, V); parameters by Hugging Face's names, with "_" for "."."""

    def __init__(self, config: Mapping[str, Any], tensors: Mapping[str, Tensor]):
        super().__init__()
        self.layers, self.epsilon = config["num_hidden_layers"], config["layer_norm_epsilon"]
        self.second = config["model_type"] == "mamba2"
        self.inner, self.columns = config["intermediate_size"], config["state_size"]
        if self.second:
            self.heads, self.groups = config["num_heads"], config["n_groups"]
        else:
            self.rank = config["time_step_rank"]
        for name, tensor in tensors.items():
            self.register_parameter(_flat(name), nn.Parameter(tensor, requires_grad=False))

    def weight(self, name: str) -> Tensor:
        return self.get_parameter(_flat(name))

    def forward(self, input_ids: Tensor) -> Tensor:
        stream = F.embedding(input_ids, self.weight(EMBEDDING))
        for i in range(self.layers):
            mixer = self._mamba2 if self.second else self._mamba
            stream = stream + mixer(mixer_prefix(i), self._norm(stream, self.weight(norm_name(i))))
        return F.linear(self._norm(stream, self.weight(FINAL_NORM)), self.weight(HEAD))

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon))

    def _convolved(self, prefix: str, x: Tensor) -> Tensor:
        weight, bias = (self.weight(f"{prefix}conv1d.{part}") for part in ("weight", "bias"))
        padded = F.pad(x.transpose(1, 2), (weight.shape[-1] - 1, 0))
        return F.silu(F.conv1d(padded, weight, bias, groups=weight.shape[0])).transpose(1, 2)

    def _mamba(self, prefix: str, u: Tensor) -> Tensor:
        x, z = F.linear(u, self.weight(f"{prefix}in_proj.weight")).split([self.inner, self.inner], -1)
        x = self._convolved(prefix, x)
        ports = F.linear(x, self.weight(f"{prefix}x_proj.weight")).split([self.rank, self.columns, self.columns], -1)
        step, b, c = ports
        weight, bias = (self.weight(f"{prefix}dt_proj.{part}") for part in ("weight", "bias"))
        step = F.softplus(F.linear(step, weight, bias))
        y = _selective_scan(step, x, b[:, :, None], c[:, :, None], -self.weight(f"{prefix}A_log").exp())
        y = (y + x * self.weight(f"{prefix}D")) * F.silu(z)
        return F.linear(y, self.weight(f"{prefix}out_proj.weight"))

    def _mamba2(self, prefix: str, u: Tensor) -> Tensor:
        ports = self.groups * self.columns
        parts = F.linear(u, self.weight(f"{prefix}in_proj.weight"))
        z, x, step = parts.split([self.inner, self.inner + 2 * ports, self.heads], -1)
        x, b, c = self._convolved(prefix, x).split([self.inner, ports, ports], -1)
        x = x.unflatten(-1, (self.heads, -1))
        b, c = (some.unflatten(-1, (self.groups, 1, -1)) for some in (b, c))
        spread = lambda some: some.expand(-1, -1, -1, self.heads // self.groups, -1).flatten(2, 3)[:, :, :, None]
        step = F.softplus(step + self.weight(f"{prefix}dt_bias"))[..., None]
        a = -self.weight(f"{prefix}A_log").exp()[:, None, None]
        y = _selective_scan(step, x, spread(b), spread(c), a) + x * self.weight(f"{prefix}D")[:, None]
        gated = (y.flatten(2) * F.silu(z)).unflatten(-1, (self.groups, -1))
        weight = self.weight(f"{prefix}norm.weight").unflatten(0, (self.groups, -1))
        return F.linear(self._norm(gated, weight).flatten(2), self.weight(f"{prefix}out_proj.weight"))


def _selective_scan(step: Tensor, x: Tensor, b: Tensor, c: Tensor, a: Tensor) -> Tensor:
    """h ← exp(Δ·A)·h + (Δ·x)·B and y = h·C: (B, T, …) as x; b and c (B, T, …, N) have room for the axes of x."""

    def position(h: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        step, x, b, c = now
        h = torch.exp(step[..., None] * a) * h + (step * x)[..., None] * b
        return h, (h * c).sum(-1)

    start = x.new_zeros(x.shape[0], *x.shape[2:], b.shape[-1])
    _, y = scan(position, start, (step, x, b, c), dim=1)
    return y


def _flat(name: str) -> str:
    return name.replace(".", "_")
