"""What the suite asks of a runtime: a sequence from its start, its continuation, and what a cache must bear."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from torch import Tensor


class Unsupported(Exception):
    """The runtime has no such mode."""


class Model(Protocol):
    """A checkpoint opened by a runtime. What it does not do raises Unsupported; any other error is told as a refusal.

    Logits are (b, l, vocab) at every position of the tokens given; caches are the runtime's own.
    """

    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        """Tokens (b, l) from their start; mask (b, l): 0 where a token is padding on the left."""

    def extend(self, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """The next tokens (b, k) of all rows; the cache given may be spent."""

    def select(self, cache: Any, rows: Tensor) -> Any:
        """The cache of these rows, in this order, as beam search asks for."""

    def fork(self, cache: Any) -> Any:
        """A copy that goes on by itself, as speculative decoding asks for."""

    def states(self, cache: Any) -> list[Tensor]:
        """The recurrent state of each layer: (b, d, n) or (b, h, p, n)."""


class Runtime(Protocol):
    """How checkpoints are opened; name and version for the report."""

    name: str

    def open(self, directory: Path) -> Model:
        """A model from a checkpoint directory of Hugging Face's form."""
