"""flash-linear-attention: its Mamba-2 in PyTorch, with the norms around it in Triton.

Where there is no CUDA device, Triton's interpreter runs the norms on a CPU. It is slow: a step takes a quarter of a
second.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from compiler.runtime.huggingface import hidden_accelerators
from conformance.models.runtime import Unsupported
from conformance.runtimes import Known
from conformance.runtimes.huggingface import HuggingFaceModel

_SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_heads", "head_dim", "state_size", "n_groups"),
    *("expand", "conv_kernel", "chunk_size", "tie_word_embeddings"),
)


class FlaModel(HuggingFaceModel):
    """A `Mamba2ForCausalLM` of fla with its `Cache`."""

    cache = "past_key_values"

    def select(self, cache: Any, rows: Tensor) -> Any:
        raise Unsupported("its caches have no selection of rows")

    def states(self, cache: Any) -> list[Tensor]:
        return [cache[i]["recurrent_state"] for i in range(self.model.config.num_hidden_layers)]


class FlaRuntime:
    name = "fla"

    def open(self, directory: Path) -> FlaModel:
        fla = importlib.import_module("fla.models.mamba2")
        config = json.loads((directory / "config.json").read_text())
        if config["model_type"] != "mamba2":
            raise Unsupported("its Mamba is not that of the checkpoints")
        model = fla.Mamba2ForCausalLM(
            fla.Mamba2Config(
                **{name: config[name] for name in _SIZES},
                norm_eps=config["layer_norm_epsilon"],
                dt_limit=tuple(config["time_step_limit"]),
            )
        )
        tensors = load_file(directory / "model.safetensors")
        tensors.setdefault("lm_head.weight", tensors["backbone.embeddings.weight"])
        model.load_state_dict(tensors)
        return FlaModel(model.to(getattr(torch, config["dtype"])).eval())


def _interpret() -> None:
    """Triton without a device: its interpreter, and the first of every kernel's configurations, for none is timed."""
    os.environ |= {"TRITON_INTERPRET": "1", "FLA_CACHE_RESULTS": "0"}
    from triton.runtime.autotuner import Autotuner

    Autotuner._bench = lambda self, *args, config, **meta: [0.0, 0.0, 0.0]


def load() -> Known:
    if not torch.cuda.is_available():
        _interpret()
    with hidden_accelerators():
        importlib.import_module("fla.layers.mamba2")
    importlib.import_module("transformers.utils.logging").set_verbosity_error()
    version = importlib.metadata.version
    where = "CUDA" if torch.cuda.is_available() else "CPU, Triton interpreted"
    name = f"flash-linear-attention {version('flash-linear-attention')}, Triton {version('triton')}, {where}"
    return Known("fla", name, (), FlaRuntime())
