"""A runtime of ours for Mamba and Mamba-2 checkpoints, on the functions beside it: right, or with one bug.

Letters: b batch, l length, d d_inner, n d_state, h heads, p channels of a head, w taps.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from conformance.faults import scan, small, ssd

Layers = list[tuple[Tensor, Tensor]]
NONE: Mapping[str, str] = MappingProxyType({})

MODEL_BUGS = {  # with the mode in which each must be caught
    "the state begins anew where several new tokens come": "pieces",
    "several new tokens begin anew": "pieces",
    "only the first new token is used": "pieces",
    "pieces begin with an empty window": "pieces",
    "padding not masked": "padding",
    "padding masked before the convolution only": "padding",
    "padding masked after the convolution only": "padding",
    "rows of the cache stay where they were": "batch",
    "row 0 of the cache for all": "steps",
    "cache kept for the next": "reuse",
    "cache of the layer before": "steps",
    "cache in bfloat16": "steps",
    "cache in half": "steps",
    "copies share their state": "speculation",
    "last token read twice": "steps",
    "first step forgets the window": "steps",
    "first steps write inside the window": "steps",
    "gates of all rows for each row": "steps",
    "window of a short prompt at the wrong end": "steps",
    "prompts cut at 32": "full",
    "stream in bfloat16": "full",
    "stream in half": "full",
    "final norm left out": "full",
    "logits in half": "full",
}


@dataclass
class Cache:
    layers: Layers
    seen: int


class FaultyModel:
    """config and tensors as Hugging Face names them; bug: one of a function's, or of `MODEL_BUGS`; only: the operation
    whose function has it, where several have one of that name; beside: bugs of other functions, by operation.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        bug: str = "",
        only: str = "",
        beside: Mapping[str, str] = NONE,
    ):
        self.config, self.tensors, self.bug = config, {k: m.clone().float() for k, m in tensors.items()}, bug
        self.dtype = getattr(torch, config["dtype"])
        self.of = lambda op: beside.get(op, bug if only in ("", op) else "")
        self.is_mamba2 = config["model_type"] == "mamba2"
        self.kept: Cache | None = None

    # What `Model` asks for ------------------------------------------------------------------------------

    @torch.no_grad()
    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        cache = self._empty(len(tokens))
        if (
            self.bug == "cache kept for the next"
            and self.kept is not None
            and len(self.kept.layers[0][0]) == len(tokens)
        ):
            cache = self.kept
        out = self._run(tokens, cache, mask, piece=False)
        self.kept = out[1]
        return out

    @torch.no_grad()
    def extend(self, cache: Cache, tokens: Tensor) -> tuple[Tensor, Cache]:
        several = tokens.shape[1] > 1
        if several and self.bug == "several new tokens begin anew":
            cache = self._empty(len(tokens))
        if self.bug == "last token read twice" and not several and cache.seen > 1:
            cache = self._run(tokens, copy.deepcopy(cache), None, True)[1]
        return self._run(tokens, cache, None, piece=True)

    def select(self, cache: Cache, rows: Tensor) -> Cache:
        if self.bug == "rows of the cache stay where they were":
            rows = torch.arange(len(rows))
        return Cache([(window[rows], state[rows]) for window, state in cache.layers], cache.seen)

    def fork(self, cache: Cache) -> Cache:
        return Cache(list(cache.layers), cache.seen) if self.bug == "copies share their state" else copy.deepcopy(cache)

    def states(self, cache: Cache) -> list[Tensor]:
        return [state for _, state in cache.layers]

    # How it runs ----------------------------------------------------------------------------------------

    def _empty(self, batch: int) -> Cache:
        c = self.config
        inner, n, taps = c["expand"] * c["hidden_size"], c["state_size"], c["conv_kernel"]
        columns = inner + 2 * c["n_groups"] * n if self.is_mamba2 else inner
        shape = (c["num_heads"], c["head_dim"], n) if self.is_mamba2 else (inner, n)
        layers = [
            (torch.zeros(batch, columns, taps - 1), torch.zeros(batch, *shape)) for _ in range(c["num_hidden_layers"])
        ]
        return Cache(layers, 0)

    def _run(self, tokens: Tensor, cache: Cache, mask: Tensor | None, piece: bool) -> tuple[Tensor, Cache]:
        if self.bug == "prompts cut at 32" and not piece and tokens.shape[1] > 32:
            head = self._run(tokens[:, :32], cache, None, False)[0]
            tail = self._run(tokens[:, 32:], self._empty(len(tokens)), None, False)
            return torch.cat([head, tail[0]], 1), tail[1]
        stream = self.tensors["backbone.embeddings.weight"][tokens]
        layers: Layers = []
        given = self._damaged(cache, tokens.shape[1], piece)
        place = self._place(cache, tokens.shape[1], piece)
        for i, (window, state) in enumerate(given):
            normed = self._norm(stream, f"backbone.layers.{i}.norm.weight")
            mixer = self._mamba2 if self.is_mamba2 else self._mamba
            out, window, new = mixer(f"backbone.layers.{i}.mixer.", normed, window, state, mask, place)
            if self.bug == "copies share their state":
                cache.layers[i][1].copy_(new)
                new = cache.layers[i][1]
            stream = self._rounded(stream + out)
            layers.append((window, new))
        final = stream if self.bug == "final norm left out" else self._norm(stream, "backbone.norm_f.weight")
        head = self.tensors.get("lm_head.weight", self.tensors["backbone.embeddings.weight"])
        logits = final @ head.T
        logits = logits.half().float() if self.bug == "logits in half" else logits
        return logits, Cache(layers, cache.seen + tokens.shape[1])

    def _place(self, cache: Cache, length: int, piece: bool) -> int | None:
        """Where in the window of the convolution a step puts its token; None where a sequence is run."""
        last = self.config["conv_kernel"] - 1
        first_only = self.is_mamba2 and self.bug == "only the first new token is used"
        if not piece or (length > 1 and not first_only):
            return None
        return min(cache.seen, last) if self.bug == "first steps write inside the window" else last

    def _damaged(self, cache: Cache, length: int, piece: bool) -> Layers:
        layers, bug = cache.layers, self.bug
        if bug == "cache of the layer before" and piece:
            layers = [layers[max(0, i - 1)] for i in range(len(layers))]
        damaged = []
        for window, state in layers:
            if piece and (bug == "pieces begin with an empty window" and length > 1):
                window = torch.zeros_like(window)
            if bug == "first step forgets the window" and length == 1 and piece:
                window = torch.cat([torch.zeros_like(window[..., :1]), window[..., 1:]], -1)
            if bug == "the state begins anew where several new tokens come" and piece and length > 1:
                state = torch.zeros_like(state)
            if bug == "row 0 of the cache for all" and piece:
                window, state = window[:1].expand_as(window), state[:1].expand_as(state)
            if bug == "window of a short prompt at the wrong end" and piece and cache.seen < window.shape[-1]:
                window = window.roll(-(window.shape[-1] - cache.seen), -1)
            kept = {"cache in bfloat16": torch.bfloat16, "cache in half": torch.half}.get(bug)
            damaged.append((window, state.to(kept).float() if kept else state.clone()))
        return damaged

    def _norm(self, x: Tensor, name: str) -> Tensor:
        eps = self.config["layer_norm_epsilon"]
        return self._cast(x / (x.square().mean(-1, keepdim=True) + eps).sqrt()) * self.tensors[name]

    def _cast(self, x: Tensor) -> Tensor:
        """Rounded to the dtype of the weights, as a norm's output is before its weight."""
        return x.to(self.dtype).float()

    def _rounded(self, stream: Tensor) -> Tensor:
        narrow = {"stream in bfloat16": torch.bfloat16, "stream in half": torch.half}.get(self.bug)
        return stream.to(narrow).float() if narrow else stream

    def _masked(self, x: Tensor, mask: Tensor | None, before: bool) -> Tensor:
        left_out = (
            "padding masked after the convolution only" if before else "padding masked before the convolution only"
        )
        if mask is None or self.bug in ("padding not masked", left_out):
            return x
        return x * mask[..., None]

    def _convolved(
        self, name: str, x: Tensor, window: Tensor, mask: Tensor | None, place: int | None
    ) -> tuple[Tensor, Tensor]:
        """silu(conv(x)) of x (b, l, channels), and the window after it."""
        weight, bias = self.tensors[name + "conv1d.weight"].squeeze(1), self.tensors[name + "conv1d.bias"]
        x = x.transpose(1, 2)
        if place is not None and place < window.shape[-1]:  # what stood there is lost, and the last place stays empty
            window, x = window.clone(), x.clone()
            window[..., place], x[..., 0] = x[..., 0], 0
        y, window = small.conv(x, weight, bias, None, window, "silu", self.of("conv"))
        return self._masked(y.transpose(1, 2), mask, before=False), window

    def _mamba(self, name: str, u: Tensor, window: Tensor, state: Tensor, mask: Tensor | None, place: int | None):
        t = lambda key: self.tensors[name + key]
        n, rank = self.config["state_size"], self.config["time_step_rank"]
        x, z = (self._masked(u, mask, before=True) @ t("in_proj.weight").T).chunk(2, dim=-1)
        x, window = self._convolved(name, x, window, mask, place)
        dt, B, C = (x @ t("x_proj.weight").T).split([rank, n, n], dim=-1)
        x, dt, B, C, z = (m.transpose(1, 2) for m in (x, dt @ t("dt_proj.weight").T, B, C, z))
        A, D, bias = -t("A_log").exp(), t("D"), t("dt_proj.bias")
        if place is not None:
            y = small.step(
                state, x[..., 0], dt[..., 0], A, B[..., 0], C[..., 0], D, z[..., 0], bias, True, self.of("step")
            )[..., None]
        else:
            y, state = scan.selective_scan(x, dt, A, B, C, D, z, bias, True, state, None, self.of("selective_scan"))
        return y.transpose(1, 2) @ t("out_proj.weight").T, window, state

    def _mamba2(self, name: str, u: Tensor, window: Tensor, state: Tensor, mask: Tensor | None, place: int | None):
        t, c = (lambda key: self.tensors[name + key]), self.config
        groups, n, heads, p = c["n_groups"], c["state_size"], c["num_heads"], c["head_dim"]
        inner, columns = heads * p, groups * n
        projected = self._masked(u, mask, before=True) @ t("in_proj.weight").T
        z, x, dt = projected.split([inner, inner + 2 * columns, heads], dim=-1)
        if place is not None:
            x, dt = x[:, :1], dt[:, :1]
            if self.bug == "gates of all rows for each row" and z.shape[1] == 1:
                z = z.transpose(0, 1)
        x, window = self._convolved(name, x, window, mask, place)
        x, B, C = x.split([inner, columns, columns], dim=-1)
        x, B, C = x.unflatten(-1, (heads, p)), B.unflatten(-1, (groups, n)), C.unflatten(-1, (groups, n))
        A, D, bias = -t("A_log").exp(), t("D"), t("dt_bias")
        if place is not None:
            wide = lambda m: m[..., None].expand(*m.shape, p)
            A = wide(A)[..., None].expand(heads, p, n)
            y = small.step(
                state, x[:, 0], wide(dt[:, 0]), A, B[:, 0], C[:, 0], wide(D), None, wide(bias), True, self.of("step")
            )
            y = y[:, None]
        else:
            limit = tuple(c["time_step_limit"])
            y, state = ssd.ssd(x, dt, A, B, C, c["chunk_size"], D, None, bias, True, limit, state, None, self.of("ssd"))
        eps = self.config["layer_norm_epsilon"]
        weight = t("norm.weight")
        if self.dtype != torch.float32:
            y = self._cast(small.norm(y.flatten(-2), torch.ones_like(weight), z, eps, inner // groups, False)) * weight
        else:
            y = small.norm(y.flatten(-2), weight, z, eps, inner // groups, False, self.of("norm"))
        return y @ t("out_proj.weight").T, window, state


class FaultyRuntime:
    """Opens checkpoints with one bug, with more beside it, or none; arguments as `FaultyModel` has them."""

    def __init__(self, bug: str = "", only: str = "", beside: Mapping[str, str] = NONE):
        self.bug, self.only, self.beside = bug, only, beside
        self.name = "; ".join([bug] * bool(bug) + list(beside.values())) or "right"

    def open(self, directory: Path) -> FaultyModel:
        config = json.loads((directory / "config.json").read_text())
        return FaultyModel(config, load_file(directory / "model.safetensors"), self.bug, self.only, self.beside)
