"""A directory that is written anew: what an earlier run wrote there is replaced, and the user's own files stay."""

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CARD
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import file_hash


def own_files(target: Path, hashes: Mapping[str, str]) -> set[str]:
    """The files that were written with these hashes, but a README.md that was edited since."""
    card = target / CARD
    edited = card.is_file() and file_hash(card) != hashes.get(CARD)
    return set(hashes) - ({CARD} if edited else set())


def recorded_files(record: Path, is_ours: Callable[[Mapping[str, Any]], bool]) -> dict[str, str] | None:
    """The files and their hashes that the record of an earlier run has; None where there is none of ours. is_ours: of
    the record's content."""
    try:
        content = read_json(record)
    except CheckpointError:
        return None
    files = content.get("files") if isinstance(content, dict) and is_ours(content) else None
    return files if isinstance(files, dict) else None


def keep_others(target: Path, place: Path, ours: Collection[str]) -> set[str]:
    """Copy all but our files of an earlier directory to the one that was just written; the names of what was copied.

    A README.md of the user's stays instead of the new one. CheckpointError where another has the name of a new file.
    """
    others = {entry.name for entry in target.iterdir()} - set(ours) if target.is_dir() else set()
    lost = sorted(name for name in others - {CARD} if os.path.lexists(place / name))
    if lost:
        raise CheckpointError(
            f"{target / lost[0]} was not written by us and would be lost: move it away, or name another directory."
        )
    if CARD in others:
        (place / CARD).unlink(missing_ok=True)
    if others:
        copy_others(target, place, ours)
    return others


def copy_others(target: Path, place: Path, ours: Collection[str]) -> None:
    """Copy to `place` every entry of a directory but those of ours."""
    for entry in sorted(target.iterdir()):
        if entry.name in ours:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, place / entry.name, symlinks=True)
        else:
            shutil.copy2(entry, place / entry.name, follow_symlinks=False)
