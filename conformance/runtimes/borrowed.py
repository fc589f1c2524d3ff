"""Mixers of other model classes in transformers, holding the weights of our checkpoints.

Each copies the mixer of Mamba or Mamba-2 under another config. A checkpoint is opened as `MambaForCausalLM` or
`Mamba2ForCausalLM`, and its mixers are replaced by mixers of the other class, built from the config of that class with
the sizes and the epsilon of the checkpoint: what the config says of steps by default is left as it is.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compiler.runtime.huggingface import has_definitions, hidden_accelerators, unbind
from conformance.models.runtime import Model, Unsupported
from conformance.runtimes import Known
from conformance.runtimes.huggingface import HuggingFaceModel, runtime

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
            "layer_norm_epsilon": c["layer_norm_epsilon"],
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
    "zamba": (
        "ZambaMambaMixer",
        "ZambaConfig",
        lambda c: {
            "n_mamba_heads": 1,
            "mamba_d_state": c["state_size"],
            "mamba_d_conv": c["conv_kernel"],
            "mamba_dt_rank": c["time_step_rank"],
            "mamba_expand": c["expand"],
        },
    ),
}
_FAMILIES = {"zamba": "mamba"}  # of which family a mixer is, where not of Mamba-2


def _prefixed(c: Sizes, state: str, conv: str, groups: str, chunk: str = "chunk_size") -> dict[str, Any]:
    return {
        state: c["state_size"],
        conv: c["conv_kernel"],
        groups: c["n_groups"],
        chunk: c["chunk_size"],
        "mamba_expand": c["expand"],
        "mamba_headdim": c["head_dim"],
        "rms_norm_eps": c["layer_norm_epsilon"],
    }


NAMES = {f"transformers-{name.replace('_', '-')}": name for name in _MIXERS}


class BorrowedRuntime:
    """A runtime of transformers with the mixers of another model."""

    def __init__(self, name: str, model: str):
        self.name, self.model = name, model
        self.family = _FAMILIES.get(model, "mamba2")

    def open(self, directory: Path) -> Model:
        found: Any = runtime().open(directory)
        config = found.model.config.to_dict()
        if config["model_type"] != self.family:
            raise Unsupported(f"its mixers are of {'Mamba-2' if self.family == 'mamba2' else 'Mamba'}")
        mixer, config_class, sizes = _MIXERS[self.model]
        module = _module(self.model)
        transformers = importlib.import_module("transformers")
        other = getattr(transformers, config_class)(hidden_size=config["hidden_size"], **sizes(config))
        for i, layer in enumerate(found.model.backbone.layers):
            new = getattr(module, mixer)(other, layer_idx=_mamba_layer(other, i))
            if hasattr(module, "compute_mup_vector"):  # factors of its parts, which its model gives to a mixer
                new.register_buffer("mup_vector", module.compute_mup_vector(other), persistent=False)
            new.load_state_dict(_zamba(layer.mixer.state_dict()) if self.model == "zamba" else layer.mixer.state_dict())
            new.layer_idx = i
            new = new.to(layer.mixer.in_proj.weight.dtype)
            layer.mixer = new if has_definitions() else AtThatTime(new)
        return OneHead(found.model) if self.model == "zamba" else found


class OneHead(HuggingFaceModel):
    """Zamba's mixers have heads, each a Mamba of its own: (b, heads, d, n) with one head is (b, d, n)."""

    def states(self, cache: Any) -> list[Tensor]:
        return [state.flatten(1, 2) for state in super().states(cache)]


class AtThatTime(torch.nn.Module):
    """A mixer that asks its cache, not the positions, whether it is to take a step."""

    def __init__(self, mixer: torch.nn.Module):
        super().__init__()
        self.mixer = mixer

    def forward(self, hidden_states, cache_params=None, cache_position=None, attention_mask=None):
        if cache_params is not None:
            cache_params.has_previous_state = cache_position is not None and bool(cache_position[0] > 0)
        return self.mixer(hidden_states, cache_params, attention_mask)


def _zamba(w: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a Mamba by Zamba's names: one head, and of in_proj the rows of x and z in turn."""
    return {
        "conv1d.weight": w["conv1d.weight"],
        "conv1d.bias": w["conv1d.bias"],
        "in_proj.weight": w["in_proj.weight"].unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1),
        "x_proj_weight": w["x_proj.weight"][None],
        "dt_proj_weight": w["dt_proj.weight"][None],
        "dt_proj_bias": w["dt_proj.bias"][None],
        "A_log": w["A_log"][None],
        "D": w["D"][None],
        "out_proj.weight": w["out_proj.weight"],
    }


def _module(model: str) -> Any:
    with hidden_accelerators():
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
