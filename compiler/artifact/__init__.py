"""Checkpoints: directories that Hugging Face's `AutoModelForCausalLM` loads, with a manifest and hashes.

`save.save` (`compiler.save`) writes an `artifact.Artifact` (a compiled circuit with its model and promise), `load.load`
(`compiler.load`) checks a checkpoint and returns it as a `model.Stack`, `read_manifest` reads what it claims,
`compare.differences` compares every file with what its circuit compiles to. `config` and `tokenizer` make the contents
of the files that are neither weights nor manifest.

Only what does not need torch is imported here.
"""

from compiler.artifact.errors import CheckpointError
from compiler.artifact.manifest import Manifest, read_manifest

__all__ = ["CheckpointError", "Manifest", "read_manifest"]
