"""A grafted model as a directory: what `AutoModelForCausalLM.from_pretrained` reads, without remote code.

Beside config, weights and tokenizer stand graft.json (sizes, promises, what was measured, the id of every letter, the
hashes of the files) and a model card; the tokenizer is made in `tokenizer.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compiler.artifact.files import CARD
from compiler.artifact.manifest import file_hash
from compiler.artifact.others import keep_others, own_files, recorded_files
from compiler.artifact.place import staging
from compiler.artifact.save import write_text
from compiler.graft.card import graft_card
from compiler.graft.errors import GraftError
from compiler.graft.grafted import Grafted
from compiler.graft.hosts import tokenizer_of
from compiler.graft.tokenizer import has_tokenizer, save_tokenizer
from compiler.language.arguments import instance, path, truth

GRAFT = "graft.json"


def check_directory(directory: Path, overwrite: bool) -> None:
    """GraftError where something stands there that must not be replaced."""
    if directory.exists() and not directory.is_dir():
        raise GraftError(f"{directory} is a file, and a directory is needed.")
    if directory.is_dir() and any(directory.iterdir()):
        if _earlier(directory) is None:
            raise GraftError(f"{directory} holds files that are no grafted model; choose another directory.")
        if not overwrite:
            raise GraftError(f"{directory} holds a grafted model already; --force replaces it.")


def _earlier(directory: Path) -> dict[str, str] | None:
    """The files of a grafted model and their hashes, as its graft.json has them; None where there is none of ours."""
    return recorded_files(directory / GRAFT, lambda content: {"mode", "circuit", "host"} <= content.keys())


def save(
    grafted: Grafted,
    directory: str | Path,
    tokenizer: Any | None = None,
    measured: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write a direct sum; TypeError for anything else."""
    instance(grafted, Grafted, "what is saved", "a Grafted, which graft() returns,")
    target, overwrite = path(directory, "directory"), truth(overwrite, "overwrite of save")
    report = grafted.report | {"measured": dict(measured or {})}

    def write(place: Path) -> None:
        grafted.model.save_pretrained(place)
        if tokenizer is not None:
            save_tokenizer(tokenizer, place)
        write_text(place / CARD, graft_card(report))

    _exchange(target, overwrite, write, report)


def save_branch(
    model: Any, host: Path, directory: str | Path, report: Mapping[str, Any], overwrite: bool = False
) -> None:
    """Write a model with a side branch, the host's tokenizer and graft.json."""

    def write(place: Path) -> None:
        model.save_pretrained(place)
        if has_tokenizer(host):
            save_tokenizer(tokenizer_of(host), place)

    _exchange(Path(directory), overwrite, write, report)


def _exchange(directory: Path, overwrite: bool, write: Callable[[Path], None], report: Mapping[str, Any]) -> None:
    """The files and their hashes in graft.json, whole or not at all; those of an earlier model that are the user's own
    stay.
    """
    check_directory(directory, overwrite)
    with staging(Path(os.path.abspath(directory))) as place:
        write(place)
        others = keep_others(directory, place, {GRAFT} | own_files(directory, _earlier(directory) or {}))
        files = {path.name: file_hash(path) for path in sorted(place.iterdir()) if path.name not in others}
        text = json.dumps(dict(report) | {"files": files}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        write_text(place / GRAFT, text)
