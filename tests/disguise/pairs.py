"""Disguises and their keys, and how these tests change one."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import load_file, save_file

from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import file_hash, text_hash
from constructions.command.cli import command_line

ARCHES = ("mamba", "mamba2")


def run(*arguments: object) -> int:
    try:
        return command_line()([str(a) for a in arguments], standalone_mode=False) or 0
    except SystemExit as stop:
        return int(stop.code or 0)


def key(place: Path, arch: str) -> Path:
    return place / f"{arch}-other.key.json"


def spoiled(source: Path, out: Path, name: str, at: int) -> Path:
    """A copy with one weight changed, and sealed again as if it had been written so."""
    out.mkdir()
    for file in source.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    tensors = load_file(out / "model.safetensors")
    flat = tensors[name].reshape(-1)
    flat[at] = flat[at] * 2 if flat[at] else 1
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    content = json.loads((out / "construction.json").read_text("utf-8"))
    content.pop("sha256")
    content["files"]["model.safetensors"] = file_hash(out / "model.safetensors")
    (out / "construction.json").write_text(canonical_json(content | {"sha256": text_hash(canonical_json(content))}))
    return out


def retold(directory: Path, change) -> None:
    """construction.json of a disguise, changed and sealed anew."""
    content = json.loads((directory / "construction.json").read_text("utf-8"))
    content.pop("sha256")
    change(content)
    content["sha256"] = text_hash(canonical_json(content))
    (directory / "construction.json").write_text(json.dumps(content), "utf-8")
