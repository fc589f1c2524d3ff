"""Rows of experiments in a file: what stands there is not run again, and a Markdown page is written from it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

from compiler.artifact.json_files import shown
from compiler.artifact.plain_files import text_of, write_whole
from constructions.experiments.entry import Entry
from constructions.experiments.run import Row, row_key

_CHAINS_END = [field.name for field in fields(Row)].index("promise")
_TRAINED = "trained"


class KeptRows:
    """The rows of a file by experiment, and what was trained; ValueError, in one sentence, for a file that is none.

    trained: the results of `controls.train` by the description of the control.
    """

    def __init__(self, path: Path):
        self.path = path
        self._rows: dict[str, list[Row]] = {}
        self.trained: dict[str, dict] = {}
        if path.exists():
            try:
                content = json.loads(text_of(path))
                self.trained = dict(content.pop(_TRAINED, {}))
                self._rows = {name: [_row(record) for record in records] for name, records in content.items()}
            except (ValueError, TypeError, AttributeError, RecursionError) as reason:
                raise ValueError(f"--keep {path}: it holds no rows of experiments ({shown(str(reason))})") from None

    def of(self, experiment: str) -> list[Row]:
        return self._rows.get(experiment, [])

    def find(self, experiment: str, entry: Entry, samples: int, seed: int) -> Row | None:
        """The row of this entry, where it was run as it is asked for now and was right."""
        key = row_key(entry)
        for row in self.of(experiment):
            if row.key == key and (row.samples, row.seed) == (samples, seed) and row.good:
                return row
        return None

    def add(self, experiment: str, row: Row) -> None:
        """Put the row in the place of an earlier one of its model, and write the file."""
        self._rows[experiment] = [*(r for r in self.of(experiment) if r.key != row.key), row]
        self._write()

    def add_trained(self, result: dict) -> None:
        """The result of a control, in the place of an earlier one, and write the file."""
        self.trained[result["control"]] = result
        self._write()

    def _write(self) -> None:
        rows = {name: sorted(rows, key=order) for name, rows in sorted(self._rows.items())}
        content: dict = {name: [_record(row) for row in mine] for name, mine in rows.items()}
        if self.trained:
            content[_TRAINED] = dict(sorted(self.trained.items()))
        write_whole(self.path, json.dumps(content, indent=1) + "\n")


def _record(row: Row) -> dict:
    """Its fields, without those that only rows with a paper's number have where they say nothing."""
    unsaid = {f.name: f.default for f in fields(Row)[_CHAINS_END:]} | {"detail": {}}
    return {name: value for name, value in asdict(row).items() if name not in unsaid or unsaid[name] != value}


def _row(record: dict) -> Row:
    known = {field.name for field in fields(Row)}
    if set(record) - known:
        raise ValueError(f"a row has {', '.join(sorted(set(record) - known))}")
    sequences = {name: tuple(record[name]) for name in ("written", "room", "controls") if name in record}
    return Row(**record | sequences)


def order(row: Row) -> tuple[str, ...]:
    return row.parameters, row.arch, {"float32": ""}.get(row.dtype, row.dtype), *row.key[3:]
