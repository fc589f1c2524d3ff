"""Small checkpoints for the checker's tests: the three files that it reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from safetensors.torch import save_file

from compiler.artifact.package import language_model
from compiler.driver import compile
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage


def promise(circuit: Circuit, dtype: str) -> dict:
    """The promise of a manifest: the input language as data."""
    language: InputLanguage = circuit.language
    edges = [
        {"from": e.source, "to": e.target, "tokens": ranges(e.tokens), "distinct": e.distinct} for e in language.edges
    ]
    data = {"tokens": language.alphabet.size, "start": language.start, "edges": edges, "length": language.max_length}
    return {"language": data | {"description": language.description}, "dtype": dtype}


def ranges(ids) -> list[list[int]]:
    """Sorted inclusive ranges of a set of ids."""
    found: list[list[int]] = []
    for i in sorted(ids):
        if found and found[-1][1] == i - 1:
            found[-1][1] = i
        else:
            found.append([i, i])
    return found


def write(directory: Path, circuit: Circuit, target: str, dtype: str = "float32") -> Path:
    """Compile and package into a new directory, of a wide output as many numbers as there are letters; CompileError
    where the compiler refuses."""
    size = circuit.language.alphabet.size
    if circuit.output.width > size:
        circuit = replace(circuit, output=circuit.output[:size])
    model = language_model(compile(circuit, target, dtype))
    directory.mkdir(parents=True)
    save_file({k: v.contiguous() for k, v in model.tensors.items()}, directory / "model.safetensors", {"format": "pt"})
    (directory / "config.json").write_text(json.dumps(model.config))
    (directory / "construction.json").write_text(json.dumps({"promise": promise(circuit, dtype)}))
    return directory
