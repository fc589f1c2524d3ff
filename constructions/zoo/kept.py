"""The rows of all runs into DIR, in DIR/zoo.json: what stands there, with its checkpoint, is not built again."""

from __future__ import annotations

from pathlib import Path

from compiler.artifact.files import WEIGHTS
from compiler.artifact.manifest import file_hash
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
        """The row of a circuit that was built as it is now, was right, and whose weights stand there unchanged."""
        row = self._rows.get(entry.name)
        weights = self.directory / entry.name / WEIGHTS
        if row is None or not row.good or (row.seed, row.arch) != (seed, arch) or not weights.is_file():
            return None
        same = row.circuit == circuit_hash(entry) and row.weights == file_hash(weights)
        return row if same else None

    def add(self, row: Row) -> None:
        """Put the row in the place of an earlier one of its name, and write the file."""
        self._rows[row.name] = row
        write_rows(self.directory / ROWS, circuits=[self._rows[name] for name in sorted(self._rows)])
