"""What a manifest must hold beside the types of its entries: lists that are as long as others, and named sizes.

Every command reads a manifest through this, so that none of them meets a name without its size or its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import MANIFEST
from compiler.artifact.json_files import shown
from compiler.artifact.records import GuaranteeRecord, Manifest, SizesRecord, VerificationRecord
from compiler.artifact.schema import parse

OF_A_BLOCK = ("d_model", "d_inner", "d_state")
OF_A_CERTIFICATE: dict[str, Any] = {
    "kind": str,
    "level": str,
    "holds": bool,
    "margin": float | None,
    "domain": str,
    "parts": dict[str, bool],
    "asks": str | None,
    "rests_on": list[str],
}


def check_consistent(manifest: Manifest) -> None:
    """CheckpointError, one sentence that names the entry, where two entries of a manifest do not fit together."""
    _check_sizes(manifest.sizes, over_numbers=manifest.promise.over_numbers)
    _same_length("blocks", manifest.blocks, "sizes.blocks", manifest.sizes.blocks)
    _check_meanings(manifest)
    if manifest.guarantee is not None:
        _check_guarantee(manifest.guarantee)
    if manifest.verification is not None:
        _check_verification(manifest.verification)


def _check_sizes(sizes: SizesRecord, over_numbers: bool) -> None:
    if len(sizes.blocks) != sizes.layers:
        _refuse(f"sizes.blocks has {len(sizes.blocks)} entries, and sizes.layers is {shown(sizes.layers)}")
    for i, block in enumerate(sizes.blocks):
        _has(f"sizes.blocks[{i}]", block, OF_A_BLOCK)
    if over_numbers:
        return
    if sizes.packaged is None or sizes.parameters is None:
        _refuse(f"sizes.{'packaged' if sizes.packaged is None else 'parameters'} is null, and this is a language model")
    _has("sizes.packaged", sizes.packaged, (*OF_A_BLOCK, "layers"))


def _check_meanings(manifest: Manifest) -> None:
    said = manifest.meanings
    if said is None:  # older checkpoints have none
        return
    _same_length("meanings.lanes", said.lanes, "lanes", manifest.lanes)
    _same_length("meanings.blocks", said.blocks, "blocks", manifest.blocks)
    for i, (meant, named) in enumerate(zip(said.blocks, manifest.blocks, strict=True)):
        _same_length(f"meanings.blocks[{i}].channels", meant.channels, f"blocks[{i}].channels", named.channels)
        _same_length(f"meanings.blocks[{i}].columns", meant.columns, f"blocks[{i}].columns", named.columns)


def _check_guarantee(guarantee: GuaranteeRecord) -> None:
    """A certificate has entries of its kind; what all have is read, and so has its type."""
    for name, value in (guarantee.certificate or {}).items():
        if name in OF_A_CERTIFICATE:
            parse(OF_A_CERTIFICATE[name], value, f"{MANIFEST}: guarantee.certificate.{name}")


def _check_verification(verification: VerificationRecord) -> None:
    failure = verification.failure
    if failure is not None and len(failure.interval) != 2:
        _refuse(f"verification.failure.interval has {len(failure.interval)} entries, expected 2")


def _has(where: str, content: dict[str, int], names: Sequence[str]) -> None:
    for name in names:
        if name not in content:
            _refuse(f"{where} has no entry {name}")


def _same_length(where: str, found: Sequence[object], other: str, expected: Sequence[object]) -> None:
    if len(found) != len(expected):
        _refuse(f"{where} has {len(found)} entries, and {other} has {len(expected)}")


def _refuse(said: str) -> NoReturn:
    raise CheckpointError(f"{MANIFEST}: {said}.")
