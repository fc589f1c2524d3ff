"""The rows of all runs into DIR, in DIR/zoo.json, and what may be replaced there.

A row is a record of what a run left, by which its checkpoint is known again. Nothing is repeated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compiler.artifact.compare import foreign_files
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import ANSWERS, CARD, GRAPH, MANIFEST, SEALED_FILES
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import check_files, file_hash, read_manifest
from compiler.artifact.save import check_target
from constructions.command.prove import PROOF
from constructions.zoo.entry import Entry
from constructions.zoo.row import Row, read_rows, write_rows

ROWS = "zoo.json"


class Kept:
    """The rows of a directory of checkpoints."""

    def __init__(self, directory: Path):
        self.directory = directory
        self._rows = read_rows(directory / ROWS) if (directory / ROWS).exists() else {}

    def check_place(self, entry: Entry) -> None:
        """CheckpointError where something else than an earlier checkpoint of the circuit stands in its place, or a file
        beside one that programs might read with it.
        """
        place = self.directory / entry.name
        check_target(place, overwrite=True)
        if not place.exists():
            return
        if not (self._holds(entry) or self.left(entry.name)):
            raise CheckpointError(
                f"{place} holds a checkpoint of another circuit, so it is left alone: move it away, or give another "
                "--out."
            )
        for sentence in foreign_files(place, {MANIFEST, ANSWERS, GRAPH, CARD, *SEALED_FILES}):
            raise CheckpointError(f"{place} is left alone, for {sentence}: move it away.")

    def check_replaced(self, name: str, files: Mapping[str, bytes]) -> bool:
        """Whether the same checkpoint as these files stands there already. CheckpointError where another one does that
        no run has left so: it was edited, or is damaged, and would be lost.
        """
        place = self.directory / name
        check_target(place, overwrite=True)  # it may have come there since
        if not place.exists():
            return False
        ours = {file: content for file, content in files.items() if file not in (CARD, PROOF)}
        if all((place / file).is_file() and (place / file).read_bytes() == held for file, held in ours.items()):
            return True
        if not self.left(name):
            raise CheckpointError(
                f"{place} is neither what is built now nor what an earlier run left there, so it is left alone: move "
                "it away, or give another --out."
            )
        return False

    def left(self, name: str) -> bool:
        """Whether every file in its place is the one that the run left of which its row is."""
        place, row = self.directory / name, self._rows.get(name)
        manifest = place / MANIFEST
        known = row is not None and manifest.is_file() and row.manifest == file_hash(manifest)
        return known and _is_whole(place)

    def _holds(self, entry: Entry) -> bool:
        """Whether the checkpoint in its place says that it is of this circuit, of whatever mixer."""
        try:
            manifest = read_json(self.directory / entry.name / MANIFEST)
        except CheckpointError:
            return False
        return isinstance(manifest, dict) and entry.is_of(manifest)

    def add(self, row: Row) -> None:
        """Put the row in the place of an earlier one of its name, and write the file."""
        self._rows[row.name] = row
        write_rows(self.directory / ROWS, circuits=[self._rows[name] for name in sorted(self._rows)])


def _is_whole(directory: Path) -> bool:
    """Whether every file of a checkpoint is the one that was saved."""
    try:
        check_files(directory, read_manifest(directory))
    except CheckpointError:
        return False
    return True
