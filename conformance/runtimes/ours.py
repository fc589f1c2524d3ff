"""The scans and modules of this project: C++ and PyTorch on a CPU."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from compiler.artifact.model import Stack
from compiler.runtime import cpu_layers
from compiler.runtime.selective_scan import selective_scan
from compiler.runtime.ssd import ssd_scan
from compiler.runtime.streaming import Caches, advance
from conformance.kernel.signature import kernel
from conformance.models.runtime import Unsupported
from conformance.runtimes import Known


def ssd(
    x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, dt_softplus=False,
    dt_limit=(0.0, float("inf")), return_final_states=False,
):  # fmt: skip
    """The scan of Mamba-2, which takes no packed sequences on a CPU."""
    return ssd_scan(
        x, dt, A, B, C, chunk_size, D, z, dt_bias, initial_states, None, dt_softplus, dt_limit, return_final_states
    )


def causal_conv1d(x, weight, bias=None, activation=None):
    return cpu_layers.causal_conv1d(x, weight, bias, None, activation)


def gated_norm(x, weight, z=None, eps=1e-6, group_size=None, norm_before_gate=True):
    return cpu_layers.gated_norm(x, weight, None, z, eps, group_size, norm_before_gate, True)


class OurModel:
    """A stack, run by chunks; one position at a time where one is given."""

    def __init__(self, stack: Stack):
        self.stack = stack

    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Caches]:
        if mask is not None:
            raise Unsupported("it takes no attention mask")
        return advance(self.stack, tokens, self.stack.initial_state(len(tokens)))

    def extend(self, cache: Caches, tokens: Tensor) -> tuple[Tensor, Caches]:
        if tokens.shape[1] == 1:
            logits, cache = self.stack.step(tokens[:, 0], cache)
            return logits[:, None], cache
        return advance(self.stack, tokens, cache)

    def select(self, cache: Caches, rows: Tensor) -> Caches:
        return [(window[rows], state[rows]) for window, state in cache]

    def fork(self, cache: Caches) -> Caches:
        return copy.deepcopy(cache)

    def states(self, cache: Caches) -> list[Tensor]:
        return [state for _, state in cache]


class OurRuntime:
    name = "ours"

    def open(self, directory: Path) -> OurModel:
        config = json.loads((directory / "config.json").read_text())
        tensors = load_file(directory / "model.safetensors")
        return OurModel(Stack.from_language_model(config, tensors).to(getattr(torch, config["dtype"])))


def load() -> Known:
    functions = (selective_scan, ssd, cpu_layers.selective_state_update, causal_conv1d, gated_norm)
    kernels = tuple(kernel(function) for function in functions)
    return Known("ours", f"PyTorch {torch.__version__}", kernels, OurRuntime())
