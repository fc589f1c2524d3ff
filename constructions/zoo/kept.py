"""The rows of all runs into DIR, in DIR/zoo.json: what stands there, with its checkpoint, is not built again."""

from __future__ import annotations

from pathlib import Path

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import MANIFEST, WEIGHTS
from compiler.artifact.json_files import read_json
from compiler.artifact.manifest import check_files, file_hash, read_manifest
from compiler.artifact.save import check_target
from constructions.zoo.build import circuit_hash
from constructions.zoo.entry import Entry
from constructions.zoo.row import Row, read_rows, write_rows

ROWS = "zoo.json"


class Kept:
    """The rows of a directory of checkpoints."""

    def __init__(self, directory: Path):
        self.directory = directory
        self._rows = read_rows(directory / ROWS) if (directory / ROWS).exists() else {}

    def find(self, entry: Entry, seed: int, arch: str = "") -> Row | None:
        """The row of a circuit that was built as it is now, was right, and whose checkpoint stands there unchanged."""
        row = self._rows.get(entry.name)
        if row is None or not row.good or (row.seed, row.arch) != (seed, arch) or row.circuit != circuit_hash(entry):
            return None
        same = self._wrote(row) and self._holds(entry) and _is_whole(self.directory / entry.name)
        return row if same else None

    def check_place(self, entry: Entry) -> None:
        """CheckpointError where something else than an earlier checkpoint of the circuit stands in its place."""
        place, row = self.directory / entry.name, self._rows.get(entry.name)
        check_target(place, overwrite=True)
        if place.exists() and not (self._holds(entry) or (row is not None and self._wrote(row))):
            raise CheckpointError(
                f"{place} holds a checkpoint of another circuit, so it is left alone: move it away, or give another "
                "--out."
            )

    def _wrote(self, row: Row) -> bool:
        """Whether the weights in its place are those of the row."""
        weights = self.directory / row.name / WEIGHTS
        return weights.is_file() and row.weights == file_hash(weights)

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
