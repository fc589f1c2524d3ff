"""The Parquet file of a table, which anybody may have written: read within limits, and no row is believed unread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.artifact.json_files import same_json, shown, strict_value
from compiler.artifact.plain_files import opened
from constructions.shards.shard import Place, Shard

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.parquet import FileMetaData, ParquetFile

COLUMNS = {"part": "string", "first": "int64", "count": "int64", "result": "string"}
RUN = b"run"
MOST_ROWS = 1 << 17  # of a table whose shards nobody has counted
_MOST_BYTES = 1 << 26  # of the file: a row has some hundred
_MOST_TEXT = 1 << 28  # bytes of all its texts, as they are when a text that many rows share is written out for each
_MOST_OF_A_ROW = 1 << 24  # of these for each row that may be there: the failure of a long sequence names its tokens
_CODECS = ("SNAPPY", "UNCOMPRESSED")  # we write the first, which makes of a byte at most some twenty

Rows = dict[Place, str]


def read(path: Path, run: dict[str, Any], most: int) -> Rows:
    """The rows of a table of this run, each result as its text.

    most: rows, which are counted before any is read. ValueError in one sentence, which names the file and the entry,
    for a file that is no table, or is of another run: it names the first value that differs.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ValueError("a table of results needs pyarrow: pip install pyarrow") from None
    opened(path, _MOST_BYTES).close()
    try:
        with parquet.ParquetFile(path) as file:
            _check_sizes(path, file.metadata, most)
            _check_columns(path, file)
            metadata = file.schema_arrow.metadata or {}
        _check_run(path, metadata.get(RUN), run)
        with parquet.ParquetFile(path, read_dictionary=["part", "result"]) as file:
            return _rows(path, file.read(list(COLUMNS)), most)
    except _Refused:
        raise
    except (OSError, ValueError, MemoryError, ArrowException) as reason:
        why = (str(reason).splitlines() or [type(reason).__name__])[0]
        raise ValueError(f"table {path} is no table of shards ({why[:80]}): name another file.") from None


class _Refused(ValueError):
    """What is said already."""


def refused(path: Path, why: str) -> ValueError:
    """What is raised for a file of which something is wrong."""
    return _Refused(f"table {path}{why}: name another file.")


def said(place: Place) -> str:
    """A place for a message, whatever anybody called its part."""
    return shown(str(Shard(*place, job="")))


def value(path: Path, place: Place, text: str) -> Any:
    """The result of a row; ValueError where its text is no JSON value."""
    try:
        return strict_value(text)
    except RecursionError:
        raise refused(path, f": the result of {said(place)} is nested too deeply") from None
    except ValueError as reason:
        raise refused(path, f": the result of {said(place)} is no JSON value: {reason}") from None


def _check_sizes(path: Path, found: FileMetaData, most: int) -> None:
    """Refuse what costs more than a table does, from what the end of the file says of the rest."""
    groups = [found.row_group(i) for i in range(min(found.num_row_groups, most + 2))]
    rows = max(found.num_rows, sum(group.num_rows for group in groups))
    if rows > most:
        raise refused(path, f" has {rows:,} rows, and a table of this run has at most {most:,}")
    if found.num_row_groups > most + 1 or any(group.num_rows < 0 for group in groups):
        raise refused(path, f" has {found.num_row_groups:,} groups of rows, and a table of shards has one")
    size = 0
    for column in (group.column(i) for group in groups for i in range(group.num_columns)):
        if column.compression not in _CODECS:
            raise refused(
                path, f": {shown(column.path_in_schema)} is compressed by {column.compression}, not by SNAPPY"
            )
        size += column.total_uncompressed_size
    _check_text(path, size, most)


def _check_text(path: Path, size: int, rows: int) -> None:
    """Refuse more bytes than so many rows have."""
    most = min(_MOST_TEXT, rows * _MOST_OF_A_ROW)
    if size > most:
        raise refused(path, f" holds {size:,} bytes of text, and a table of this run has at most {most:,}")


def _check_columns(path: Path, file: ParquetFile) -> None:
    """Refuse other columns, or columns of another kind."""
    found = {field.name: str(field.type) for field in file.schema_arrow}
    for name, kind in COLUMNS.items():
        if name not in found:
            raise refused(path, f" has no column {name}, so it is no table of shards")
        if found[name] != kind:
            raise refused(path, f": the column {name} holds {found[name][:40]}, and {kind} is needed")
    if len(file.schema_arrow) > len(COLUMNS):
        other = next((name for name in found if name not in COLUMNS), "part")
        raise refused(path, f" has a column {shown(other)} more than a table of shards")


def _check_run(path: Path, text: bytes | None, run: dict[str, Any]) -> None:
    """Refuse a table of another run."""
    if text is None:
        raise refused(path, " does not say of which run it is: it has no entry `run`, so it is no table of shards")
    try:
        held = strict_value(text.decode("utf-8"))
    except RecursionError:
        raise refused(path, ": its entry `run` is nested too deeply") from None
    except ValueError as reason:
        raise refused(path, f": its entry `run` is no JSON value: {str(reason)[:80]}") from None
    if not isinstance(held, dict):
        raise refused(path, f": its entry `run` is {shown(held)}, and an object is needed")
    if (other := _other(held, run)) is not None:
        name, here, wanted = other
        raise refused(path, f" is of {name} = {here}, and this run has {wanted}")


def _other(held: dict[str, Any], run: dict[str, Any], above: str = "") -> tuple[str, str, str] | None:
    """The first entry in which two runs differ: its name, and what both have."""
    for name in {**held, **run}:
        here, wanted, where = held.get(name), run.get(name), above + shown(name)[1:-1]
        if isinstance(here, dict) and isinstance(wanted, dict):
            if (below := _other(here, wanted, f"{where}: ")) is not None:
                return below
        elif name not in held or name not in run or not same_json(here, wanted):
            return where, shown(here), shown(wanted)
    return None


def _rows(path: Path, table: Table, most: int) -> Rows:
    """Each row once, none with an empty entry. Texts that rows share are counted before they are written out."""
    from pyarrow import compute

    size = 0
    for name in COLUMNS:
        if table.column(name).null_count:
            raise refused(path, f": the column {name} has {table.column(name).null_count:,} empty entries")
    for chunk in (chunk for name in ("part", "result") for chunk in table.column(name).chunks if len(chunk)):
        size += compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)).as_py()
    _check_text(path, size, most)
    found: Rows = {}
    for part, first, count, result in zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True):
        place = part, first, count
        if first < 0 or count < 1:
            raise refused(path, f" has a row of {count:,} cases of {shown(part)} from number {first:,} on")
        if place in found:
            raise refused(path, f" has two rows of {said(place)}")
        found[place] = result
    return found
