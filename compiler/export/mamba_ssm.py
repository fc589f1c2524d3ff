"""A directory for `MambaLMHeadModel.from_pretrained` of mamba_ssm: its own config.json, and pytorch_model.bin.

The same tensors under the same names, but for `embedding` in the place of `embeddings`. mamba_ssm's norms have
ε = 1e−5, whatever a config says, and it pads a vocabulary unless it is told not to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import canonical_json
from compiler.artifact.save import write_text
from compiler.exactness.levels import NORM_EPSILON
from compiler.export.checkpoint import Package
from compiler.export.common import tokenizer_texts
from compiler.export.directory import write_directory
from compiler.export.record import card, need, need_mamba, need_tokens, record
from compiler.targets.family import EMBEDDING

READER = "mamba_ssm"
CONFIG, WEIGHTS = "config.json", "pytorch_model.bin"
_OWN_EMBEDDING = "backbone.embedding.weight"


def write(package: Package, path: Path, overwrite: bool) -> None:
    """The directory; ExportError, with the reason, for what mamba_ssm would not compute exactly."""
    need_tokens(package, "mamba-ssm")
    need_mamba(package, READER)
    config, dtype = package.model.config, package.manifest["dtype"]
    need(config, READER, layer_norm_epsilon=NORM_EPSILON, hidden_act="silu", residual_in_fp32=True)
    limits = tuple(f"Not for its CUDA kernels: {sentence}" for sentence in package.manifest["cuda_limits"])
    content = record(package, "mamba-ssm", (f"Load it in {dtype}.", *limits))
    tensors = {own_name(name): tensor.contiguous() for name, tensor in sorted(package.model.tensors.items())}

    def fill(place: Path) -> None:
        write_text(place / CONFIG, canonical_json(own_config(config)))
        write_pickled(tensors, place / WEIGHTS)
        for name, text in tokenizer_texts(package).items():
            write_text(place / name, text)

    write_directory(path, overwrite, content, card(package, content, use(dtype)), fill)


def own_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """mamba_ssm's `MambaConfig` as JSON, from Hugging Face's."""
    common = {
        "d_state": config["state_size"],
        "d_conv": config["conv_kernel"],
        "expand": config["expand"],
        "conv_bias": config["use_conv_bias"],
        "bias": config["use_bias"],
    }
    if config["model_type"] == "mamba2":
        groups, chunk = config["n_groups"], config["chunk_size"]
        mixer = {"layer": "Mamba2", "headdim": config["head_dim"], "ngroups": groups, "chunk_size": chunk}
    else:
        mixer = {"layer": "Mamba1", "dt_rank": config["time_step_rank"]}
    return {
        "d_model": config["hidden_size"],
        "d_intermediate": 0,
        "n_layer": config["num_hidden_layers"],
        "vocab_size": config["vocab_size"],
        "ssm_cfg": mixer | common,
        "rms_norm": True,
        "residual_in_fp32": True,
        "fused_add_norm": True,
        "pad_vocab_size_multiple": 1,
        "tie_embeddings": config["tie_word_embeddings"],
    }


def write_pickled(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """A file of `torch.save`; CheckpointError where it cannot be written, of which torch makes a RuntimeError."""
    try:
        torch.save(dict(tensors), path)
    except RuntimeError as reason:
        raise CheckpointError(f"{path.name} could not be written whole; is the disk full?") from reason


def own_name(name: str) -> str:
    return _OWN_EMBEDDING if name == EMBEDDING else name


def use(dtype: str) -> str:
    """How it is loaded, as Markdown."""
    return f"""```python
import os

os.environ["TRITON_F32_DEFAULT"] = "ieee"  # before a kernel is compiled: TF32, its default, holds integers to 2^11

import torch
from mamba_ssm import MambaLMHeadModel
from transformers import PreTrainedTokenizerFast

model = MambaLMHeadModel.from_pretrained("DIRECTORY", device="cuda", dtype=torch.{dtype})
names = PreTrainedTokenizerFast.from_pretrained("DIRECTORY")
logits = model(names(TEXT, return_tensors="pt").input_ids.cuda()).logits
```"""
