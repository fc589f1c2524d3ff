"""The table of shards: the same bytes in any order, all of it or what was there, and no other run's."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest

from constructions.shards.shard import Shard
from constructions.shards.table import Table

SHARDS = [Shard(part, first, 10, "none:none") for part in ("a", "b") for first in range(0, 50, 10)]


def _filled(path, order) -> bytes:
    table = Table(path, {"seed": 1})
    for shard in order:
        table.add(shard, {"sum": shard.first, "least": 0.1})
    return path.read_bytes()


def test_the_order_of_work_leaves_no_trace(tmp_path) -> None:
    mixed = random.Random(0).sample(SHARDS, len(SHARDS))
    assert _filled(tmp_path / "one", SHARDS) == _filled(tmp_path / "two", mixed)


def test_it_goes_on_from_what_stands_there(tmp_path) -> None:
    _filled(tmp_path / "table", SHARDS[:4])
    table = Table(tmp_path / "table", {"seed": 1})
    assert table.left(SHARDS) == SHARDS[4:]
    assert table.result(SHARDS[3]) == {"sum": 30, "least": 0.1}


def test_what_another_process_adds_meanwhile_stays(tmp_path) -> None:
    one, other = (Table(tmp_path / "table", {"seed": 1}) for _ in range(2))
    one.add(SHARDS[0], 0)
    other.add(SHARDS[1], 1)
    one.add(SHARDS[2], 2)
    assert Table(tmp_path / "table", {"seed": 1}).places("a") == [(0, 10), (10, 10), (20, 10)]


def test_another_run_is_refused_by_the_value_that_differs(tmp_path) -> None:
    _filled(tmp_path / "table", SHARDS[:1])
    with pytest.raises(ValueError, match="is of seed = 1, and this run has 2: name another file"):
        Table(tmp_path / "table", {"seed": 2})
    with pytest.raises(ValueError, match="is of mode = None, and this run has 'every'"):
        Table(tmp_path / "table", {"seed": 1, "mode": "every"})


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"text"])
def test_a_file_that_is_none_is_refused_and_stays(tmp_path, content) -> None:
    path = tmp_path / "table"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is no table of shards"):
        Table(path, {"seed": 1})
    assert path.read_bytes() == content


def test_what_stops_while_it_writes_leaves_the_table_before(tmp_path) -> None:
    before = _filled(tmp_path / "table", SHARDS[:2])
    table = Table(tmp_path / "table", {"seed": 1})
    with patch("pathlib.Path.replace", side_effect=OSError("no room")), pytest.raises(OSError):
        table.add(SHARDS[2], {})
    assert (tmp_path / "table").read_bytes() == before


def test_no_link_beside_the_table_is_followed(tmp_path) -> None:
    """One of the name that a table once had while it was written."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".table.partial").symlink_to("mine")
    _filled(tmp_path / "table", SHARDS[:1])
    assert (tmp_path / "mine").read_text() == "mine"
    assert Table(tmp_path / "table", {"seed": 1}).places("a") == [(0, 10)]


def test_a_folder_that_is_not_there_is_said_before_any_work(tmp_path) -> None:
    with pytest.raises(ValueError, match="there is no folder"):
        Table(tmp_path / "none" / "table", {})
