"""Checkpoints: directories that Hugging Face's `AutoModelForCausalLM` loads, with a manifest and hashes.

`save` writes one, `load` checks one and returns it as a `compiler.model.Stack`, `read_manifest` reads what it
claims. `config` and `tokenizer` make the two inputs of `save` that are neither weights nor manifest.
"""

from compiler.checkpoint.errors import CheckpointError
from compiler.checkpoint.load import load
from compiler.checkpoint.manifest import read_manifest
from compiler.checkpoint.save import check_target, save

__all__ = ["CheckpointError", "load", "read_manifest", "check_target", "save"]
