"""construction.json: the manifest of a compiled circuit, sealed with the hashes of the files beside it.

The manifest states guarantees, so it is protected as well: `sha256` is the hash of its own canonical text
without that entry. It is parsed once, into the records of `records.py`.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.artifact.consistent import check_consistent
from compiler.artifact.errors import CheckpointError, DisguisedError, of_damage
from compiler.artifact.files import ANSWERS, CIRCUIT, GRAPH, MANIFEST, NUMBERS_FILES, SEALED_FILES, WEIGHTS
from compiler.artifact.json_files import canonical_json, check_size, read_json, shown
from compiler.artifact.place import recover
from compiler.artifact.plain_files import check_plain
from compiler.artifact.records import Fingerprint, Manifest
from compiler.artifact.schema import parse
from compiler.language.language_said import language_said

FORMAT = "compiled-construction"
DISGUISED = "disguised-construction"  # of a checkpoint in another basis, whose weights have no names
FORMAT_VERSION = 2


def sealed(manifest: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The content of construction.json for the files in this directory.

    Entries that are ours (`format`, `format_version`, `files`, `sha256`) replace those of the same name.
    """
    promise = manifest.get("promise")
    over_numbers = isinstance(promise, Mapping) and promise.get("language", promise) is None
    names = _sealed_names(over_numbers, manifest.get("answers") is not None, (directory / GRAPH).is_file())
    files = {name: vars(_fingerprint(directory / name)) for name in names}
    content = dict(manifest) | {"files": files, "format": FORMAT, "format_version": FORMAT_VERSION}
    content.pop("sha256", None)
    return content | {"sha256": _self_hash(content)}


def _sealed_names(over_numbers: bool, answers: bool, graph: bool) -> tuple[str, ...]:
    names = NUMBERS_FILES if over_numbers else (*SEALED_FILES, *([ANSWERS] if answers else []))
    return (*names, GRAPH) if graph else names  # older checkpoints have none


def manifest_content(directory: str | Path) -> dict[str, Any]:
    """The content of a checkpoint's construction.json as JSON, after the checks of `read_manifest`."""
    path = _checkpoint_directory(directory) / MANIFEST
    with of_damage():
        content = read_json(path)
    if isinstance(content, dict) and content.get("format") == DISGUISED:
        raise DisguisedError(
            f"{directory} is disguised: nothing says what its weights hold. "
            f"`construct undisguise {directory} --key FILE --out OUT` writes the plain checkpoint."
        )
    with of_damage():
        return _checked(content, path)


def _checked(content: Any, path: Path) -> dict[str, Any]:
    """The content of a manifest that stands there; CheckpointError where it is not the one that was written."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not the manifest of a compiled construction.")
    version = content.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise CheckpointError(f"{path} has format version {shown(version)}, expected {FORMAT_VERSION}.")
    _check_language(content, path)
    claimed = content.get("sha256")
    actual = _self_hash({key: value for key, value in content.items() if key != "sha256"})
    if claimed != actual:
        raise CheckpointError(f"{path} was altered: its content has SHA-256 {actual}, expected {shown(claimed, 80)}.")
    check_consistent(parse(Manifest, content, MANIFEST))
    return content


def is_disguised(directory: Path) -> bool:
    """Whether a disguised checkpoint stands there."""
    try:
        content = read_json(directory / MANIFEST)
    except (CheckpointError, OSError):
        return False
    return isinstance(content, dict) and content.get("format") == DISGUISED


def manifest_damage(directory: Path) -> str:
    """Why the manifest that stands there is none of any kind, in one sentence; "" where it is one, or none stands."""
    path = directory / MANIFEST
    if not path.exists():
        return ""
    try:
        content = read_json(path)
    except (CheckpointError, OSError) as reason:
        return str(reason)
    return "" if isinstance(content, dict) and "format" in content else f"{path} is no manifest: it has no format."


def _check_language(content: dict[str, Any], path: Path) -> None:
    """CheckpointError, before a hash or a record is made of it, for an input language that is too large or is none."""
    from compiler.language.data.languages import check_automaton
    from compiler.language.data.scalars import DataError

    promise = content.get("promise")
    language = promise.get("language") if isinstance(promise, dict) else None
    try:
        if language is not None:
            check_automaton(language)
    except DataError as reason:
        raise CheckpointError(f"{path}: {reason}.") from reason


def read_manifest(directory: str | Path) -> Manifest:
    """The manifest of a checkpoint.

    Raises CheckpointError if the directory is not one of ours, or the manifest was altered or is ill-typed. The
    other files are not looked at: `load` does that.
    """
    return parse(Manifest, manifest_content(directory), MANIFEST)


def check_files(directory: str | Path, manifest: Manifest, opens: bool = True) -> None:
    """Raise CheckpointError unless every file beside this manifest is the one that was saved.

    opens: whether the header of the weights is read first, which imports torch; for who only looks, it is not.
    """
    with of_damage():
        for name in _sealed_names(manifest.promise.over_numbers, manifest.answers is not None, GRAPH in manifest.files):
            _check_file(Path(directory) / name, manifest.files.get(name), opens)


def _check_file(path: Path, expected: Fingerprint | None, opens: bool) -> None:
    """One file of `check_files`."""
    if expected is None:
        raise CheckpointError(f"{MANIFEST} has no hash of {path.name}.")
    check_plain(path)
    if path.name != WEIGHTS:
        check_size(path)
    size = path.stat().st_size  # compared first, for a hash takes as long as the file is
    if size != expected.bytes:
        raise CheckpointError(f"{path} is damaged: bytes is {size}, expected {shown(expected.bytes, 80)}.")
    if opens and path.name == WEIGHTS:
        from compiler.artifact.weights_file import read_metadata  # which imports torch

        read_metadata(path)  # before it is hashed: a header that tells of less than the file holds is refused
    if (found := file_hash(path)) != expected.sha256:
        raise CheckpointError(f"{path} is damaged: sha256 is {found}, expected {shown(expected.sha256, 80)}.")


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read in pieces: the weights may not fit into memory twice."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _checkpoint_directory(directory: str | Path) -> Path:
    directory = Path(directory)
    try:
        recover(directory)
        exists = directory.exists()
    except (OSError, ValueError) as reason:  # a name too long, or one that no file can have
        why = getattr(reason, "strerror", None) or reason
        raise CheckpointError(f"{str(directory)[:80]!r} cannot be looked for: {why}.") from reason
    if not exists:
        raise CheckpointError(f"{directory} does not exist.")
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is a file, expected a checkpoint directory.")
    if not (directory / MANIFEST).exists():
        called = "the present directory" if directory == Path() else directory
        raise CheckpointError(f"{called} is not a checkpoint of ours: it has no {MANIFEST}.")
    check_plain(directory / MANIFEST)
    return directory


def _fingerprint(path: Path) -> Fingerprint:
    return Fingerprint(path.stat().st_size, file_hash(path))


def _self_hash(content: Mapping[str, Any]) -> str:
    return text_hash(canonical_json(content))


def is_own(manifest: Mapping[str, Any]) -> bool:
    """Whether it is a manifest of a circuit of one's own, whose words are its author's and not a construction's."""
    return manifest.get("construction") is None


def inputs_of(directory: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """{"inputs": what the automaton of a circuit of one's own says, in words}; {} of a construction, whose description
    is ours, and of a model over numbers.
    """
    promise = manifest["promise"]
    if not is_own(manifest) or promise["language"] is None:
        return {}
    circuit = read_json(directory / CIRCUIT) if (directory / CIRCUIT).exists() else {}
    letters = circuit.get("alphabet") if isinstance(circuit, dict) else None
    known = isinstance(letters, list) and len(letters) == promise["language"]["tokens"]
    return {"inputs": language_said(promise, letters if known else None)}
