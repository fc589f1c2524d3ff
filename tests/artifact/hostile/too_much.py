"""Files that ask for too much: a circuit, a language, a config, a construction's parameters or a file of any size."""

from __future__ import annotations

import dataclasses
import json
import os
import random
from contextlib import suppress
from pathlib import Path

from compiler.artifact.files import CIRCUIT, MANIFEST, WEIGHTS
from constructions.registry import families
from tests.artifact import oversized


def enlarge(directory: Path, rng: random.Random, files: tuple[str, ...]) -> tuple[str, str]:
    """Let one of the files ask for too much; (the family, or the kind of file, and what was done)."""
    kind = rng.choice(("circuit", "circuit", "circuit", "circuit", "config", "parameters", "promise", "large file"))
    how = _KINDS[kind](directory, rng, files)
    return (how.split()[0] if kind == "circuit" else kind), how


def any_size(rng: random.Random, most: float) -> int:
    """Up to 10^most, each order of magnitude as often."""
    return int(10 ** rng.uniform(1, most))


def _circuit(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """One of the families, in the promise too; a list is as long as a file of some MB holds it."""
    name = rng.choice(sorted(oversized.FAMILIES))
    n = any_size(rng, 5.5 if name in oversized.WRITTEN_OUT else 15)
    data = oversized.FAMILIES[name](json.loads((directory / CIRCUIT).read_text()), n)
    (directory / CIRCUIT).write_text(json.dumps(data))
    manifest = json.loads((directory / MANIFEST).read_text())
    manifest["promise"] |= data["promise"]
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return f"{name} {n}"


def _config_size(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    content = json.loads((directory / "config.json").read_text())
    keys = rng.sample([key for key, value in content.items() if type(value) is int], rng.choice((1, 1, 2, 3)))
    for key in keys:
        content[key] = any_size(rng, 15)
    (directory / "config.json").write_text(json.dumps(content))
    return f"config.json: {', '.join(f'{key} = {content[key]}' for key in keys)}"


def _parameter(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """Of a construction: sizes, and a promise that fits them as far as it is looked at before the work."""
    manifest = json.loads((directory / MANIFEST).read_text())
    if not manifest.get("params"):
        manifest |= {"construction": rng.choice(sorted(families())), "params": {}}
        kind = families()[manifest["construction"]]
        manifest["params"] = {f.name: any_size(rng, 6) for f in dataclasses.fields(kind) if f.type == "int"}
    else:
        for key in rng.sample([k for k, v in manifest["params"].items() if type(v) is int], 2):
            manifest["params"][key] = any_size(rng, 8)
    with suppress(Exception):  # parameters that fit nothing are refused by themselves
        built = families()[manifest["construction"]](**manifest["params"])
        built.check_sizes()
        manifest["promise"]["language"]["tokens"] = built.letters()
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return f"{manifest['construction']} {manifest['params']}"


def _promise(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    manifest = json.loads((directory / MANIFEST).read_text())
    key = rng.choice(("length", "error_bound", "tokens", "description", "last"))
    n = any_size(rng, 15)
    if key == "error_bound":
        text = rng.choice(("NaN", "Infinity", "-Infinity", "1e999", "-1e999"))
        manifest["promise"]["error_bound"] = 77777
        (directory / MANIFEST).write_text(json.dumps(manifest).replace("77777", text))
        return f"promise.error_bound = {text}"
    if key == "length":
        manifest["promise"]["length"] = n
    elif key == "tokens":
        manifest["promise"]["language"]["tokens"] = n
    elif key == "last":
        manifest["promise"]["language"]["edges"][0]["tokens"] = [[0, n]]
    else:
        manifest["promise"]["description"] = "x" * min(n, 10**7)
    (directory / MANIFEST).write_text(json.dumps(manifest))
    return f"promise: {key} {n}"


def _large_file(directory: Path, rng: random.Random, files: tuple[str, ...]) -> str:
    """A file that is long, and holes for the most part; or weights whose header tells of much."""
    n = any_size(rng, 10)
    path = directory / rng.choice(files)
    if path.name == WEIGHTS and rng.random() < 0.5:
        header = json.dumps({"x": {"dtype": "F32", "shape": [n, n], "data_offsets": [0, 4 * n * n]}}).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        return f"{WEIGHTS} of {n} × {n} numbers"
    if rng.random() < 0.5:
        path.write_text(rng.choice(("[[],", '{"":', "1,", " ")) * min(n, 10**7))
    else:  # JSON of 2^25 bytes is too large for both readers, and to seal what is longer takes most of a case's time
        os.truncate(path, n if path.name == WEIGHTS else min(n, 10**9))
    return f"{path.name} of {path.stat().st_size} bytes"


_KINDS = {
    "circuit": _circuit,
    "config": _config_size,
    "parameters": _parameter,
    "promise": _promise,
    "large file": _large_file,
}
