"""What came out of shards, in one Parquet table that any machine can go on with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compiler.artifact.place import locked
from compiler.artifact.plain_files import opened
from constructions.shards.shard import Place, Shard

_MOST_BYTES = 1 << 30  # of a table
_RUN = b"run"
_COLUMNS = ("part", "first", "count", "result")


class Table:
    """A row for each shard that is done. The same shards give the same bytes, whoever did them in what order.

    Several processes of one machine may add to one file: what another put down stays.

    path: None keeps them in memory only. run: plain values that say what the run is, its seed and its code among them;
    they stand in the file, and a file of another run is refused: ValueError names the first value that differs.
    """

    def __init__(self, path: Path | None, run: dict[str, Any]):
        self.path, self.run = path, run
        self._results: dict[Place, str] = {}
        if path is not None:
            if not path.parent.is_dir():
                raise ValueError(f"table {path}: there is no folder {path.parent}.")
            self._results = self._read(path)

    def _read(self, path: Path) -> dict[Place, str]:
        try:
            from pyarrow import parquet
        except ImportError:
            raise ValueError("a table of results needs pyarrow: pip install 'mamba-constructions[workers]'") from None
        if not path.exists():
            return {}
        opened(path, _MOST_BYTES).close()
        try:
            table = parquet.read_table(path)
            held = json.loads((table.schema.metadata or {}).get(_RUN, b"{}"))
            rows = zip(*(table.column(name).to_pylist() for name in _COLUMNS), strict=True)
        except (OSError, ValueError, KeyError) as reason:
            raise ValueError(f"table {path} is no table of shards ({str(reason)[:80]}): name another file.") from None
        for name in {**held, **self.run}:
            if held.get(name) != self.run.get(name):
                raise ValueError(
                    f"table {path} is of {name} = {held.get(name)}, and this run has {self.run.get(name)}: name "
                    "another file."
                )
        return {(part, first, count): result for part, first, count, result in rows}

    def left(self, shards: Sequence[Shard]) -> list[Shard]:
        """Those of which nothing stands there."""
        return [shard for shard in shards if shard.place not in self._results]

    def add(self, shard: Shard, result: Any) -> None:
        """Put a result down: all of the file is there after it, or the one before."""
        self._results[shard.place] = json.dumps(result, sort_keys=True)
        if self.path is not None:
            with _alone(self.path.parent):
                self._results = self._read(self.path) | {shard.place: self._results[shard.place]}
                self._write(self.path)

    def _write(self, path: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        rows = sorted((*place, result) for place, result in self._results.items())
        types = (pyarrow.string(), pyarrow.int64(), pyarrow.int64(), pyarrow.string())
        columns = [pyarrow.array(values, type) for values, type in zip(zip(*rows), types, strict=True)]
        schema = pyarrow.schema(zip(_COLUMNS, types), {_RUN: json.dumps(self.run, sort_keys=True)})
        partial = path.with_name(f".{path.name}.partial")
        parquet.write_table(pyarrow.table(columns, schema=schema), partial)
        partial.replace(path)

    def result(self, shard: Shard) -> Any:
        """What came out of a shard that is done."""
        return json.loads(self._results[shard.place])

    def places(self, part: str) -> list[tuple[int, int]]:
        """(first, count) of the shards of a part that are done, in order."""
        return sorted((first, count) for name, first, count in self._results if name == part)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other process of this machine adds to a table of this folder."""
    lock = locked(folder)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)
