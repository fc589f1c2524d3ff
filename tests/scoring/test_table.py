"""The table of scores, by its file and its page."""

from __future__ import annotations

import json

import pytest

from constructions.command.scoring import _kept as kept
from constructions.scoring.methods.named import METHODS, ORACLE
from constructions.scoring.table import COLUMNS, END, START, on_page
from tests.scoring.problems import ROOT

KEPT = json.loads((ROOT / "docs" / "scores.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "rows",
    [
        3,
        [3],
        [{}],
        [{"circuit": "a", "kind": "plain", "method": "das"}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "area": "1"}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "area": 10**9}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "answers": -1}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "area": float("nan")}],
        [{"circuit": "a", "kind": "plain", "method": "das", "seed": 0, "more": 1}],
    ],
)
def test_a_file_of_other_rows_is_refused(rows, tmp_path):
    (tmp_path / "keep.json").write_text(json.dumps({"rows": rows}))
    with pytest.raises(ValueError, match="keep.json: it holds no rows of scores"):
        kept(tmp_path / "keep.json")


def test_its_own_file_is_taken():
    assert kept(ROOT / "docs" / "scores.json") == KEPT["rows"]


def test_the_page_has_the_table_of_the_file():
    page = (ROOT / "docs" / "scores.md").read_text("utf-8")
    assert page == on_page(page, KEPT)
    for text in ("", page.partition(START)[0], page.replace(END, ""), page + page):
        with pytest.raises(ValueError, match="the page has no place for the table"):
            on_page(text, KEPT)
    oracle = [row for row in KEPT["rows"] if row["method"] == ORACLE]
    assert oracle and all(
        row[c] in (1, None) or abs(row[c] - 1) < 1e-9 for row in oracle for c in COLUMNS if row["kind"] != "twin"
    )
    assert {row["method"] for row in KEPT["rows"]} == {ORACLE, *METHODS}
