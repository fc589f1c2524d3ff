"""Write a checkpoint directory: whole or not at all, and the same bytes for the same inputs."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from compiler.artifact.config import check_config
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CONFIG, GENERATION, MANIFEST, SEALED_FILES, WEIGHTS, check_shapes
from compiler.artifact.manifest import canonical_json, read_manifest, sealed
from compiler.artifact.tokenizer import EOS, tokenizer_files


def save(
    directory: str | Path,
    config: Mapping,
    tensors: Mapping[str, Tensor],
    tokens: Sequence[str],
    manifest: Mapping,
    overwrite: bool = False,
) -> None:
    """Write config.json, model.safetensors, tokenizer files, generation_config.json and construction.json.

    `tensors` has Hugging Face's names, `tokens` names every id and ends with the special tokens. Raises
    CheckpointError if the inputs do not fit together, if the directory exists and is not one of ours, or is one
    and `overwrite` is false. Any failure leaves the disk as it was.
    """
    target = Path(directory).resolve()
    check_config(config)
    check_shapes(config, {name: tuple(t.shape) for name, t in tensors.items()})
    _check_values(tensors)
    if len(tokens) != config["vocab_size"]:
        raise CheckpointError(f"there are {len(tokens)} token names for a vocabulary of {config['vocab_size']}.")
    texts = _texts(config, tokens)
    check_target(target, overwrite)
    try:
        with _staging(target) as staging:
            for name, text in texts.items():
                _write(staging / name, text)
            save_file(_own_storage(tensors), staging / WEIGHTS, metadata={"format": "pt"})
            shutil.copymode(staging / CONFIG, staging / WEIGHTS)  # safetensors makes files that only their owner reads
            _write(staging / MANIFEST, canonical_json(sealed(manifest, staging)))
    except (OSError, SafetensorError) as reason:
        why = getattr(reason, "strerror", None) or reason
        raise CheckpointError(f"{target} could not be written: {why}.") from reason


def _texts(config: Mapping, tokens: Sequence[str]) -> dict[str, str]:
    """The text files by name; tokenizer files keep their own order, which lists tokens by id."""
    ids = {key: config[key] for key in ("eos_token_id", "pad_token_id")}
    texts = {CONFIG: canonical_json(config), GENERATION: canonical_json(ids | {"do_sample": False})}
    end = tokens[config["eos_token_id"]]
    for name, content in tokenizer_files(tokens, None if end == EOS and tokens[-3] == EOS else end).items():
        texts[name] = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    return texts


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", newline="\n")  # the same bytes on every system


def _check_values(tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise CheckpointError(f"the tensor {name} is {tensor.dtype}, expected torch.float32.")
        if tensor.isnan().any():
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


def check_target(target: Path, overwrite: bool) -> None:
    """Raise CheckpointError where `save` must not write: anything there but, with `overwrite`, a checkpoint of ours."""
    if not os.path.lexists(target):
        return
    try:
        read_manifest(target)
    except CheckpointError as reason:
        raise CheckpointError(f"{target} exists and is not a checkpoint of ours, so it is left alone.") from reason
    if not overwrite:
        raise CheckpointError(f"{target} holds a checkpoint already: pass overwrite=True (--force) to replace it.")
    foreign = sorted({entry.name for entry in target.iterdir()} - {MANIFEST, *SEALED_FILES})
    if foreign:
        raise CheckpointError(f"{target} also holds {foreign[0]}, which is not ours and would be lost.")


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """A new directory beside the target that takes its place if the body succeeds and vanishes if it fails."""
    new_parents = [parent for parent in target.parents if not parent.exists()]
    staging = _sibling(target, "partial")
    try:
        staging.mkdir(parents=True)
        yield staging
        for path in (*staging.iterdir(), staging):
            _flush(path)
        _move_in(staging, target)
        _flush(target.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        for parent in new_parents:
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
        raise


def _move_in(staging: Path, target: Path) -> None:
    """Rename into place; an earlier checkpoint is set aside first and comes back if that fails."""
    if not target.exists():
        staging.rename(target)
        return
    retired = _sibling(target, "retired")
    target.rename(retired)
    try:
        staging.rename(target)
    except BaseException:
        retired.rename(target)
        raise
    shutil.rmtree(retired, ignore_errors=True)


def _sibling(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.{role}")


def _flush(path: Path) -> None:
    """fsync a file or directory, so that the rename cannot reach the disk before what it renames."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
