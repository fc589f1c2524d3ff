"""Rows of a store of `make trust` that no run gives are refused, as are chunks that cannot be added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from constructions.shards.shard import Shard
from tests.trust import store
from tests.trust.row import check

GOOD = {"commit": "abc+", "result": {"programs": 5, "failures": [], "verdicts": {"exact": 5}, "most": {"seconds": 0.5}}}
AGAIN = {"commit": "abc", "cases": 2, "result": {"ran": ["1", "2"], "failures": []}}


def _with(**change: Any) -> dict:
    return GOOD | {"result": GOOD["result"] | change}


def test_what_a_run_gives_is_taken() -> None:
    check(("fuzz", 0, 5), GOOD)
    check(("again", 0, 1), AGAIN)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([], "chunk is"),
        ({}, "chunk has no entry commit"),
        (GOOD | {"more": 1}, "an entry 'more'"),
        (GOOD | {"commit": 3}, "chunk.commit is 3"),
        (GOOD | {"commit": "\x1b[1m"}, "its commit is none"),
        (GOOD | {"result": None}, "chunk.result is None"),
        (_with(programs=10**9), "programs is 1000000000, and it is of 5 cases"),
        (_with(programs=5.0), "programs is 5.0, and it is of 5 cases"),
        (_with(verdicts={"exact": -5}), "exact is -5, and it counts something"),
        (_with(failures={}), "failures is"),
        (_with(survivors=["a"]), r"survivors\[0\] is 'a'"),
        (_with(reasons=[{"reason": "a", "count": 1}]), r"reasons\[0\] has no entry seed"),
        (_with(most={"seconds": "1"}), "most.seconds is '1'"),
        (AGAIN | {"cases": 3}, "ran is 2, and it is of 3 cases"),
    ],
)
def test_what_none_gives_is_refused(row: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check(("fuzz", 0, 5), row)


def test_chunks_that_cannot_be_added_are_told(tmp_path: Path) -> None:
    table = store.opened(tmp_path / "t")
    for first, kinds in ((0, {"a": 1}), (5, {"a": {"b": 1}})):
        table.add(Shard("fuzz", first, 5, ""), _with(kinds=kinds))
    with pytest.raises(ValueError, match="the chunks of fuzz cannot be added"):
        store.collect([table], ["fuzz"], {})
    assert store.read([table], ["fuzz"]) == f"2 chunks read from {tmp_path / 't'}, not run"
