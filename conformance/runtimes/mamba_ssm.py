"""mamba_ssm on a CPU: its reference functions, and its language model with our scans in place of its kernels."""

from __future__ import annotations

import copy
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from compiler.runtime.real_modules import mamba_classes
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.models.runtime import Unsupported
from conformance.runtimes import Known


def _kernels() -> tuple[Kernel, ...]:
    """The references that its wheel has, by the names of arguments that cases have."""
    mamba_classes()
    from mamba_ssm.modules.ssd_minimal import ssd_minimal_discrete
    from mamba_ssm.ops.selective_scan_interface import selective_scan_ref
    from mamba_ssm.ops.triton.layernorm_gated import rms_norm_ref
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update_ref
    from mamba_ssm.ops.triton.ssd_combined import ssd_chunk_scan_combined_ref

    def gated_rms_norm_ref(x, weight, z=None, eps=1e-6, group_size=None, norm_before_gate=True):
        return rms_norm_ref(x, weight, None, z, eps, group_size, norm_before_gate)

    # The references of the chunked scan take whole chunks: what is asked of them is padded here, with steps of 0.
    def ssd_chunk_scan_ref(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, dt_softplus=False):
        steps = dt if dt_bias is None else dt + dt_bias
        steps = F.softplus(steps) if dt_softplus else steps
        whole = [_whole(m, chunk_size) for m in (x, steps, B, C)]
        padded_z = None if z is None else _whole(z, chunk_size)
        return ssd_chunk_scan_combined_ref(whole[0], whole[1], A, *whole[2:], chunk_size, D, padded_z)[:, : x.shape[1]]

    def ssd_minimal(x, dt, A, B, C, chunk_size, dt_bias=None, initial_states=None, dt_softplus=False):
        """Its minimal form takes x and A times the step, and B and C of each head."""
        x, B, C = (m.float() for m in (x, B, C))
        dt = dt.float() if dt_bias is None else dt + dt_bias
        dt = F.softplus(dt) if dt_softplus else dt
        B, C = (m.repeat_interleave(x.shape[2] // m.shape[2], dim=2) for m in (B, C))
        initial = None if initial_states is None else initial_states[:, None]
        whole = [_whole(m, chunk_size) for m in (x * dt[..., None], dt * A, B, C)]
        y, last = ssd_minimal_discrete(*whole, chunk_size, initial)
        return y[:, : x.shape[1]], last

    functions = (
        *(selective_scan_ref, selective_state_update_ref, ssd_chunk_scan_ref, ssd_minimal),
        gated_rms_norm_ref,
    )
    return tuple(kernel(function) for function in functions)


def _whole(m: Tensor, chunk: int) -> Tensor:
    return torch.cat([m, m.new_zeros(m.shape[0], -m.shape[1] % chunk, *m.shape[2:])], 1)


class MambaSsmModel:
    """A `MambaLMHeadModel` with `InferenceParams`."""

    def __init__(self, model: Any):
        self.model = model

    @torch.no_grad()
    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        if mask is not None:
            raise Unsupported("it takes no attention mask")
        return self._run(tokens, mamba_classes().InferenceParams(max_seqlen=1 << 20, max_batch_size=len(tokens)))

    @torch.no_grad()
    def extend(self, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        return self._run(tokens, cache)

    def _run(self, tokens: Tensor, cache: Any) -> tuple[Tensor, Any]:
        logits = self.model(tokens, inference_params=cache).logits
        cache.seqlen_offset += tokens.shape[1]
        return logits, cache

    def select(self, cache: Any, rows: Tensor) -> Any:
        raise Unsupported("InferenceParams has no selection of rows")

    def fork(self, cache: Any) -> Any:
        return copy.deepcopy(cache)

    def states(self, cache: Any) -> list[Tensor]:
        return [cache.key_value_memory_dict[i][1] for i in sorted(cache.key_value_memory_dict)]


class MambaSsmRuntime:
    name = "mamba-ssm"

    def open(self, directory: Path) -> MambaSsmModel:
        config = json.loads((directory / "config.json").read_text())
        tensors = load_file(directory / "model.safetensors")
        tensors["backbone.embedding.weight"] = tensors.pop("backbone.embeddings.weight")
        tied = "lm_head.weight" not in tensors
        tensors |= {"lm_head.weight": tensors["backbone.embedding.weight"]} if tied else {}
        classes = mamba_classes()
        model = classes.MambaLMHeadModel(
            classes.MambaConfig(
                d_model=config["hidden_size"],
                n_layer=config["num_hidden_layers"],
                vocab_size=config["vocab_size"],
                ssm_cfg=_mixer(config),
                rms_norm=True,
                fused_add_norm=False,
                residual_in_fp32=True,
                pad_vocab_size_multiple=1,
                tie_embeddings=tied,
            ),
            dtype=getattr(torch, config["dtype"]),
        )
        model.load_state_dict(tensors)
        return MambaSsmModel(model.eval())


def _mixer(config: dict[str, Any]) -> dict[str, Any]:
    shared = {"d_state": config["state_size"], "d_conv": config["conv_kernel"], "expand": config["expand"]}
    if config["model_type"] == "mamba":
        return {"layer": "Mamba1", "dt_rank": config["time_step_rank"]} | shared
    heads = {"headdim": config["head_dim"], "ngroups": config["n_groups"], "chunk_size": config["chunk_size"]}
    return {"layer": "Mamba2"} | heads | shared


def load() -> Known:
    version = f"mamba_ssm {importlib.metadata.version('mamba-ssm')}, PyTorch {torch.__version__}, CPU"
    return Known("mamba-ssm", version, _kernels(), MambaSsmRuntime())
