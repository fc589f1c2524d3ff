"""transformers before its scans were functions of their own: its models, with the caches of that time.

`construct conformance --runtime transformers` runs the release that PYTHONPATH names (docs/conformance_found.md).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compiler.runtime.huggingface import without_accelerators
from conformance.models.runtime import Unsupported
from conformance.runtimes.huggingface_model import HuggingFaceModel, opened


@dataclass
class Seen:
    """A cache and how many tokens it has seen."""

    params: Any
    tokens: int


class EarlierModel(HuggingFaceModel):
    """A `MambaForCausalLM` or `Mamba2ForCausalLM` that is told the positions of what comes, as its `generate` does."""

    @torch.no_grad()
    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Seen]:
        out = self.model(tokens, attention_mask=mask, use_cache=True)
        return out.logits, Seen(out.cache_params, tokens.shape[1])

    @torch.no_grad()
    def extend(self, cache: Seen, tokens: Tensor) -> tuple[Tensor, Seen]:
        end = cache.tokens + tokens.shape[1]
        positions = torch.arange(cache.tokens, end)
        out = self.model(tokens, cache_params=cache.params, cache_position=positions, use_cache=True)
        return out.logits, Seen(out.cache_params, end)

    def select(self, cache: Seen, rows: Tensor) -> Seen:
        raise Unsupported("its caches have no selection of rows")

    def states(self, cache: Seen) -> list[Tensor]:
        return [cache.params.ssm_states[i] for i in range(self.model.config.num_hidden_layers)]


class EarlierRuntime:
    name = "transformers"

    def open(self, directory: Path) -> EarlierModel:
        """In the dtype that config.json names by a key which these releases need not know."""
        without_accelerators()
        dtype = json.loads((directory / "config.json").read_text())["dtype"]
        return EarlierModel(opened(directory, torch_dtype=getattr(torch, dtype)))
