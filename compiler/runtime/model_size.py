"""How large a model that transformers builds of a directory may become: the tensors in its files set the limit.

transformers builds what config.json says before it looks at the weights, and draws random numbers for whatever the
files lack. A config.json of a billion layers beside a few tensors would fill the memory first.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch.nn.modules.module import register_module_parameter_registration_hook as watch_parameters

from compiler.artifact.errors import CheckpointError, first_line
from compiler.artifact.json_files import shown
from compiler.artifact.plain_files import text_of

_TIED, _PACKED = 2, 16  # parameters for each number of a file: one more that is tied to it; as many as it packs
_FUSED, _ALWAYS = 8, 1_000  # tensors that transformers makes of one in a file, and such as no file needs to hold


@dataclass(frozen=True)
class Size:
    """How many tensors, and numbers in them."""

    tensors: int = 0
    numbers: int = 0


def size_of(directory: Path) -> Size:
    """What a model of these weight files may have at most, from their headers; CheckpointError for one without."""
    tensors = numbers = 0
    for name, suffix, shapes in (("model", ".safetensors", _safetensors), ("pytorch_model", ".bin", _pickled)):
        for file in _files(directory, name, suffix) if not tensors else ():  # transformers prefers safetensors
            try:
                found = list(shapes(file))
            except Exception as reason:  # whatever a file that is no such thing makes the libraries raise
                raise CheckpointError(f"{directory} cannot be read as a model: {first_line(reason)}") from reason
            tensors += len(found)
            numbers += sum(prod(shape) * (_PACKED if packed else _TIED) for shape, packed in found)
    return Size(_FUSED * tensors + _ALWAYS, numbers + _ALWAYS)


def _files(directory: Path, name: str, suffix: str) -> list[Path]:
    """The weight files of a directory, and those that its index names; no pipe, which may never begin."""
    found = set(directory.glob(f"{name}*{suffix}"))
    for index in directory.glob(f"{name}*{suffix}.index.json"):
        named = _content(index).get("weight_map")
        shards = named.values() if isinstance(named, Mapping) else ()
        found |= {directory / shard for shard in shards if isinstance(shard, str) and shard.endswith(suffix)}
    return sorted(file for file in found if file.is_file())


def _content(file: Path) -> Mapping[str, Any]:
    """The object of a JSON file; an empty one where there is none, for transformers says what is wrong with it."""
    try:
        content = json.loads(text_of(file))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, Mapping) else {}


@contextmanager
def no_larger_than(directory: Path, most: Size) -> Iterator[None]:
    """Within it CheckpointError is raised as soon as a module is given more parameters than that."""
    _check_layers(directory, most)
    held: dict[tuple[int, str], int] = {}
    total = 0

    def count(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        nonlocal total
        at = (id(module), name)
        if parameter is None or at in held:
            return
        held[at] = parameter.numel()
        total += held[at]
        if total > most.numbers or len(held) > most.tensors:
            raise CheckpointError(
                f"{directory} cannot be read as a model: its config.json asks for {total:,} numbers or more, in "
                f"{len(held):,} tensor{'s' * (len(held) > 1)} or more, and its weight files hold far less."
            )

    hook = watch_parameters(count)
    try:
        yield
    finally:
        hook.remove()


def _check_layers(directory: Path, most: Size) -> None:
    """CheckpointError for more layers than tensors: some configurations list them, before there is any model."""
    for name, number in _layer_counts(_content(directory / "config.json")):
        if number > most.tensors:
            raise CheckpointError(
                f"{directory} cannot be read as a model: its config.json has {shown(name)} = {shown(number)}, far more "
                "than its weight files have tensors."
            )


def _layer_counts(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The whole numbers of a configuration, and of those within it, that may say how many layers there are."""
    within: list[Mapping[str, Any]] = [config]
    for content in within:
        for name, value in content.items():
            if isinstance(value, Mapping):
                within.append(value)
            elif "layer" in name and isinstance(value, int):
                yield name, value


def _safetensors(file: Path) -> Iterator[tuple[tuple[int, ...], bool]]:
    """(shape, whether a number of it may be several) of each tensor."""
    with safe_open(file, framework="pt") as opened:
        for name in opened.keys():  # noqa: SIM118 (it is no mapping)
            part = opened.get_slice(name)
            yield tuple(part.get_shape()), not part.get_dtype().startswith(("F", "BF"))


def _pickled(file: Path) -> Iterator[tuple[tuple[int, ...], bool]]:
    tensors = torch.load(file, map_location="meta", weights_only=True, mmap=zipfile.is_zipfile(file))
    for tensor in tensors.values() if isinstance(tensors, Mapping) else ():
        if isinstance(tensor, torch.Tensor):
            yield tuple(tensor.shape), not tensor.is_floating_point()
