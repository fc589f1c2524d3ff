"""Runtimes on CUDA: mamba_ssm with its own kernels, and transformers with these kernels and without.

What is compared lives on the CPU: tokens are moved to the device, logits and states back.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compiler.runtime.fake_triton import is_missing
from compiler.runtime.huggingface import routed_transformers
from compiler.runtime.real_modules import mamba_classes
from compiler.targets.target import KERNEL_WIDTH
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.models.runtime import Model, Runtime
from conformance.runtimes import Known
from conformance.runtimes.huggingface import HuggingFaceModel, HuggingFaceRuntime, opened
from conformance.runtimes.huggingface import load as huggingface
from conformance.runtimes.mamba_ssm import MambaSsmRuntime

_PACKAGES = ("mamba-ssm", "causal-conv1d", "triton")


class OnDevice:
    """A runtime whose models live on a device, for a suite whose tokens and logits are on the CPU.

    runtime: its models have the PyTorch module as `model`.
    """

    def __init__(self, runtime: Runtime, name: str, device: str = "cuda"):
        self.runtime = runtime
        self.name = name
        self.device = device

    def open(self, directory: Path) -> Model:
        opened: Any = self.runtime.open(directory)
        opened.model.to(self.device)
        return _Moved(opened, self.device)


class _Moved:
    def __init__(self, model: Model, device: str):
        self.inner = model
        self.device = device

    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        logits, cache = self.inner.begin(tokens.to(self.device), None if mask is None else mask.to(self.device))
        return logits.cpu(), cache

    def extend(self, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        logits, cache = self.inner.extend(cache, tokens.to(self.device))
        return logits.cpu(), cache

    def select(self, cache: Any, rows: Tensor) -> Any:
        return self.inner.select(cache, rows.to(self.device))

    def fork(self, cache: Any) -> Any:
        return self.inner.fork(cache)

    def states(self, cache: Any) -> list[Tensor]:
        return [state.cpu() for state in self.inner.states(cache)]


def _mamba_ssm_kernels() -> tuple[Kernel, ...]:
    mamba_classes()
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    def gated_rms_norm(x, weight, z=None, eps=1e-6, group_size=None, norm_before_gate=True):
        return rmsnorm_fn(x, weight, None, z, eps, group_size, norm_before_gate)

    def selective_scan(
        u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False
    ):
        return selective_scan_fn(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)

    def selective_state_update_with_all(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        """Zeros for D and dt_bias where there are none: mamba_ssm 2.3.2 reads the strides of both."""
        D, dt_bias = (A.new_zeros(A.shape[:-1]) if m is None else m for m in (D, dt_bias))
        return selective_state_update(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)

    @functools.wraps(mamba_chunk_scan_combined)
    def chunk_scan(*places, seq_idx=None, cu_seqlens=None, **given):
        """It reads offsets for the states of documents alone: without numbers it takes a row for one document."""
        if cu_seqlens is not None and seq_idx is None:
            raise NotImplementedError("offsets of documents without their numbers")
        return mamba_chunk_scan_combined(*places, seq_idx=seq_idx, cu_seqlens=cu_seqlens, **given)

    steps = (selective_state_update, selective_state_update_with_all)
    functions = (selective_scan, *steps, chunk_scan, gated_rms_norm, *_convolutions())
    return tuple(kernel(function, device="cuda") for function in functions)


def _convolutions() -> tuple[Callable[..., Any], ...]:
    """causal_conv1d's kernel by its two layouts, where it is installed: without it mamba_ssm takes PyTorch's."""
    if is_missing("causal_conv1d"):
        return ()
    from causal_conv1d import causal_conv1d_fn

    def causal_conv1d(x, weight, bias=None, activation=None):
        return causal_conv1d_fn(x, weight, bias, activation=activation)

    def causal_conv1d_channel_last(
        x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, activation=None
    ):
        """It takes whole multiples of 8 channels, and gives no state of packed documents."""
        channels, more = x.shape[1], -x.shape[1] % KERNEL_WIDTH
        x, initial_states = (None if m is None else _channel_last(m, more) for m in (x, initial_states))
        weight = torch.cat([weight, weight.new_zeros(more, weight.shape[1])])
        bias = None if bias is None else torch.cat([bias, bias.new_zeros(more)])
        last = return_final_states and seq_idx is None
        found = causal_conv1d_fn(x, weight, bias, seq_idx, initial_states, last, activation=activation)
        return tuple(m[:, :channels] for m in found) if last else found[:, :channels]

    return causal_conv1d, causal_conv1d_channel_last


def _channel_last(m: Tensor, more: int) -> Tensor:
    """(b, d, l) with so many channels of zeros more, one position's channels side by side in memory.

    New memory, for a tensor of one position would keep its strides, by which the kernel takes it for the other layout.
    """
    batch, channels, length = m.shape
    rows = m.new_zeros(batch, length, channels + more)
    rows[..., :channels] = m.transpose(1, 2)
    return rows.transpose(1, 2)


class RoutedRuntime:
    """transformers as it is on a GPU: each function that a package of kernels has, by that package."""

    name = "transformers-cuda"

    def open(self, directory: Path) -> HuggingFaceModel:
        routed_transformers()
        return HuggingFaceModel(opened(directory))


def _versions(*packages: str) -> str:
    found = [
        f"{name} {importlib.metadata.version(name)}" for name in packages if not is_missing(name.replace("-", "_"))
    ]
    return ", ".join([*found, f"PyTorch {torch.__version__}", torch.cuda.get_device_name()])


def _mamba_ssm() -> Known:
    runtime = OnDevice(MambaSsmRuntime(), "mamba-ssm-cuda")
    return Known("mamba-ssm-cuda", _versions(*_PACKAGES), _mamba_ssm_kernels(), runtime)


def _transformers() -> Known:
    routed_transformers()
    runtime = OnDevice(RoutedRuntime(), "transformers-cuda")
    return Known("transformers-cuda", _versions("transformers", *_PACKAGES), (), runtime)


def _transformers_torch() -> Known:
    kernels = tuple(replace(each, device="cuda") for each in huggingface().kernels)
    runtime = OnDevice(HuggingFaceRuntime(), "transformers-torch-cuda")
    return Known("transformers-torch-cuda", _versions("transformers"), kernels, runtime)


_LOADERS = {
    "mamba-ssm-cuda": _mamba_ssm,
    "transformers-cuda": _transformers,
    "transformers-torch-cuda": _transformers_torch,
}


def check_cuda(kernels: bool = True) -> None:
    """RuntimeError where there is no device, or, where they are asked for, no kernel of mamba-ssm."""
    if not torch.cuda.is_available():
        raise RuntimeError("it needs a CUDA device, and PyTorch finds none.")
    if kernels and is_missing("selective_scan_cuda"):
        raise RuntimeError(
            "it needs the kernels of mamba-ssm, which are not installed: "
            "pip install --no-build-isolation mamba-ssm causal-conv1d."
        )


def loader(name: str) -> Callable[[], Known]:
    """What loads the runtime of a name; RuntimeError where there is no device or no kernel."""

    def load() -> Known:
        check_cuda(kernels=name != "transformers-torch-cuda")
        return _LOADERS[name]()

    return load
