"""A compiled circuit as a test of a runtime: its checkpoint, tokens, exact logits, states, and where they inform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ModelCase:
    """A model with what it must say.

    directory:   its checkpoint, as Hugging Face reads it.
    tokens:      (rows, length) int64.
    logits:      (rows, length, vocab) float64, what every right implementation gives, bit for bit in its dtype.
    informative: (rows, length) bool, where the logits depend on what came before.
    states:      for each layer the recurrent state after the last token of row 0, float64: (d, n) or (h, p, n); none
                 where a state fades.
    tolerance:   how far a logit or an entry of a state may be off, by the largest of its row or layer; 0 for bits.
    """

    name: str
    asks: str
    directory: Path
    tokens: Tensor
    logits: Tensor
    informative: Tensor
    states: list[Tensor]
    tolerance: float = 0.0

    def write(self) -> None:
        """Put the vectors beside the checkpoint: NAME.safetensors."""
        tensors = {"tokens": self.tokens, "logits": self.logits, "informative": self.informative}
        tensors |= {f"state.{i}": state for i, state in enumerate(self.states)}
        save_file(
            {k: m.contiguous() for k, m in tensors.items()},
            _vectors(self.directory),
            {"asks": json.dumps([self.asks, self.tolerance])},
        )


def _vectors(directory: Path) -> Path:
    return directory.parent / f"{directory.name}.safetensors"


def read(directory: Path) -> ModelCase:
    """The vectors of a checkpoint that `write` has put beside it; FileNotFoundError where there are none."""
    with safe_open(_vectors(directory), framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        asks, tolerance = json.loads(file.metadata()["asks"])
    states = [tensors[f"state.{i}"] for i in range(sum(name.startswith("state.") for name in tensors))]
    return ModelCase(
        directory.name, asks, directory, tensors["tokens"], tensors["logits"], tensors["informative"], states, tolerance
    )


def read_all(directory: Path) -> Iterator[ModelCase]:
    """All models in a directory that `construct conformance --out` has written, by name."""
    for path in sorted(directory.glob("*.safetensors")):
        if (directory / path.stem / "config.json").is_file():
            yield read(directory / path.stem)


def right_entries(found: Tensor, expected: Tensor, tolerance: float = 0.0) -> Tensor:
    """Which entries are right: bits of the narrower of float32 and their own dtype, or within the tolerance of the
    largest. NaN is wrong.
    """
    given = found.detach().cpu().double()
    if not tolerance:
        return (given == expected.to(found.dtype).double()) & torch.isfinite(given)
    return (given - expected).abs() <= tolerance * expected.abs().max()
