"""Read a checkpoint directory back as a stack of real blocks, after checking that it is what was saved."""

from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from compiler.artifact.config import check_config
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CONFIG, WEIGHTS, check_shapes
from compiler.artifact.manifest import check_files, read_json, read_manifest
from compiler.artifact.model import Stack
from compiler.artifact.tokenizer import read_tokens


def load(directory: str | Path, sealed: bool = True) -> Stack:
    """The language model saved in this directory, in float32 on the CPU.

    sealed: refuse files whose hashes differ from the manifest's; a diagnosis of a damaged checkpoint turns it off.

    The stack also carries `manifest` (the content of construction.json), `config` (that of config.json) and
    `tokens` (the name of every id). Raises CheckpointError if the directory is not one of ours or any file is
    missing or differs from what was saved.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    if sealed:
        check_files(directory, manifest)
    config = read_json(directory / CONFIG)
    check_config(config)
    weights = directory / WEIGHTS
    check_shapes(config, _shapes(weights))
    stack = Stack.from_language_model(config, load_file(weights))
    stack.manifest, stack.config, stack.tokens = manifest, config, read_tokens(directory)
    return stack


def _shapes(weights: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor in the file, from its header alone."""
    try:
        with safe_open(weights, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}
    except SafetensorError as reason:
        raise CheckpointError(f"{weights} is not a safetensors file: {reason}.") from reason
