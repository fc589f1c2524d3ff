"""A checkpoint with one weight changed at a time, beside what the library's model makes of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from verify.checker.check import prove
from verify.checker.files import Checkpoint, in_memory
from verify.checker.formats import Rejected


def contents(directory: Path) -> tuple[Checkpoint, dict, dict | None]:
    """What stands in a checkpoint: its weights and promise, its circuit, and the task that it claims."""
    manifest, config, circuit = (
        json.loads((directory / f"{name}.json").read_text()) for name in ("construction", "config", "circuit")
    )
    tensors = {k: v.numpy() for k, v in load_file(directory / "model.safetensors").items()}
    return in_memory(config, tensors, manifest["promise"]), circuit, manifest.get("task")


@dataclass(frozen=True)
class Changed:
    """A model with one weight that is another: its scores of the letters, and the largest of all others."""

    said: str
    accepted: bool
    letters: torch.Tensor
    others: float


def changed(directory: Path, count: int, seed: int) -> Iterator[Changed]:
    """Weights changed one at a time, in the library's model; first none is."""
    manifest, config, circuit = (
        json.loads((directory / f"{name}.json").read_text()) for name in ("construction", "config", "circuit")
    )
    tensors = load_file(directory / "model.safetensors")
    library = AutoModelForCausalLM.from_pretrained(directory)
    held, chance, tokens = library.state_dict(), random.Random(seed), manifest["promise"]["language"]["tokens"]
    words = torch.tensor(np.random.default_rng(seed).integers(0, tokens, (16, 100)))
    for i in range(count + 1):
        name = chance.choice([n for n, x in tensors.items() if x.any()] if chance.random() < 0.8 else list(tensors))
        other = tensors[name].clone()
        flat = other.reshape(-1)
        live = flat.nonzero().reshape(-1).tolist()
        at = chance.choice(live) if live and chance.random() < 0.75 else chance.randrange(len(flat))
        old = float(flat[at])
        new = chance.choice([0.0, -old, 2 * old, old / 2, old + 1, old * (1 + 2**-20), 1.0, -1.0, 64.0, 0.5, old - 128])
        flat[at] = new if i else old
        arrays = {n: (other if n == name else x).numpy() for n, x in tensors.items()}
        try:
            accepted = prove(in_memory(config, arrays, manifest["promise"]), circuit, None).weights is None
        except Rejected:
            accepted = False
        with torch.no_grad():
            held[name].copy_(other)
            scores = library(words).logits
            held[name].copy_(tensors[name])
        yield Changed(f"{name}[{at}]: {old} → {new}", accepted, scores[..., :tokens], float(scores[..., tokens:].max()))
