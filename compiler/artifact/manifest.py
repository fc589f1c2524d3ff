"""construction.json: the manifest of a compiled circuit, sealed with the hashes of the files beside it.

The manifest states guarantees, so it is protected as well: `sha256` is the hash of its own canonical text
without that entry.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import MANIFEST, SEALED_FILES

FORMAT = "compiled-construction"
FORMAT_VERSION = 1


def canonical_json(content) -> str:
    """The one text of a JSON value: sorted keys, no NaN or infinity; raises CheckpointError if it has none."""
    try:
        return json.dumps(content, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    except (TypeError, ValueError) as reason:
        raise CheckpointError(f"the manifest or config cannot be written as JSON: {reason}.") from reason


def sealed(manifest: Mapping, directory: Path) -> dict:
    """The content of construction.json for the files in this directory.

    Entries that are ours (`format`, `format_version`, `files`, `sha256`) replace those of the same name.
    """
    files = {name: _fingerprint(directory / name) for name in SEALED_FILES}
    content = dict(manifest) | {"files": files, "format": FORMAT, "format_version": FORMAT_VERSION}
    content.pop("sha256", None)
    return content | {"sha256": _self_hash(content)}


def read_manifest(directory: str | Path) -> dict:
    """The content of a checkpoint's construction.json.

    Raises CheckpointError if the directory is not one of ours or the manifest was altered. The other files are
    not looked at: `load` does that.
    """
    path = _checkpoint_directory(directory) / MANIFEST
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not the manifest of a compiled construction.")
    if content.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format version {content.get('format_version')!r}, expected {FORMAT_VERSION}."
        )
    claimed = content.get("sha256")
    actual = _self_hash({key: value for key, value in content.items() if key != "sha256"})
    if claimed != actual:
        raise CheckpointError(f"{path} was altered: its content has SHA-256 {actual}, expected {claimed}.")
    return content


def check_files(directory: str | Path, manifest: Mapping) -> None:
    """Raise CheckpointError unless every file beside this manifest is the one that was saved."""
    for name in SEALED_FILES:
        path, expected = Path(directory) / name, manifest["files"][name]
        if not path.is_file():
            raise CheckpointError(f"{path} is missing from the checkpoint.")
        found = _fingerprint(path)
        for what in ("bytes", "sha256"):
            if found[what] != expected[what]:
                raise CheckpointError(f"{path} is damaged: {what} is {found[what]}, expected {expected[what]}.")


def read_json(path: Path):
    """Parse one of our JSON files; raises CheckpointError if it cannot be read."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as reason:
        raise CheckpointError(f"{path} cannot be read: {reason.strerror}.") from reason
    except ValueError as reason:
        raise CheckpointError(f"{path} is not JSON: {reason}.") from reason


def _checkpoint_directory(directory: str | Path) -> Path:
    directory = Path(directory)
    if not directory.exists():
        raise CheckpointError(f"{directory} does not exist.")
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is a file, expected a checkpoint directory.")
    if not (directory / MANIFEST).is_file():
        raise CheckpointError(f"{directory} is not a checkpoint of ours: it has no {MANIFEST}.")
    return directory


def _fingerprint(path: Path) -> dict:
    """Size and hash of a file, read in pieces: the weights may not fit into memory twice."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _self_hash(content: Mapping) -> str:
    return hashlib.sha256(canonical_json(content).encode("utf-8")).hexdigest()
