"""The steps that a checkpoint really takes: the numbers that enter softplus, and whether all runtimes agree on them.

Above 20 softplus is the identity everywhere, and at −104 and below it is 0 (docs/exactness.md, E4). Between the two,
runtimes differ: llama.cpp computes log(1 + exp(x)), which is 0 from −17 on. A circuit over a lattice stays outside by
its compilation; real steps (`scaled_sum`) need not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.artifact.model import Stack
from compiler.exactness.levels import SAFE_NEGATIVE
from compiler.export.checkpoint import Package
from compiler.language.alphabet import Alphabet
from compiler.language.data import language_from_data
from compiler.language.input_language import InputLanguage

IDENTITY = 20.0  # softplus(x) = x above this, in torch and in llama.cpp alike
_WALKS, _LONGEST = 32, 128


def unsafe_step(package: Package) -> float | None:
    """A number between −104 and 20 that enters softplus on random walks of the promised language; None for none."""
    model = package.model
    stack = Stack.from_language_model(model.config, model.tensors)
    for ids in _walks(package.manifest["promise"], model.tokens):
        for steps in pre_activations(stack, model.config, ids):
            unsafe = steps[(steps > SAFE_NEGATIVE) & (steps <= IDENTITY)]
            if unsafe.numel():
                return float(unsafe[0])
    return None


@torch.no_grad()
def pre_activations(stack: Stack, config: Any, ids: Tensor) -> Iterator[Tensor]:
    """What enters softplus in each block: (batch, length, channels or heads) each; ids (batch, length)."""
    of_block = {"mamba": _mamba, "mamba2": _mamba2}[config["model_type"]]
    streams = stack.streams(stack.embedding(ids))
    for norm, block in zip(stack.norms or (), stack.blocks):
        yield of_block(block, norm(next(streams)))


def _mamba(block: Any, u: Tensor) -> Tensor:
    x = F.linear(u, block.in_proj.weight[: block.d_inner]).transpose(1, 2)
    x = F.silu(_convolved(block.conv1d, x)).transpose(1, 2)
    return F.linear(F.linear(x, block.x_proj.weight[: block.dt_rank]), block.dt_proj.weight, block.dt_proj.bias)


def _mamba2(block: Any, u: Tensor) -> Tensor:
    return F.linear(u, block.in_proj.weight[-block.nheads :]) + block.dt_bias


def _convolved(conv: nn.Conv1d, x: Tensor) -> Tensor:
    taps = conv.weight.shape[-1]
    return F.conv1d(F.pad(x, (taps - 1, 0)), conv.weight, conv.bias, groups=x.shape[1])


def _walks(promise: dict[str, Any], tokens: list[str]) -> Iterator[Tensor]:
    """Random sequences of the promised language: as long as it has, up to a limit, and short ones."""
    alphabet = Alphabet.of(*tokens[: promise["language"]["tokens"]])
    language = language_from_data({key: promise[key] for key in ("language", "length", "description")}, alphabet)
    length = min(language.max_length, _LONGEST)
    while length:
        walks = _sampled(language, length)
        if walks is not None:
            yield torch.from_numpy(walks)
        length //= 2


def _sampled(language: InputLanguage, length: int) -> np.ndarray | None:
    try:
        return language.sample(_WALKS, length, seed=0)
    except ValueError:  # walks run dry of tokens before
        return None
