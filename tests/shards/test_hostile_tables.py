"""A table that anybody wrote: each is refused in one sentence that names the file, and before it costs anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from constructions.shards.shard import Shard
from constructions.shards.table import Table
from constructions.shards.table_file import MOST_ROWS

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

RUN = {"seed": 1, "files": {"a": "0"}}
SHARDS = [Shard("a", first, 10, "none:none") for first in (0, 10, 20)]
ROWS = [{"part": "a", "first": shard.first, "count": 10, "result": f'{{"n": {shard.first}}}'} for shard in SHARDS]
KINDS = {"part": pyarrow.string(), "first": pyarrow.int64(), "count": pyarrow.int64(), "result": pyarrow.string()}


def check(place: Any, result: Any) -> None:
    if not isinstance(result, dict) or result.get("n") != place[1]:
        raise ValueError(f"n is not {place[1]}.")


def refusal(path: Path, run: dict[str, Any] = RUN) -> str:
    with pytest.raises(ValueError) as refused:
        Table(path, run, SHARDS, check)
    said = str(refused.value)
    assert said.startswith(f"table {path}") and "\n" not in said and len(said) < 400
    return said


def write(path: Path, rows: list = ROWS, kinds: dict = KINDS, run: str | bytes | None = None, **options: Any) -> Path:
    table = pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(kinds))
    parquet.write_table(
        table.replace_schema_metadata({"run": json.dumps(RUN) if run is None else run}), path, **options
    )
    return path


def test_one_that_is_right_is_read(tmp_path: Path) -> None:
    for options in ({}, {"row_group_size": 1}, {"use_dictionary": False}, {"compression": "none"}):
        assert not Table(write(tmp_path / "t", **options), RUN, SHARDS, check).left(SHARDS)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("[]", "its entry `run` is [], and an object is needed"),
        ('["a"]', "its entry `run` is a list with 1 entry"),
        ("3", "its entry `run` is 3"),
        ("null", "its entry `run` is None"),
        ('"abc"', "its entry `run` is 'abc'"),
        ("[" * 100_000 + "]" * 100_000, "its entry `run` is nested too deeply"),
        ('{"seed": NaN}', "its entry `run` is no JSON value: NaN is no JSON number"),
        ('{"seed": 1, "seed": 1}', "the key 'seed' stands in one object twice"),
        (b"\xff", "its entry `run` is no JSON value"),
        ("", "its entry `run` is no JSON value"),
        ('{"seed": 1.0, "files": {"a": "0"}}', "is of seed = 1.0, and this run has 1"),
        ('{"seed": true, "files": {"a": "0"}}', "is of seed = True, and this run has 1"),
        ('{"seed": 1, "files": {"a": "1"}}', "is of files: a = '1', and this run has '0'"),
        ('{"seed": 1, "files": {"a": "0"}, "\\u001b[1m": 2}', r"is of \x1b[1m = 2, and this run has None"),
        ('{"seed": 1}', "is of files = None, and this run has an object with 1 entry"),
    ],
)
def test_what_it_says_of_its_run(run: str | bytes, says: str, tmp_path: Path) -> None:
    assert says in refusal(write(tmp_path / "t", run=run))


def test_one_that_says_nothing_of_its_run(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(ROWS, schema=pyarrow.schema(KINDS)), tmp_path / "t")
    assert "it has no entry `run`" in refusal(tmp_path / "t")


def of(**change: Any) -> list:
    return [row | change for row in ROWS]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (of(result="garbage"), "the result of 'a 0–9' is no JSON value: Expecting value"),
        (of(result="[" * 100_000 + "]" * 100_000), "the result of 'a 0–9' is nested too deeply"),
        (of(result="9" * 10_000), "it has an integer of more than"),
        (of(result='{"n": 1e999}'), "1e999 is beyond all float64 numbers"),
        (of(result='{"n": 0, "n": 0}'), "the key 'n' stands in one object twice"),
        (of(result="[]"), "the row of 'a 0–9' is none of this run: n is not 0: name another file."),
        (of(result=None), "the column result has 3 empty entries"),
        (of(part=None), "the column part has 3 empty entries"),
        (of(first=None), "the column first has 3 empty entries"),
        (ROWS[:1] * 2, "has two rows of 'a 0–9'"),
        (ROWS * 2, "has 6 rows, and a table of this run has at most 3"),
        (of(first=-10), "has a row of 10 cases of 'a' from number -10 on"),
        (of(count=0), "has a row of 0 cases of 'a' from number 0 on"),
        (of(count=9), "has a row of 'a 0–8', which is no shard of this run"),
        (of(part="\x1b[31m\nb"), r"has a row of '\x1b[31m\nb 0–9', which is no shard of this run"),
        (of(part="b" * 1000), "…, which is no shard of this run"),
    ],
)
def test_rows_that_this_run_has_not(rows: list, says: str, tmp_path: Path) -> None:
    assert says in refusal(write(tmp_path / "t", rows))


@pytest.mark.parametrize(
    ("column", "kind", "value"),
    [
        ("result", pyarrow.int64(), 5),
        ("part", pyarrow.list_(pyarrow.string()), ["a"]),
        ("part", pyarrow.binary(), b"a"),
        ("result", pyarrow.struct([("n", pyarrow.int64())]), {"n": 0}),
        ("first", pyarrow.float64(), 0.0),
        ("count", pyarrow.string(), "10"),
        ("result", pyarrow.large_string(), "{}"),
    ],
)
def test_columns_of_another_kind(column: str, kind: Any, value: Any, tmp_path: Path) -> None:
    said = refusal(write(tmp_path / "t", of(**{column: value}), KINDS | {column: kind}))
    told = "list<element: string>" if pyarrow.types.is_list(kind) else str(kind)
    assert f"the column {column} holds {told}, and {KINDS[column]} is needed" in said


def test_other_columns(tmp_path: Path) -> None:
    assert "has a column 'more' more" in refusal(write(tmp_path / "t", of(more=1), KINDS | {"more": pyarrow.int64()}))
    fewer = {name: kind for name, kind in KINDS.items() if name != "count"}
    assert "has no column count" in refusal(write(tmp_path / "t", ROWS, fewer))


@pytest.mark.parametrize(
    ("rows", "text", "options", "says"),
    [
        (20_000_000, "{}", {}, "has 20,000,000 rows, and a table of this run has at most 3"),
        (3, "x" * (1 << 25), {"compression": "zstd"}, "is compressed by ZSTD, not by SNAPPY"),
        (3, "x" * (1 << 26), {}, "bytes of text, and a table of this run has at most 50,331,648"),
    ],
    ids=["rows", "codec", "text"],
)
def test_what_would_cost_much_is_refused_by_its_end(rows: int, text: str, options: dict, says: str, tmp_path) -> None:
    """Of 20,000,000 rows not one is read: that would be 3.7 GB."""
    parquet.write_table(_many(rows, text), tmp_path / "t", **options)
    with patch.object(parquet.ParquetFile, "read", side_effect=AssertionError("it was read")):
        assert says in refusal(tmp_path / "t")


def test_a_text_that_all_rows_share_is_counted_before_it_is_written_out(tmp_path: Path) -> None:
    """In the file it stands once, and its end tells 2^24 bytes."""
    rows = [row | {"result": "x" * ((1 << 24) + 7)} for row in ROWS]
    write(tmp_path / "t", rows)
    assert (tmp_path / "t").stat().st_size < 1 << 21
    assert "holds 50,331,672 bytes of text, and a table of this run has at most 50,331,648" in refusal(tmp_path / "t")


def test_without_shards_rows_have_a_limit(tmp_path: Path) -> None:
    parquet.write_table(_many(MOST_ROWS + 1), tmp_path / "t")
    with pytest.raises(ValueError, match=f"has {MOST_ROWS + 1:,} rows, and a table of this run has at most"):
        Table(tmp_path / "t", RUN)


def _many(rows: int, text: str = "{}") -> Any:
    shared = lambda word: pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), [word])
    zeros = pyarrow.array([0] * rows, pyarrow.int64())
    columns = {"part": shared("a"), "first": zeros, "count": zeros, "result": shared(text)}
    return pyarrow.table(columns).replace_schema_metadata({"run": json.dumps(RUN)})


def test_what_comes_in_meanwhile_is_checked_too(tmp_path: Path) -> None:
    """Another process writes what no run gives, between two rows of this one."""
    table = Table(tmp_path / "t", RUN, SHARDS, check)
    table.add(SHARDS[0], {"n": 0})
    write(tmp_path / "t", [ROWS[0], ROWS[1] | {"result": '{"n": 7}'}])
    with pytest.raises(ValueError, match="the row of 'a 10–19' is none of this run: n is not 10"):
        table.add(SHARDS[2], {"n": 20})
    with pytest.raises(ValueError, match="n is not 20"):
        Table(None, RUN, SHARDS, check).add(SHARDS[2], {"n": 0})


def test_which_are_run_again_is_drawn_by_what_all_rows_say() -> None:
    shards = [Shard("a", first, 1, "none:none") for first in range(400)]

    def drawn(last: int) -> list[Shard]:
        table = Table(None, RUN)
        for shard in shards:
            table.add(shard, last if shard.first == 399 else 0)
        return table.some(shards)

    assert drawn(1) == drawn(1) != drawn(2) and len(set(drawn(1))) == 400 // 64
    few = Table(None, RUN)
    for shard in shards[:2]:
        few.add(shard, 0)
    assert set(few.some(shards)) == set(shards[:2])
