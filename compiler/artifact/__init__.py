"""Checkpoints: directories that Hugging Face's `AutoModelForCausalLM` loads, with a manifest and hashes.

`save` writes one, `load` checks one and returns it as a `compiler.artifact.model.Stack`, `read_manifest` reads what it
claims. `config` and `tokenizer` make the two inputs of `save` that are neither weights nor manifest.
"""

from compiler.artifact.errors import CheckpointError
from compiler.artifact.load import load
from compiler.artifact.manifest import read_manifest
from compiler.artifact.save import check_target, save

__all__ = ["CheckpointError", "load", "read_manifest", "check_target", "save"]
