"""A model of transformers with its own cache, as the cases of whole models drive it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class HuggingFaceModel:
    """A `MambaForCausalLM` or `Mamba2ForCausalLM`, with its own cache.

    cache: what the class calls it, among its arguments and its results.
    """

    cache = "cache_params"

    def __init__(self, model: Any):
        self.model = model

    @torch.no_grad()
    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        out = self.model(tokens, attention_mask=mask, use_cache=True)
        return out.logits, out[self.cache]

    @torch.no_grad()
    def extend(self, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        out = self.model(tokens, use_cache=True, **{self.cache: cache})
        return out.logits, out[self.cache]

    def select(self, cache: Any, rows: Tensor) -> Any:
        cache.reorder_cache(rows)
        return cache

    def fork(self, cache: Any) -> Any:
        return copy.deepcopy(cache)

    def states(self, cache: Any) -> list[Tensor]:
        return [cache.get_recurrent_state(i, state_idx=0) for i in range(self.model.config.num_hidden_layers)]


def opened(directory: Path, **options: Any) -> Any:
    """The checkpoint as its class in transformers, without messages."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(directory, local_files_only=True, **options).eval()
