"""What came out of shards, in one Parquet table that any machine can go on with."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compiler.artifact.place import locked
from compiler.artifact.plain_files import fresh_file
from constructions.shards import table_file
from constructions.shards.shard import Place, Shard

_LEAST_AGAIN, _SHARE_AGAIN = 3, 64  # of the rows that are taken, so many and one of so many are run again

Check = Callable[[Place, Any], None]
"""Raises ValueError, which says what is wrong, where the result of a place is none that its shard can have."""


class Table:
    """A row for each shard that is done. The same shards give the same bytes, whoever did them in what order.

    Several processes of one machine may add to one file: what another put down stays.

    path: None keeps them in memory only. run: plain values that say what the run is, its seed and its code among them;
    they stand in the file, and a file of another run is refused: ValueError names the first value that differs. shards:
    of this run, all of them; a row of any other place is refused. None: any shards. check: is asked of every row.
    """

    def __init__(
        self,
        path: Path | None,
        run: dict[str, Any],
        shards: Sequence[Shard] | None = None,
        check: Check = lambda place, result: None,
    ):
        self.path, self.run, self._check = path, run, check
        self._places = None if shards is None else {shard.place for shard in shards}
        self._texts: table_file.Rows = {}
        if path is not None:
            if not path.parent.is_dir():
                raise ValueError(f"table {path}: there is no folder {path.parent}.")
            self._texts = self._read(path)

    def _read(self, path: Path) -> table_file.Rows:
        if not path.exists():
            return {}
        most = table_file.MOST_ROWS if self._places is None else len(self._places)
        found = table_file.read(path, self.run, most)
        for place, text in found.items():
            if self._texts.get(place) != text:  # else it is checked already
                self._check_row(path, place, text)
        return found

    def _check_row(self, path: Path, place: Place, text: str) -> None:
        if self._places is not None and place not in self._places:
            raise table_file.refused(path, f" has a row of {table_file.said(place)}, which is no shard of this run")
        result = table_file.value(path, place, text)
        try:
            self._check(place, result)
        except ValueError as reason:
            why = str(reason).rstrip(".")
            raise table_file.refused(
                path, f": the row of {table_file.said(place)} is none of this run: {why}"
            ) from None

    def left(self, shards: Sequence[Shard]) -> list[Shard]:
        """Those of which nothing stands there."""
        return [shard for shard in shards if shard.place not in self._texts]

    def some(self, shards: Sequence[Shard]) -> list[Shard]:
        """A few of those that stand there, drawn by what all of them say: whoever changes one draws others."""
        held = [shard for shard in shards if shard.place in self._texts]
        said = json.dumps(sorted([*shard.place, self._texts[shard.place]] for shard in held))
        drawn = random.Random(hashlib.sha256(said.encode()).digest())
        return drawn.sample(held, min(len(held), max(_LEAST_AGAIN, len(held) // _SHARE_AGAIN)))

    def add(self, shard: Shard, result: Any) -> None:
        """Put a result down: all of the file is there after it, or the one before."""
        self._check(shard.place, result)
        self._texts[shard.place] = json.dumps(result, sort_keys=True, allow_nan=False)
        if self.path is not None:
            with _alone(self.path.parent):
                self._texts = self._read(self.path) | {shard.place: self._texts[shard.place]}
                self._write(self.path)

    def _write(self, path: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        rows = sorted((*place, text) for place, text in self._texts.items())
        types = [getattr(pyarrow, kind)() for kind in table_file.COLUMNS.values()]
        columns = [pyarrow.array(values, type) for values, type in zip(zip(*rows), types, strict=True)]
        run = json.dumps(self.run, sort_keys=True, allow_nan=False)
        schema = pyarrow.schema(zip(table_file.COLUMNS, types), {table_file.RUN: run})
        with fresh_file(path) as place:
            parquet.write_table(pyarrow.table(columns, schema=schema), place)

    def result(self, shard: Shard) -> Any:
        """What came out of a shard that is done."""
        return json.loads(self._texts[shard.place])

    def places(self, part: str) -> list[tuple[int, int]]:
        """(first, count) of the shards of a part that are done, in order."""
        return sorted((first, count) for name, first, count in self._texts if name == part)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other process of this machine adds to a table of this folder."""
    lock = locked(folder)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)
