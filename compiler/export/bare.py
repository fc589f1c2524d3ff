"""The bare stack as one safetensors file: embedding, blocks and head at their least sizes, no norms.

Tensors are `embedding.weight`, `blocks.i.…` as the class of the mixer names them, and `head.weight`. The metadata has
one entry, for safetensors writes several in any order: the record as JSON, whose `stack` says what builds the modules:
the class, the sizes of each block, and whether the stream is added to what a block gives.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError, safe_open

from compiler.artifact.package import bare, needs_residual, packaged_sizes
from compiler.artifact.save import write_tensors
from compiler.export.checkpoint import Package
from compiler.export.directory import write_file
from compiler.export.record import FORMAT, need_tokens, record, record_text

RECORD = "construction.export"
_WARNINGS = (
    "There is no norm: build modules of the named class (mamba_ssm's Mamba or Mamba2, the latter without rmsnorm).",
    "Special tokens have no place here: the ids are those of the circuit's own letters.",
)


def write(package: Package, path: Path, overwrite: bool) -> None:
    """One .safetensors file; ExportError where the circuit beside the weights does not compile to them."""
    need_tokens(package, "safetensors-bare")
    compiled = package.compiled
    stack = bare(compiled)
    target = compiled.context.target
    told = {
        "mixer": (target.printed_by or (target.name,))[0],
        "residual": needs_residual(compiled),
        "blocks": [asdict(size) for size in packaged_sizes(compiled)],
        "tokens": list(compiled.source.token_alphabet.tokens),
    }
    content = record(package, "safetensors-bare", _WARNINGS) | {"stack": told}

    def fill(place: Path) -> None:
        write_tensors(dict(stack.state_dict()), place, {RECORD: record_text(content)})

    write_file(path, overwrite, is_ours, fill)


def is_ours(path: Path) -> bool:
    """Whether a file is an export of ours, by its metadata."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError):
        return False
    return FORMAT in metadata.get(RECORD, "")
