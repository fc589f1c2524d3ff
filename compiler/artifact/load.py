"""Read a checkpoint directory back as a stack of real blocks, after checking that it is what was saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.artifact.config import check_config
from compiler.artifact.dtype import in_dtype
from compiler.artifact.errors import CheckpointError, of_damage
from compiler.artifact.files import CONFIG, MANIFEST, WEIGHTS, check_shapes
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import Manifest, check_files, read_manifest
from compiler.artifact.numbers_config import is_numbers
from compiler.artifact.tokenizer import read_tokens
from compiler.artifact.weights_file import read_shapes, read_tensors
from compiler.language.arguments import path as path_of
from compiler.language.arguments import truth
from compiler.tracing.model import TracedModel

if TYPE_CHECKING:
    from compiler.artifact.numeric import NumericStack


def load(directory: str | Path, sealed: bool = True) -> TracedModel | NumericStack:
    """The language model saved in this directory, or the model over numbers, in the dtype of its promise, on the CPU.

    sealed: refuse files whose hashes differ from the manifest's; a diagnosis of a damaged checkpoint turns it off.

    The stack also carries `manifest` (a `Manifest`), `config` (the content of config.json) and
    `tokens` (the name of every id). `trace` and `patch` show and change what it computes, by the names of its circuit.
    Raises CheckpointError if the directory is not one of ours or any file is
    missing or differs from what was saved.
    """
    directory, sealed = path_of(directory, "the directory"), truth(sealed, "sealed of load")
    manifest = read_manifest(directory)
    with of_damage():
        return _loaded(directory, manifest, sealed)


def _loaded(directory: Path, manifest: Manifest, sealed: bool) -> TracedModel | NumericStack:
    """`load`, of a checkpoint that stands there: where its files do not fit together, one of them was changed."""
    if sealed:
        check_files(directory, manifest)
    config = read_json(directory / CONFIG)
    check_config(config)
    if is_numbers(config):
        return _over_numbers(directory, manifest, config)
    tokens = tokens_of(directory, config)
    weights = directory / WEIGHTS
    check_shapes(config, read_shapes(weights))
    stack = TracedModel.from_language_model(config, read_tensors(weights))
    stack = in_dtype(stack, manifest.dtype)
    stack.manifest, stack.config, stack.tokens, stack.directory = manifest, config, tokens, directory
    return stack


def tokens_of(directory: Path, config: Any) -> list[str]:
    """The name of every id; CheckpointError where config.json is none of ours, or has other ids."""
    check_config(config)
    tokens = read_tokens(directory)
    if len(tokens) != config["vocab_size"]:
        raise CheckpointError(f"{directory} has {len(tokens)} tokens for a vocabulary of {config['vocab_size']}.")
    return tokens


def load_over_tokens(directory: str | Path) -> TracedModel:
    """`load`, and CheckpointError for a model over numbers."""
    stack = load(directory)
    if not isinstance(stack, TracedModel):
        raise CheckpointError(f"{directory} holds a model over numbers, and one over tokens is needed.")
    return stack


def _over_numbers(directory: Path, manifest: Manifest, config: dict[str, Any]) -> NumericStack:
    from compiler.artifact.numeric import loaded_stack  # which imports the compiler

    if not manifest.promise.over_numbers:
        raise CheckpointError(f"{directory / CONFIG} is of a model over numbers, and its promise is over tokens.")
    if manifest.promise.length is None:
        raise CheckpointError(
            f"{directory / MANIFEST}: promise.length is null, and a model over numbers has a longest input."
        )
    check_shapes(config, read_shapes(directory / WEIGHTS))
    stack = loaded_stack(config, read_tensors(directory / WEIGHTS), manifest.promise.length)
    stack = in_dtype(stack, manifest.dtype)
    stack.manifest, stack.config = manifest, config
    return stack
