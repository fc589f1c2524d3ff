"""Where exports are written: whole or not at all, and over earlier exports only where that is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CARD
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import file_hash
from compiler.artifact.others import keep_others, own_files
from compiler.artifact.place import check_place, recover, staging, staging_file
from compiler.artifact.save import write_text
from compiler.export.errors import ExportError
from compiler.export.record import FORMAT, record_text

RECORD = "export.json"


def write_directory(
    target: Path, overwrite: bool, content: Mapping[str, Any], card: str, fill: Callable[[Path], None]
) -> None:
    """Files made by `fill`, a README.md and export.json, which is the record with the hash of each of them.

    Files in an earlier export that are not its own, and a README.md that was edited, stay. ExportError where something
    else stands there, or an export and `overwrite` is false; any failure leaves the disk as it was.
    """
    target = Path(os.path.abspath(target))
    _check(target, overwrite, _directory_record)
    try:
        with staging(target, new=not overwrite) as place:
            fill(place)
            write_text(place / CARD, card)
            others = keep_others(target, place, _own_files(target))
            files = {path.name: file_hash(path) for path in sorted(place.iterdir()) if path.name not in others}
            write_text(place / RECORD, record_text(dict(content) | {"files": files}))
    except CheckpointError as reason:
        raise ExportError(str(reason)) from reason
    except OSError as reason:
        raise ExportError(f"{target} could not be written: {reason.strerror or reason}.") from reason


def write_file(target: Path, overwrite: bool, is_ours: Callable[[Path], bool], fill: Callable[[Path], None]) -> None:
    """One file made by `fill`; ExportError as for directories. is_ours: whether a file is an earlier export."""
    target = Path(os.path.abspath(target))
    _check(target, overwrite, lambda there: there.is_file() and is_ours(there))
    try:
        with staging_file(target) as place:
            fill(place)
    except OSError as reason:
        raise ExportError(f"{target} could not be written: {reason.strerror or reason}.") from reason


def _check(target: Path, overwrite: bool, is_ours: Callable[[Path], Any]) -> None:
    if "\0" in str(target):
        raise ExportError(f"{str(target)!r} could not be written: no path holds a NUL character.")
    try:
        check_place(target)
        recover(target)
        if not os.path.lexists(target):
            return
        ours = is_ours(target)
    except (CheckpointError, OSError) as reason:
        raise ExportError(str(reason)) from reason
    if not ours:
        raise ExportError(f"{target} exists and is no export of this format, so it is left alone.")
    if not overwrite:
        raise ExportError(f"{target} holds an export already: pass overwrite=True (--force) to replace it.")


def _directory_record(target: Path) -> dict[str, Any] | None:
    """export.json of an earlier export, None where there is none."""
    try:
        content = read_json(target / RECORD)
    except CheckpointError:
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None


def _own_files(target: Path) -> set[str]:
    """The files of an earlier export, but a README.md that was edited since."""
    return {RECORD} | own_files(target, (_directory_record(target) or {}).get("files", {}))
