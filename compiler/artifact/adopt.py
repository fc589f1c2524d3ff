"""A checkpoint that another library wrote again: what it lost comes from the original, if nothing else changed.

`save_pretrained` of transformers writes weights, config and tokenizer, and neither construction.json nor circuit.json.
Where the weights are the original's numbers, in float32 or in the narrower dtype that a model was loaded in, and the
config describes the same model, the directory becomes a checkpoint of ours again: every sealed file is written as the
original has it, files that are nobody's stay.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from compiler.artifact.compare import tensor_differences
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CONFIG, MANIFEST, WEIGHTS
from compiler.artifact.json_files import read_json, same_json, shown
from compiler.artifact.manifest import check_files, read_manifest
from compiler.artifact.others import copy_others
from compiler.artifact.place import staging
from compiler.artifact.plain_files import kind_of
from compiler.artifact.weights_file import read_tensors

# What transformers writes beside ours, and no program needs where the tokenizer's own files are.
GENERATED = ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja")
MOST_KEPT = 1 << 30  # bytes of the files that are nobody's
HARMLESS = ("transformers_version", "dtype", "torch_dtype", "_name_or_path")


def adopt(directory: str | Path, original: str | Path) -> None:
    """Give a directory back what `save_pretrained` left out; CheckpointError, and nothing written, where it is another
    model than the original.
    """
    directory, original = Path(directory).absolute(), Path(original)
    manifest = read_manifest(original)
    check_files(original, manifest)
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is no directory.")
    _check_config(directory / CONFIG, original / CONFIG)
    written = {name: tensor.float() for name, tensor in read_tensors(directory / WEIGHTS).items()}
    found = tensor_differences(WEIGHTS, written, read_tensors(original / WEIGHTS))
    if found:
        raise CheckpointError(f"{directory} is not {original}: {found[0]}.")
    ours = {MANIFEST, *manifest.files}
    left_out = {*ours, *GENERATED}
    _check_kept([entry for entry in directory.iterdir() if entry.name not in left_out])
    with staging(directory) as place:
        copy_others(directory, place, left_out)
        for name in ours:
            shutil.copy2(original / name, place / name)


def _check_kept(entries: Iterable[Path], most: int = MOST_KEPT) -> int:
    """How many of so many bytes the files have that are nobody's; CheckpointError for more, and for what is no plain
    file: a link may lead to anything, and neither a device nor a pipe need have an end.
    """
    found = 0
    for entry in entries:
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            found += _check_kept(entry.iterdir(), most - found)
        elif stat.S_ISREG(mode):
            found += entry.lstat().st_size
        else:
            raise CheckpointError(f"{entry} is {kind_of(mode)}, and only plain files are copied: take it away first.")
        if found > most:
            raise CheckpointError(
                f"{entry} is one too many: files beside the checkpoint have more than {MOST_KEPT:,} bytes, and no more "
                "are copied."
            )
    return found


def _check_config(path: Path, original: Path) -> None:
    """Every entry of the original must be there; what transformers adds are its defaults."""
    found, expected = read_json(path), read_json(original)
    for key, value in expected.items():
        there = found.get(key) if isinstance(found, dict) else None
        if key not in HARMLESS and not same_json(there, value):
            raise CheckpointError(f"{path} has {key} = {shown(there)}, and the original {shown(value)}.")
