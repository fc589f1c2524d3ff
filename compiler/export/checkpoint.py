"""A saved checkpoint as the writers of formats take it: config, tensors and tokens, as they were sealed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from compiler.artifact.config import check_config
from compiler.artifact.errors import of_damage
from compiler.artifact.files import CIRCUIT, CONFIG, WEIGHTS, check_shapes, file_bytes
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import check_files, manifest_content, read_manifest
from compiler.artifact.package import LanguageModel, language_model
from compiler.artifact.tokenizer import read_tokens
from compiler.artifact.weights_file import read_tensors
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.export.errors import ExportError
from compiler.language.data import DataError, from_data
from compiler.layout import Layout


class Model(Protocol):
    """A language model as Hugging Face has it: config.json, tensors by their names, the name of every id."""

    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def tensors(self) -> Mapping[str, Tensor]: ...
    @property
    def tokens(self) -> list[str]: ...


class Package(Protocol):
    """What is exported: an `Artifact` or a `Checkpoint`. compiled: the circuit in blocks, for the bare form alone."""

    @property
    def model(self) -> Any: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...
    @property
    def compiled(self) -> Compiled: ...


@dataclass(frozen=True, eq=False)
class SavedModel:
    """directory: where its circuit stands; None for a model that has none."""

    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    tokens: list[str]
    directory: Path | None = None

    @cached_property
    def layout(self) -> Layout:
        """What stands where in the tensors, from the circuit compiled again; ExportError like `Checkpoint.compiled`."""
        if self.directory is None:
            raise ExportError("the model has no circuit beside it, so it has no names for its weights.")
        return _compiled_again(self.directory, self)[1].layout


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint directory whose files are those that its manifest names."""

    directory: Path
    model: SavedModel
    manifest: Mapping[str, Any]

    @cached_property
    def compiled(self) -> Compiled:
        """Its circuit, compiled again; ExportError where that does not give the weights that were saved."""
        return _compiled_again(self.directory, self.model)[0]

    @cached_property
    def circuit(self) -> dict[str, Any]:
        """The content of circuit.json."""
        return read_json(self.directory / CIRCUIT)


def _compiled_again(directory: Path, model: SavedModel) -> tuple[Compiled, LanguageModel]:
    """The circuit of a checkpoint, and the language model that it compiles to: that of these tensors."""
    record, saved = read_manifest(directory), model.tensors
    try:
        data = read_json(directory / CIRCUIT)
        circuit = replace(from_data(data, file_bytes(directory / WEIGHTS)), end=record.promise.stop)
        groups = model.config.get("n_groups", 1)
        compiled = compile(circuit, record.arch, record.dtype, record.max_d_state, groups)
        packaged = language_model(compiled, sum(t.numel() for t in saved.values()))
    except (DataError, ValueError) as reason:
        raise ExportError(f"{directory / CIRCUIT} does not compile: {reason}") from reason
    found = packaged.tensors
    if found.keys() != saved.keys() or not all(torch.equal(found[name], saved[name]) for name in found):
        raise ExportError(f"{directory / CIRCUIT} does not compile to the weights beside it.")
    return compiled, packaged


def read(directory: str | Path) -> Checkpoint:
    """A checkpoint over tokens; CheckpointError where it is damaged, ExportError where it is over numbers."""
    directory = Path(directory)
    manifest = read_manifest(directory)
    if manifest.promise.over_numbers:
        raise ExportError(f"{directory} holds a model over numbers, which no other runtime has a place for.")
    with of_damage():
        check_files(directory, manifest)
        config = read_json(directory / CONFIG)
        check_config(config)
        tensors = read_tensors(directory / WEIGHTS)
        check_shapes(config, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
        model = SavedModel(config, tensors, read_tokens(directory), directory)
    return Checkpoint(directory, model, manifest_content(directory))
