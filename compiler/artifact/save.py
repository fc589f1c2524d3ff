"""Write a checkpoint directory: whole or not at all, and the same bytes for the same inputs."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from compiler.artifact.answers import answers_text
from compiler.artifact.artifact import Artifact
from compiler.artifact.card import model_card
from compiler.artifact.config import check_config
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import (
    ANSWERS,
    CARD,
    CIRCUIT,
    CONFIG,
    GENERATION,
    GRAPH,
    MANIFEST,
    SEALED_FILES,
    WEIGHTS,
    check_shapes,
)
from compiler.artifact.json_files import canonical_json, read_json
from compiler.artifact.manifest import FORMAT, Manifest, file_hash, sealed, text_hash
from compiler.artifact.numbers_config import is_numbers
from compiler.artifact.others import copy_others
from compiler.artifact.place import check_place, recover, staging
from compiler.artifact.schema import parse
from compiler.artifact.tokenizer import tokenizer_files
from compiler.language.arguments import instance, truth
from compiler.language.arguments import path as path_of
from compiler.language.data import DataError
from compiler.language.data.budget import check_budget, check_language


def save(artifact: Artifact, directory: str | Path, overwrite: bool = False) -> None:
    """Write a compiled circuit as a checkpoint that Hugging Face loads and `construct verify` verifies.

    overwrite: replace a checkpoint of ours; files that are not ours, and a README.md that was edited, stay. Raises
    CheckpointError if the directory exists and is not one of ours, or is one and `overwrite` is false. Any failure
    leaves the disk as it was.
    """
    truth(overwrite, "overwrite of save")
    instance(artifact, Artifact, "what save writes", "an Artifact (compiled.save(directory) makes and writes one)")
    model = artifact.model
    card = model_card(artifact.manifest, model.config, artifact.circuit.get("alphabet", ()), *artifact.example)
    contents = (model.config, model.tensors, model.tokens, artifact.manifest, artifact.circuit, card)
    beside = {GRAPH: graph_text(artifact.graph)}
    if artifact.answers is not None:
        beside[ANSWERS] = answers_text(artifact.answers)
    write(directory, *contents, overwrite=overwrite, beside=beside)


def write(
    directory: str | Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    tokens: Sequence[str],
    manifest: Mapping[str, Any],
    circuit: Mapping[str, Any],
    card: str,
    overwrite: bool = False,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the files of a checkpoint from their contents; errors as for `save`, and where they do not fit together.

    `tensors` has Hugging Face's names, `tokens` names every id and ends with the special tokens; entries of the
    manifest that are made here (hashes, format) replace those of the same name. beside: other text files, by name.
    """
    target = Path(os.path.abspath(path_of(directory, "the directory")))
    if "\0" in str(target):
        raise CheckpointError(f"{str(target)!r} could not be written: no path holds a NUL character.")
    check_config(config)
    check_shapes(config, {name: tuple(t.shape) for name, t in tensors.items()})
    _check_values(tensors)
    if not is_numbers(config) and len(tokens) != config["vocab_size"]:
        raise CheckpointError(f"there are {len(tokens)} token names for a vocabulary of {config['vocab_size']}.")
    _check_readable(circuit, manifest["promise"], tensors)
    texts = checkpoint_texts(config, tokens, manifest["promise"]["stop"], circuit) | dict(beside)
    check_target(target, overwrite)
    try:
        with staging(target, new=not overwrite) as place:
            kept = keep_what_is_not_ours(target, place)
            for name, text in (texts if kept else texts | {CARD: card}).items():
                write_text(place / name, text)
            write_tensors(tensors, place / WEIGHTS, {"format": "pt"})
            content = sealed(dict(manifest) | {"card": text_hash(card)}, place)
            parse(Manifest, content, MANIFEST)
            write_text(place / MANIFEST, canonical_json(content))
    except OSError as reason:
        why = reason.strerror or reason
        raise CheckpointError(f"{target} could not be written: {why}.") from reason


def checkpoint_texts(
    config: Mapping[str, Any], tokens: Sequence[str], stop: str | None, circuit: Mapping[str, Any]
) -> dict[str, str]:
    """The sealed text files by name; tokenizer files keep their own order, which lists tokens by id."""
    texts = {CONFIG: canonical_json(config)}
    texts[CIRCUIT] = json.dumps(circuit, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    if is_numbers(config):
        return texts
    ids = {key: config[key] for key in ("eos_token_id", "pad_token_id")}
    texts[GENERATION] = canonical_json(ids | {"do_sample": False})
    for name, content in tokenizer_files(tokens, stop).items():
        texts[name] = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    return texts


def graph_text(graph: Mapping[str, Any]) -> str:
    """causal_graph.json; a checkpoint made of the same circuit has the same bytes."""
    return json.dumps(graph, ensure_ascii=False, allow_nan=False) + "\n"


def check_target(target: Path, overwrite: bool) -> None:
    """Raise CheckpointError where `save` must not write: anything there but, with `overwrite`, a checkpoint of ours."""
    check_place(target)
    recover(target)
    if not os.path.lexists(target):
        return
    if not _is_ours(target):
        raise CheckpointError(f"{target} exists and is not a checkpoint of ours, so it is left alone.")
    if not overwrite:
        raise CheckpointError(f"{target} holds a checkpoint already: pass overwrite=True (--force) to replace it.")


def _is_ours(target: Path) -> bool:
    """Whether a checkpoint of ours stands there, whole or damaged, of any version."""
    try:
        content = read_json(target / MANIFEST)
    except CheckpointError:
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def keep_what_is_not_ours(target: Path, place: Path) -> bool:
    """Copy the user's own files of an earlier checkpoint; True where its README.md is one of them."""
    if not target.is_dir():
        return False
    card = target / CARD
    mine = card.is_file() and file_hash(card) == read_json(target / MANIFEST).get("card")
    copy_others(target, place, {MANIFEST, ANSWERS, GRAPH, *SEALED_FILES, *([CARD] if mine else [])})
    return (place / CARD).exists()


def write_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str]) -> None:
    """A safetensors file that others may read, as far as the directory lets them."""
    path.touch()
    mode = path.stat().st_mode
    save_file(_own_storage(tensors), path, metadata=dict(metadata))
    path.chmod(mode)  # safetensors makes files that only their owner reads


def write_text(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", newline="\n")  # the same bytes on every system


def _check_readable(circuit: Mapping[str, Any], promise: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """CheckpointError where readers would refuse circuit or language for its size: what is saved can be verified."""
    try:
        check_language(promise.get("language"))
        check_budget(circuit, sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()))
    except DataError as reason:
        raise CheckpointError(f"it is too large to be read again: {reason}.") from reason


def _check_values(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise CheckpointError(f"the tensor {name} is {tensor.dtype}, expected torch.float32.")
        if tensor.numel() and tensor.min().isnan():  # the least of numbers and NaN is NaN; nothing is formed of each
            raise CheckpointError(f"the tensor {name} holds NaN.")


def _own_storage(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as safetensors takes them: contiguous, and copied only where two share memory."""
    seen, own = set(), {}
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        own[name] = tensor.clone() if storage in seen else tensor
        seen.add(storage)
    return own
