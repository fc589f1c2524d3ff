"""mamba_ssm on CUDA: its own kernels, and its language model on them."""

from __future__ import annotations

import importlib.metadata

import torch

from compiler.runtime.real_modules import mamba_classes
from conformance.kernel import Kernel, kernel
from conformance.runtimes import Known
from conformance.runtimes.mamba_ssm import MambaSsmModel, MambaSsmRuntime


def _kernels() -> tuple[Kernel, ...]:
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

    functions = (selective_scan, selective_state_update, mamba_chunk_scan_combined, gated_rms_norm)
    return tuple(kernel(function, device="cuda") for function in functions)


class CudaModel(MambaSsmModel):
    def begin(self, tokens, mask=None):
        return super().begin(tokens.cuda(), mask)

    def extend(self, cache, tokens):
        return super().extend(cache, tokens.cuda())


class CudaRuntime(MambaSsmRuntime):
    name = "mamba-ssm-cuda"

    def open(self, directory):
        return CudaModel(super().open(directory).model)


def load() -> Known:
    if not torch.cuda.is_available():
        raise RuntimeError("--runtime mamba-ssm-cuda needs a CUDA device, and PyTorch finds none here.")
    version = f"mamba_ssm {importlib.metadata.version('mamba-ssm')}, {torch.cuda.get_device_name()}"
    return Known("mamba-ssm-cuda", version, _kernels(), CudaRuntime("cuda"))
