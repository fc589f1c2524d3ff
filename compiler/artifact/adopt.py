"""A checkpoint that another library wrote again: what it lost comes from the original, if nothing else changed.

`save_pretrained` of transformers writes weights, config and tokenizer, and neither construction.json nor circuit.json.
Where the weights are the original's numbers, in float32 or in the narrower dtype that a model was loaded in, and the
config describes the same model, the directory becomes a checkpoint of ours again: every sealed file is written as the
original has it, files that are nobody's stay. A file that would be lost is one of the original's, byte for byte, or
what save_pretrained makes of one; for any other the directory is refused.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from compiler.artifact.compare import foreign_files, tensor_differences
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CONFIG, GENERATION, MANIFEST, WEIGHTS
from compiler.artifact.json_files import read_json, same_json, shown, strict_value
from compiler.artifact.manifest import check_files, file_hash, read_manifest
from compiler.artifact.others import copy_others
from compiler.artifact.place import staging
from compiler.artifact.plain_files import kind_of
from compiler.artifact.tokenizer import TOKENIZER_FILES
from compiler.artifact.weights_file import read_tensors

# What transformers writes beside ours, and no program needs where the tokenizer's own files are.
GENERATED = ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja")
MOST_KEPT = 1 << 30  # bytes of the files that are nobody's
HARMLESS = ("transformers_version", "dtype", "torch_dtype", "_name_or_path")
# What transformers writes into them of its own: the class, how it was loaded, and a template that adds no token.
OF_A_TOKENIZER = ("post_processor", "padding", "truncation", "model")
OF_A_TOKENIZER_CONFIG = (
    "tokenizer_class", "backend", "is_local", "local_files_only", "model_max_length", "added_tokens_decoder",
    "extra_special_tokens", "name_or_path", "special_tokens_map_file",
)  # fmt: skip


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
    for name in sorted({*ours, *GENERATED} - {CONFIG, WEIGHTS}):
        _check_lost(directory / name, original / name)
    left_out = {*ours, *GENERATED}
    _check_kept([entry for entry in directory.iterdir() if entry.name not in left_out])
    for sentence in foreign_files(directory, left_out):
        raise CheckpointError(f"{directory} would be no checkpoint, for {sentence}: move it away.")
    with staging(directory) as place:
        copy_others(directory, place, left_out)
        for name in ours:
            shutil.copy2(original / name, place / name)


def _check_lost(path: Path, original: Path) -> None:
    """CheckpointError where what would be lost is neither the original's file nor what save_pretrained makes of it."""
    if not os.path.lexists(path) or (path.is_file() and original.is_file() and file_hash(path) == file_hash(original)):
        return
    made = path.is_file() and path.name in (GENERATION, *TOKENIZER_FILES, *GENERATED) and path.suffix == ".json"
    if not made or not _is_made(path.name, read_json(path), original.parent):
        raise CheckpointError(
            f"{path} is neither the original's nor what save_pretrained makes of it, and would be lost: move it away."
        )


def _is_made(name: str, found: Any, original: Path) -> bool:
    """Whether transformers writes this content of a file, where the original's files were loaded."""
    tokenizer, config = (read_json(original / file) for file in TOKENIZER_FILES)
    try:
        if name == "added_tokens.json":
            return _has({token["content"]: token["id"] for token in tokenizer["added_tokens"]}, found)
        if name == "special_tokens_map.json":
            told = {key: value["content"] if isinstance(value, dict) else value for key, value in found.items()}
            return _has(config, told)
        if name == GENERATION:
            return _has(found, read_json(original / name), changed=HARMLESS, added=HARMLESS)
        if name == TOKENIZER_FILES[1]:
            return _has(found, config, changed=OF_A_TOKENIZER_CONFIG, added=OF_A_TOKENIZER_CONFIG)
        return _has(found, tokenizer, changed=OF_A_TOKENIZER, added=()) and _has(found["model"], tokenizer["model"])
    except (LookupError, TypeError, AttributeError):  # nothing of the kind
        return False


def _has(found: Mapping, wanted: Mapping, changed: Collection[str] = (), added: Collection[str] | None = None) -> bool:
    """Whether every entry is there, but the changed ones, and no other beside the added ones; None: any other."""
    more = () if added is None else set(found) - set(wanted) - set(added)
    return not any(found[key] for key in more) and all(
        key in changed or (key in found and same_json(found[key], value)) for key, value in wanted.items()
    )


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
    """Every entry of the original must be there, as it was or as transformers has it when it has read the original;
    what transformers adds are its defaults.
    """
    found, expected = read_json(path), read_json(original)
    for key, value in expected.items():
        there = found.get(key) if isinstance(found, dict) else None
        if key not in HARMLESS and not same_json(there, value) and not same_json(there, _as_read(expected).get(key)):
            one, other = shown(there), shown(value)
            told = other if one != other else "other entries"
            raise CheckpointError(f"{path} has {key} = {one}, and the original {told}.")
    more = set(found) - set(expected) - set(HARMLESS)
    unknown = sorted(more - _defaults(found.get("model_type"))) if more else ()
    if unknown:
        raise CheckpointError(
            f"{path} has {shown(unknown[0])}, which neither the original nor transformers has, and it would be lost: "
            "take it out."
        )


def _as_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """What transformers makes of a config, as the JSON that it would write: of None it may make a default. Nothing of
    one that it does not read.
    """
    from transformers import AutoConfig

    try:
        return strict_value(AutoConfig.for_model(**config).to_json_string(use_diff=False))
    except Exception:  # of any kind: a config may hold anything, and each class checks its entries in its own way
        return {}


def _defaults(kind: object) -> set[str]:
    """What a config of transformers has of its own."""
    from transformers import AutoConfig

    return set(AutoConfig.for_model(kind).to_dict())
