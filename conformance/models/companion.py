"""Models of random weights in the modes of the compiled ones, held to a tolerance.

Compiled weights say nothing of a runtime that is wrong on ordinary numbers only. These have norms, decays, steps and
gates as models in training have them, two groups of B and C in Mamba-2, and no weight that is 0. What they must say is
computed in float64, by the equations of `conformance.exact`; a logit may be off by TOLERANCE of the largest one.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from compiler.targets import family_of
from compiler.targets.mamba.family import mamba_config
from compiler.targets.mamba2.family import mamba2_config
from conformance import exact
from conformance.models import operands
from conformance.models.case import ModelCase

TOLERANCE = 1e-4
KINDS = ("mamba", "mamba2")
VOCAB, D_MODEL, D_STATE, LAYERS, LENGTH, ROWS = 23, 16, 4, 2, 60, 3


def companion(directory: Path, kind: str) -> ModelCase:
    """Write the model of a family, one of KINDS, under a directory and give its case."""
    return _companion(directory / f"random-{kind}", _config(kind))


def _config(kind: str) -> dict[str, Any]:
    sizes = {"vocab": VOCAB, "d_model": D_MODEL, "d_state": D_STATE, "layers": LAYERS}
    if kind == "mamba":
        return mamba_config(dt_rank=3, **sizes)
    return mamba2_config(head_dim=4, chunk_size=16, **sizes) | {"n_groups": 2}


def _companion(directory: Path, config: dict[str, Any]) -> ModelCase:
    random = np.random.RandomState(zlib.crc32(directory.name.encode()))
    shapes = family_of(config["model_type"]).tensor_shapes(config)
    tensors = {name: _weights(random, name, shape) for name, shape in shapes.items()}
    tokens = torch.from_numpy(random.randint(0, VOCAB, size=(ROWS, LENGTH)))
    found, logits = operands.layers(config, tensors, tokens, exact.Double, torch.float64)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    case = ModelCase(
        directory.name,
        "ordinary numbers",
        directory,
        tokens,
        logits,
        torch.ones_like(tokens, dtype=torch.bool),
        [layer.expected["last_state"][0] for layer in found],
        TOLERANCE,
    )
    case.write()
    return case


def _weights(random: np.random.RandomState, name: str, shape: tuple[int, ...]) -> Tensor:
    """Of the sizes that training leaves: rows of a product keep the size of what they read."""
    values = random.standard_normal(shape)
    last = name.split(".")[-2:]
    if "norm" in last[0] or "norm_f" in last[0] or last[-1] == "D":
        values = 1 + 0.2 * values
    elif last[-1] == "A_log":
        values = np.log(1 + np.arange(values.size).reshape(shape) % D_STATE) + 0.1 * values
    elif last[-1] == "dt_bias" or last == ["dt_proj", "bias"]:
        values = values - 2
    elif last[0] == "conv1d":
        values = values / 2
    elif last[0] != "embeddings":
        values = values / np.sqrt(shape[-1])
    return torch.from_numpy(values.astype(np.float32))
