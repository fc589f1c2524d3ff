"""A grafted model as a directory: what `AutoModelForCausalLM.from_pretrained` reads, without remote code.

Beside config, weights and tokenizer stand graft.json (sizes, promises, what was measured, the id of every letter, the
hashes of the files) and a model card. The tokenizer is the host's, where the host's directory has one, with a token for
each letter that is no token of the host: `<circuit:letter>`, a name that text does not hold by accident.
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
from compiler.language.arguments import instance, path, truth

GRAFT = "graft.json"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


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


def letter_name(circuit: str, letter: str) -> str:
    """What a letter is called in the host's tokenizer."""
    return f"<{circuit}:{letter}>"


def tokenizer_with_letters(host: Path, grafted: Grafted) -> Any | None:
    """The host's tokenizer with the letters that come after its vocabulary; None where the host has none.

    GraftError where a name is a token of the host already, or where the host has more tokens than embeddings.
    """
    if not any((host / name).is_file() for name in TOKENIZER):
        return None
    tokenizer = tokenizer_of(host)
    first = grafted.report["host"]["vocab"]
    if len(tokenizer) > first:
        raise GraftError(f"the host's tokenizer has {len(tokenizer)} tokens, and its embedding has {first} rows.")
    known = tokenizer.get_vocab()
    name = grafted.report["circuit"]
    added = {place: letter_name(name, letter) for letter, place in grafted.ids.items() if place >= first}
    clash = next((new for new in added.values() if new in known), None)
    if clash is not None:
        raise GraftError(f"{clash!r} is a token of the host already; give the circuit another name.")
    tokenizer.add_tokens([f"<unused:{i}>" for i in range(len(tokenizer), first)])
    tokenizer.add_tokens([added[place] for place in sorted(added)])
    return tokenizer


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
            tokenizer.save_pretrained(place)
        write_text(place / CARD, graft_card(report))

    _exchange(target, overwrite, write, report)


def save_branch(
    model: Any, host: Path, directory: str | Path, report: Mapping[str, Any], overwrite: bool = False
) -> None:
    """Write a model with a side branch, the host's tokenizer and graft.json."""

    def write(place: Path) -> None:
        model.save_pretrained(place)
        if any((host / name).is_file() for name in TOKENIZER):
            tokenizer_of(host).save_pretrained(place)

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
