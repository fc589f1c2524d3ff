"""Whether a checkpoint still says what it said: the files that a program reads, by their meaning."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from compiler.artifact.files import CIRCUIT, MANIFEST, WEIGHTS
from tests.artifact.hostile.originals import files_of


def changed(good: Path, bad: Path) -> str | None:
    """The first file that a program reads and that is another one now."""
    for name in files_of(good):
        if name == WEIGHTS:
            same = _bits(load_file(good / name)) == _bits(load_file(bad / name))
        else:
            same = _meaning(name, good / name) == _meaning(name, bad / name)
        if not same:
            return name
    extra = {p.name for p in bad.iterdir()} - {p.name for p in good.iterdir()}
    return min(extra, default=None)


def _bits(tensors: dict[str, torch.Tensor]) -> dict[str, tuple]:
    return {name: (tensor.shape, tensor.numpy().tobytes()) for name, tensor in tensors.items()}


def _meaning(name: str, path: Path) -> str:
    """The JSON text without what nobody computes with."""
    content = json.loads(path.read_text())
    if name == CIRCUIT:
        content.pop("groups", None)  # names for sets of letters; the streams tell ids
        for stream in content["streams"]:
            stream.pop("source", None)
    if name == MANIFEST:
        for key in ("files", "sha256", "card", "versions", "verification"):
            content.pop(key, None)
    if name in ("config.json", "generation_config.json"):
        content.pop("transformers_version", None)
    return json.dumps(content, sort_keys=True)
