"""A compiled circuit as a test of a runtime: its checkpoint, tokens, exact logits, states, and where they inform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from compiler.artifact.manifest import file_hash


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
        """Put the vectors beside the checkpoint: NAME.safetensors, which has the hashes of its files as well."""
        tensors = {"tokens": self.tokens, "logits": self.logits, "informative": self.informative}
        tensors |= {f"state.{i}": state for i, state in enumerate(self.states)}
        save_file(
            {k: m.contiguous() for k, m in tensors.items()},
            vectors_of(self.directory),
            {"asks": json.dumps([self.asks, self.tolerance, hashes(self.directory)])},
        )


def vectors_of(directory: Path) -> Path:
    """The file of vectors that belongs to a checkpoint."""
    return directory.parent / f"{directory.name}.safetensors"


def hashes(directory: Path) -> dict[str, str]:
    """SHA-256 of each file of a checkpoint, by its name; "" of what is no file."""
    return {path.name: file_hash(path) if path.is_file() else "" for path in sorted(directory.iterdir())}


def written(path: Path) -> tuple[str, float, dict[str, str]] | None:
    """(what the model asks, its tolerance, the hashes of its files), as a file of vectors says; None for another file.

    No hashes stand in files of before there were.
    """
    try:
        with safe_open(path, framework="pt") as file:
            found = json.loads((file.metadata() or {}).get("asks", "[]"))
    except (OSError, SafetensorError, ValueError):
        return None
    kinds = [type(each) for each in found] if isinstance(found, list) else []
    if kinds not in ([str, float], [str, float, dict]):
        return None
    return found[0], found[1], found[2] if len(found) > 2 else {}


def read(directory: Path) -> ModelCase:
    """The vectors of a checkpoint that `write` has put beside it; ValueError where there are none, and where it is
    another checkpoint now.
    """
    path = vectors_of(directory)
    told = written(path)
    if told is None:
        raise ValueError(f"{path} is no file of vectors.")
    asks, tolerance, files = told
    for name in ("config.json", "model.safetensors"):
        if not (directory / name).is_file() or files.get(name) != file_hash(directory / name):
            raise ValueError(
                f"{directory / name} is not the file that the vectors in {path} are of: `construct conformance --out "
                f"DIR` writes both anew."
            )
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    states = [tensors[f"state.{i}"] for i in range(sum(name.startswith("state.") for name in tensors))]
    return ModelCase(
        directory.name, asks, directory, tensors["tokens"], tensors["logits"], tensors["informative"], states, tolerance
    )


def read_all(directory: Path) -> Iterator[ModelCase]:
    """All models in a directory that `construct conformance --out` has written, by name; others there are left alone.

    ValueError where another checkpoint stands in the place of one.
    """
    for path in sorted(directory.glob("*.safetensors")):
        if (directory / path.stem / "config.json").is_file() and written(path) is not None:
            yield read(directory / path.stem)


def right_entries(found: Tensor, expected: Tensor, tolerance: float = 0.0) -> Tensor:
    """Which entries are right: bits of the narrower of float32 and their own dtype, or within the tolerance of the
    largest. NaN is wrong.
    """
    given = found.detach().cpu().double()
    if not tolerance:
        return (given == expected.to(found.dtype).double()) & torch.isfinite(given)
    return (given - expected).abs() <= tolerance * expected.abs().max()
