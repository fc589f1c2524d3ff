"""mlx-lm: its Mamba and Mamba-2 on MLX's CPU code."""

from __future__ import annotations

import copy
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.models.cache import ArraysCache
from mlx_lm.utils import load_model
from torch import Tensor

from conformance.runtimes import Known

Caches = list[ArraysCache]


class MlxModel:
    """A model of mlx-lm with the caches that its generation and its batches use."""

    def __init__(self, model: Any):
        self.model = model

    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Caches]:
        caches = self.model.make_cache()
        if mask is not None:
            for cache in caches:
                cache.left_padding = mx.array((tokens.shape[1] - mask.sum(1)).numpy())
        return self.extend(caches, tokens)

    def extend(self, cache: Caches, tokens: Tensor) -> tuple[Tensor, Caches]:
        return _tensor(self.model(mx.array(tokens.numpy()), cache=cache)), cache

    def select(self, cache: Caches, rows: Tensor) -> Caches:
        for each in cache:
            each.filter(mx.array(rows.numpy()))
        return cache

    def fork(self, cache: Caches) -> Caches:
        return copy.deepcopy(cache)

    def states(self, cache: Caches) -> list[Tensor]:
        return [_tensor(each[1]) for each in cache]


class MlxRuntime:
    name = "mlx-lm"

    def open(self, directory: Path) -> MlxModel:
        """In the dtype of the config, which mlx-lm does not read."""
        dtype = getattr(mx, json.loads((directory / "config.json").read_text())["dtype"])
        model, _ = load_model(directory)
        model.set_dtype(dtype)
        return MlxModel(model)


def _tensor(array: mx.array) -> Tensor:
    return torch.from_numpy(np.array(array.astype(mx.float32)))


def load() -> Known:
    mx.set_default_device(mx.cpu)
    version = importlib.metadata.version
    return Known("mlx-lm", f"mlx-lm {version('mlx-lm')}, MLX {version('mlx')}, CPU", (), MlxRuntime())
