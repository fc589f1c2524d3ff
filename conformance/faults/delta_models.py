"""Models of the gated delta rule in transformers, right or with one bug of the rule in place of its two functions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from conformance.faults.delta import delta_rule
from conformance.faults.runtime import NONE
from conformance.runtimes.huggingface_model import HuggingFaceModel, opened

_MODULES = {"olmo_hybrid": "olmo_hybrid", "qwen3_5_text": "qwen3_5"}
DELTA_KINDS = tuple(_MODULES)
_FUNCTIONS = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")


class DeltaModel(HuggingFaceModel):
    """An `OlmoHybridForCausalLM` or `Qwen3_5ForCausalLM`, with its own cache."""

    cache = "past_key_values"


@dataclass(frozen=True)
class FaultyRule:
    """transformers with this bug of `conformance.faults.delta` ("": none) in both of its functions.

    others: bugs that cannot be told from it by what was seen.
    """

    bug: str = ""
    others: tuple[str, ...] = ()
    beside: ClassVar[Mapping[str, str]] = NONE
    kinds: ClassVar[tuple[str, ...]] = DELTA_KINDS

    @property
    def name(self) -> str:
        return " or ".join((self.bug, *self.others))

    def open(self, directory: Path) -> _FaultyModel:
        return _FaultyModel(opened(directory), self.bug)


class _FaultyModel(DeltaModel):
    def __init__(self, model: Any, bug: str):
        super().__init__(model)
        self.bug = bug

    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        with _replaced(self.model.config.model_type, self.bug):
            return super().begin(tokens, mask)

    def extend(self, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        with _replaced(self.model.config.model_type, self.bug):
            return super().extend(cache, tokens)


@contextmanager
def _replaced(kind: str, bug: str) -> Iterator[None]:
    """Both functions of the module of these models, while it lasts."""
    name = _MODULES[kind]
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    held = {function: getattr(module, function) for function in _FUNCTIONS}
    try:
        for function in held:
            setattr(module, function, partial(_rule, bug))
        yield
    finally:
        for function, own in held.items():
            setattr(module, function, own)


def _rule(
    bug: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor | None = None,
    use_qk_l2norm_in_kernel: bool = False,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    return delta_rule(query, key, value, g, beta, None, initial_state, use_qk_l2norm_in_kernel, bug)
