"""Checkpoints: directories that Hugging Face's `AutoModelForCausalLM` loads, with a manifest and hashes.

`save.save` (`compiler.save`) writes an `artifact.Artifact` (a compiled circuit with its model and promise), `load.load`
(`compiler.load`) checks a checkpoint and returns it as a `model.Stack`, `read_manifest` reads what it claims,
`compare.differences` compares every file with what its circuit compiles to. `config` and `tokenizer` make the contents
of the files that are neither weights nor manifest.

The manifest is imported when it is first asked for: it names targets, and these raise `CheckpointError`.
"""

from compiler.artifact.errors import CheckpointError
from compiler.lazy import lazy_names

lazy_names(__name__, {"Manifest": "compiler.artifact.manifest", "read_manifest": "compiler.artifact.manifest"})

__all__ = ["CheckpointError", "Manifest", "read_manifest"]
