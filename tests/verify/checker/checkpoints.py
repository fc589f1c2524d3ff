"""Small checkpoints for the checker's tests: the files that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from safetensors.torch import save_file

from compiler.artifact.package import language_model
from compiler.driver import compile
from compiler.language.circuit import Circuit
from compiler.language.data import language_to_data, to_data


@contextmanager
def least_ballast() -> Iterator[None]:
    """Norms get the ballast that the compiler's own bounds need, and no margin."""
    with patch("compiler.exactness.ballast.BALLAST_MARGIN", 1):
        yield


def write(
    directory: Path,
    circuit: Circuit,
    target: str,
    dtype: str = "float32",
    n_groups: int = 1,
    task: dict[str, Any] | None = None,
) -> Path:
    """Compile and package into a new directory, of a wide output as many numbers as there are letters; CompileError
    where the compiler refuses. task: the one that the manifest names, None for none."""
    size = circuit.language.alphabet.size
    if circuit.output.width > size:
        circuit = replace(circuit, output=circuit.output[:size])
    model = language_model(compile(circuit, target, dtype, n_groups=n_groups))
    directory.mkdir(parents=True)
    save_file({k: v.contiguous() for k, v in model.tensors.items()}, directory / "model.safetensors", {"format": "pt"})
    (directory / "config.json").write_text(json.dumps(model.config))
    (directory / "circuit.json").write_text(json.dumps(to_data(circuit)))
    promise = language_to_data(circuit.language) | {"dtype": dtype}
    manifest = {"promise": promise} | ({} if task is None else {"task": task})
    (directory / "construction.json").write_text(json.dumps(manifest))
    return directory
