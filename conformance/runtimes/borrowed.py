"""Mamba-2 mixers of other model classes in transformers, holding the weights of our checkpoints.

Each copies the mixer of Mamba-2 under another config. A checkpoint is opened as `Mamba2ForCausalLM`, and its mixers are
replaced by mixers of the other class, built from that class's own config with the checkpoint's sizes: what the config
says of steps by default is left as it is.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from compiler.runtime.huggingface import torch_only_transformers, unbind
from conformance.models.runtime import Unsupported
from conformance.runtimes import Known
from conformance.runtimes.huggingface import HuggingFaceModel, HuggingFaceRuntime

Sizes = Mapping[str, Any]

# model: (class of the mixer, class of the config, what the config calls the checkpoint's sizes)
_MIXERS: dict[str, tuple[str, str, Callable[[Sizes], dict[str, Any]]]] = {
    "nemotron_h": (
        "NemotronHMamba2Mixer",
        "NemotronHConfig",
        lambda c: {
            "mamba_num_heads": c["num_heads"],
            "mamba_head_dim": c["head_dim"],
            "ssm_state_size": c["state_size"],
            "conv_kernel": c["conv_kernel"],
            "n_groups": c["n_groups"],
            "chunk_size": c["chunk_size"],
        },
    ),
    "zamba2": (
        "Zamba2MambaMixer",
        "Zamba2Config",
        lambda c: {"n_mamba_heads": c["num_heads"], **_prefixed(c, "mamba_d_state", "mamba_d_conv", "mamba_ngroups")},
    ),
    "bamba": (
        "BambaMixer",
        "BambaConfig",
        lambda c: {
            "mamba_n_heads": c["num_heads"],
            "mamba_d_head": c["head_dim"],
            **_prefixed(c, "mamba_d_state", "mamba_d_conv", "mamba_n_groups", chunk="mamba_chunk_size"),
        },
    ),
    "granitemoehybrid": (
        "GraniteMoeHybridMambaLayer",
        "GraniteMoeHybridConfig",
        lambda c: {
            "mamba_n_heads": c["num_heads"],
            "mamba_d_head": c["head_dim"],
            **_prefixed(c, "mamba_d_state", "mamba_d_conv", "mamba_n_groups", chunk="mamba_chunk_size"),
        },
    ),
    "falcon_h1": (
        "FalconH1Mixer",
        "FalconH1Config",
        lambda c: {
            "mamba_n_heads": c["num_heads"],
            "mamba_d_head": c["head_dim"],
            "mamba_d_ssm": None,
            "mamba_rms_norm": True,
            "mamba_norm_before_gate": False,
            **_prefixed(c, "mamba_d_state", "mamba_d_conv", "mamba_n_groups", chunk="mamba_chunk_size"),
        },
    ),
}


def _prefixed(c: Sizes, state: str, conv: str, groups: str, chunk: str = "chunk_size") -> dict[str, Any]:
    return {
        state: c["state_size"],
        conv: c["conv_kernel"],
        groups: c["n_groups"],
        chunk: c["chunk_size"],
        "mamba_expand": c["expand"],
        "mamba_headdim": c["head_dim"],
    }


NAMES = {f"transformers-{name.replace('_', '-')}": name for name in _MIXERS}


class BorrowedRuntime(HuggingFaceRuntime):
    def __init__(self, name: str, model: str):
        self.name, self.model = name, model

    def open(self, directory: Path) -> HuggingFaceModel:
        found = super().open(directory)
        config = found.model.config.to_dict()
        if config["model_type"] != "mamba2":
            raise Unsupported("its mixers are of Mamba-2")
        mixer, config_class, sizes = _MIXERS[self.model]
        module = _module(self.model)
        transformers = importlib.import_module("transformers")
        other = getattr(transformers, config_class)(hidden_size=config["hidden_size"], **sizes(config))
        for i, layer in enumerate(found.model.backbone.layers):
            new = getattr(module, mixer)(other, layer_idx=_mamba_layer(other, i))
            if hasattr(module, "compute_mup_vector"):  # factors of its parts, which its model gives to a mixer
                new.register_buffer("mup_vector", module.compute_mup_vector(other), persistent=False)
            new.load_state_dict(layer.mixer.state_dict())
            new.layer_idx = i
            layer.mixer = new.to(layer.mixer.in_proj.weight.dtype)
        return found


def _module(model: str) -> Any:
    torch_only_transformers()
    module = importlib.import_module(f"transformers.models.{model}.modeling_{model}")
    unbind(module)
    return module


def _mamba_layer(config: Any, index: int) -> int:
    """A layer of the other model that is a Mamba layer, for mixers ask their config of which kind they are."""
    kinds = list(getattr(config, "layer_types", None) or [])
    return next((i for i, kind in enumerate(kinds) if "mamba" in kind or "linear" in kind), index)


def loader(name: str) -> Callable[[], Known]:
    def load() -> Known:
        version = f"{_MIXERS[NAMES[name]][0]} of transformers {importlib.metadata.version('transformers')}"
        return Known(name, f"{version}, PyTorch {torch.__version__}", (), BorrowedRuntime(name, NAMES[name]))

    return load
