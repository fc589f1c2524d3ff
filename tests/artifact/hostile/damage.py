"""Damage to one file of a checkpoint, at random: its bytes, a value anywhere in its JSON, a tensor, the file itself."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from compiler.artifact.files import WEIGHTS

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 10**9, -(10**9), 2**31, 2**63, 10**30, 0.0, -0.5, 1.5, 1e30, 1e308,
    "", "x", "mqar", "mamba", "mamba2", "s4d", "float16", "bfloat16", "<eos>", "a", "v0", "1/0", "\x00", "é" * 1000,
    [], {}, [[]], {"": {}}, [None] * 3, [0, 1], [-1, 10**9], ["a"], {"type": "Lowercase"}, {"x": 1},
]  # fmt: skip


def damage(directory: Path, rng: random.Random, files: tuple[str, ...]) -> tuple[str, str]:
    """Damage one of the files; (the kind of damage, what was done)."""
    kind = rng.choice(("bytes", "json", "json", "json", "text", "tensor", "missing"))
    return kind, _KINDS[kind](directory, rng, files)


def _json_files(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in files if name.endswith(".json"))


def _bytes(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(files)
    data = bytearray(path.read_bytes())
    how = rng.choice(("flip", "cut", "append", "noise", "empty", "header"))
    if how == "flip":
        for _ in range(rng.choice((1, 1, 5, 50))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == "cut":
        data = data[: rng.randrange(len(data))]
    elif how == "append":
        data += rng.randbytes(rng.choice((1, 8, 1000)))
    elif how == "noise":
        data = bytearray(rng.randbytes(rng.choice((1, 100, 10_000))))
    elif how == "empty":
        data = bytearray()
    else:  # of a safetensors file: its length in 8 bytes
        data[:8] = rng.choice((b"\xff" * 8, b"\x00" * 8, (1 << 40).to_bytes(8, "little"), rng.randbytes(8)))
    path.write_bytes(data)
    return f"{how} {path.name}"


def _text(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(_json_files(files))
    deep = rng.choice((500, 5_000, 200_000))
    text = rng.choice(("[" * deep, "[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "7", "[]", "null", '"x"',
                       "NaN", "1" * 10_000, '{"a": 1, "a": 2}', "\ufeff{}"))  # fmt: skip
    path.write_text(text)
    return f"{path.name} is {text[:20]}"


def _json(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(_json_files(files))
    content = json.loads(path.read_text())
    place, where = content, ""
    while True:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        where += f".{key}"
        if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.25:
            break
        place = place[key]
    how = rng.choice(("value", "value", "value", "remove", "add", "near"))
    value = rng.choice(VALUES)
    if how == "remove":
        del place[key]
    elif how == "add":
        if isinstance(place, dict):
            place[rng.choice(("suppress_tokens", "x", "auto_map", "dtype", "stop"))] = value
        else:
            place.insert(key, value)
    elif how == "near" and type(place[key]) in (int, float):
        place[key] += rng.choice((-1, 1, 0.5, 10**9))
    elif how == "near" and isinstance(place[key], str):
        place[key] += rng.choice(("x", " ", "\n"))
    else:
        place[key] = value
    path.write_text(json.dumps(content))
    return f"{how} {path.name}{where} {value!r:.40}"


def _tensor(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / WEIGHTS
    tensors = load_file(path)
    name = rng.choice(sorted(tensors))
    flat, at = tensors[name].view(-1), rng.randrange(tensors[name].numel())
    how = rng.choice(("one", "one", "nan", "inf", "integers", "half", "missing", "extra", "shape", "metadata"))
    if how == "one":
        flat[at] = flat[at] * 1.5 + rng.choice((0, 0, 1, -0.0, 1e-30))
    elif how in ("nan", "inf"):
        flat[at] = float(how)
    elif how in ("integers", "half"):
        tensors[name] = tensors[name].to(torch.int64 if how == "integers" else torch.float16)
    elif how == "missing":
        del tensors[name]
    elif how == "extra":
        tensors[rng.choice(("lm_head.bias", "x", "backbone.layers.7.mixer.D"))] = torch.zeros(3)
    elif how == "shape":
        tensors[name] = tensors[name].reshape(-1)
    save_file(tensors, path, metadata={"format": "np"} if how == "metadata" else {"format": "pt"})
    return f"{how} {name}[{at}]"


def _missing(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    path = directory / rng.choice(files)
    path.unlink()
    how = rng.choice(("gone", "directory", "endless", "pipe", "beside"))
    if how == "directory":
        path.mkdir()
    elif how == "endless":
        path.symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "beside":
        path.with_name("adapter_config.json").write_text("{}")
    return f"{how} {path.name}"


_KINDS = {"bytes": _bytes, "json": _json, "text": _text, "tensor": _tensor, "missing": _missing}
