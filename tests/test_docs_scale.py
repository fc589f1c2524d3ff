"""docs/scale.md shows what was measured."""

from __future__ import annotations

import json

from benchmarks.natural_sizes import COMMANDS, DATA, PAGE, shown, table


def test_the_page_shows_the_rows_that_were_measured() -> None:
    rows = json.loads(DATA.read_text("utf-8"))
    assert shown(PAGE.read_text("utf-8")) == table(rows)
    assert rows and {row["name"] for row in rows} <= set(COMMANDS)
    assert all(COMMANDS[row["name"]] in row["command"] for row in rows)
