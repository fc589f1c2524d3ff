"""Checkpoints: directories that Hugging Face's `AutoModelForCausalLM` loads, with a manifest and hashes.

`save` writes an `Artifact` (a compiled circuit with its model and promise), `load` checks a checkpoint and returns it
as a `compiler.artifact.model.Stack`, `read_manifest` reads what it claims, `differences` compares every file with what
its circuit compiles to. `config` and `tokenizer` make the contents of the files that are neither weights nor manifest.
"""

from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import differences
from compiler.artifact.errors import CheckpointError
from compiler.artifact.load import load
from compiler.artifact.manifest import Manifest, read_manifest
from compiler.artifact.save import check_target, save

__all__ = [
    "Artifact", "CheckpointError", "Manifest", "check_target", "differences", "load", "read_manifest", "save",
]  # fmt: skip
