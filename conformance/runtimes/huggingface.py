"""transformers: the PyTorch definitions of its Mamba and Mamba-2, without the kernels of other packages."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import torch

from compiler.runtime.huggingface import has_definitions, torch_only_transformers
from conformance.faults.delta_models import DELTA_KINDS, DeltaModel
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.models.judge import KINDS
from conformance.models.runtime import Runtime
from conformance.runtimes import Known
from conformance.runtimes.earlier import EarlierRuntime
from conformance.runtimes.huggingface_model import HuggingFaceModel, opened


def _delta_kernels() -> tuple[Kernel, ...]:
    """The gated delta rule as its models compute it: by chunks, and one step after the other."""
    from transformers.models.qwen3_next import modeling_qwen3_next as models

    chunk, recurrent = models.torch_chunk_gated_delta_rule, models.torch_recurrent_gated_delta_rule

    def torch_chunk_gated_delta_rule(
        q, k, v, g, beta, chunk_size=64, initial_state=None, use_qk_l2norm_in_kernel=False, output_final_state=False
    ):
        return chunk(q, k, v, g, beta, chunk_size, initial_state, output_final_state, use_qk_l2norm_in_kernel)

    def torch_recurrent_gated_delta_rule(
        q, k, v, g, beta, initial_state=None, use_qk_l2norm_in_kernel=False, output_final_state=False
    ):
        return recurrent(q, k, v, g, beta, initial_state, output_final_state, use_qk_l2norm_in_kernel)

    return kernel(torch_chunk_gated_delta_rule), kernel(torch_recurrent_gated_delta_rule)


def _kernels() -> tuple[Kernel, ...]:
    """Its functions by the names of arguments that cases have."""
    models = torch_only_transformers()
    mamba, mamba2 = models.mamba, models.mamba2

    def mamba_selective_scan(
        u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False
    ):
        if B.dim() == 4:
            raise NotImplementedError("it takes no groups")
        return mamba.mamba_selective_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)

    def mamba_selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        return mamba.mamba_selective_state_update(state, x, dt, A, B, C, D, dt_bias, dt_softplus, z)

    def mamba2_chunk_scan(
        x, dt, A, B, C, chunk_size, D=None, dt_bias=None, initial_states=None, dt_softplus=False,
        dt_limit=(0.0, float("inf")), return_final_states=False,
    ):  # fmt: skip
        if D is not None and D.dim() == 2:
            raise NotImplementedError("it takes no D of each channel")
        return mamba2.mamba2_chunk_scan(
            x, dt, A, B, C, chunk_size, D, dt_bias, initial_states, dt_softplus, dt_limit, return_final_states
        )

    def mamba2_selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        return mamba2.mamba2_selective_state_update(state, x, dt, A, B, C, D, dt_bias, dt_softplus, z)

    def causal_conv1d_fn(x, weight, bias=None, activation=None):
        return mamba2.causal_conv1d_fn(x, weight, bias, activation)

    def mamba2_gated_norm(x, weight, z=None, eps=1e-6, group_size=None):
        norm = mamba2.MambaRMSNormGated(x.shape[-1], group_size or x.shape[-1], eps)
        norm.weight.data = weight
        return norm(x, z)

    plain = (mamba_selective_scan, mamba2_chunk_scan, causal_conv1d_fn, mamba2_gated_norm)
    return (
        *(kernel(function) for function in plain),
        kernel(mamba_selective_state_update, op="channel step"),
        kernel(mamba2_selective_state_update, op="head step"),
        *_delta_kernels(),
    )


class HuggingFaceRuntime:
    name = "transformers"
    kinds = (*KINDS, *DELTA_KINDS)

    def open(self, directory: Path) -> HuggingFaceModel:
        torch_only_transformers()
        model = opened(directory)
        return (DeltaModel if model.config.model_type in DELTA_KINDS else HuggingFaceModel)(model)


def runtime() -> Runtime:
    """For the release that is installed, or that PYTHONPATH names."""
    if has_definitions():
        return HuggingFaceRuntime()
    return EarlierRuntime()


def load() -> Known:
    version = f"transformers {importlib.metadata.version('transformers')}, PyTorch {torch.__version__}"
    return Known("transformers", version, _kernels() if has_definitions() else (), runtime())
