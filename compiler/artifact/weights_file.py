"""A safetensors file: its tensors, their shapes from the header alone, and what is wrong with it, in our words.

The format: 8 bytes with the length of a JSON header, the header, the numbers of all tensors.
"""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import WEIGHTS, file_bytes
from compiler.artifact.json_files import strict_value
from compiler.artifact.plain_files import check_plain

_LENGTH = 8  # bytes in front of the header
_LONGEST_HEADER = 100_000_000  # bytes, as the format has it


def read_tensors(weights: Path) -> dict[str, Tensor]:
    """Every tensor of the file; CheckpointError where it is none of ours."""
    return read_whole(weights)[1]


def read_whole(weights: Path) -> tuple[dict[str, str] | None, dict[str, Tensor]]:
    """(the entry of the header that is no tensor, every tensor), read once; CheckpointError as above."""
    check_plain(weights)
    try:
        with safe_open(weights, framework="pt") as file:
            found = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        _check_once(weights)
        return found
    except (SafetensorError, OSError, MemoryError, ValueError, KeyError) as reason:
        raise CheckpointError(f"{_fault(weights, 'is not a safetensors file of ours')}.") from reason


def read_metadata(weights: Path) -> dict[str, str] | None:
    """The entry of the header that is no tensor; CheckpointError where the file is none of ours."""
    check_plain(weights)
    try:
        with safe_open(weights, framework="pt") as file:
            metadata = file.metadata()
        _check_once(weights)
        return metadata
    except (SafetensorError, OSError, MemoryError) as reason:
        raise CheckpointError(f"{_fault(weights, 'is not a safetensors file')}.") from reason


def read_shapes(weights: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every tensor in the file, from its header alone; CheckpointError where one is no float32."""
    check_plain(weights)
    shapes = {}
    try:
        with safe_open(weights, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                part = file.get_slice(name)
                if part.get_dtype() != "F32":
                    raise CheckpointError(f"{WEIGHTS} has {name:.60} of dtype {part.get_dtype()}, expected F32.")
                shapes[name] = tuple(part.get_shape())
        _check_once(weights)
    except (SafetensorError, OSError, MemoryError) as reason:
        raise CheckpointError(f"{_fault(weights, 'is not a safetensors file')}.") from reason
    return shapes


def _check_once(weights: Path) -> None:
    """CheckpointError where the header names a tensor twice: the library reads it, and others take the other one."""
    with weights.open("rb") as file:
        header = file.read(int.from_bytes(file.read(_LENGTH), "little"))
    try:
        strict_value(header.decode("utf-8"))
    except (ValueError, RecursionError) as reason:
        raise CheckpointError(
            f"{weights} is not a safetensors file of ours: its header is refused: {reason}."
        ) from reason


def _fault(weights: Path, what: str) -> str:
    """Which file cannot be read or is not what it should be, and why: the library quotes the file, at any length."""
    try:
        return f"{weights} {what}: {_in_header(weights)}"
    except OSError as reason:
        return f"{weights} cannot be read: {(reason.strerror or 'for no reason that is told').lower()}"


def _in_header(weights: Path) -> str:
    """What is wrong with a file of which the library says that something is."""
    size = file_bytes(weights)
    try:
        with weights.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH), "little")
            if size < _LENGTH or length > size - _LENGTH:
                return f"it has {size} bytes, too few for its header"
            if length > _LONGEST_HEADER:
                return f"its header has {length} bytes, and {_LONGEST_HEADER} are possible"
            header = json.loads(file.read(length))
    except (ValueError, RecursionError, MemoryError):
        return "its header is not JSON"
    if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
        return "its header does not list tensors"
    return "its header does not describe the bytes behind it"
