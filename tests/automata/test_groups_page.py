"""docs/groups.md: its table is what the algebra gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.automata.images import images
from compiler.automata.splitting import longest
from compiler.automata.table import minimal
from compiler.automata.turning import turning_cascade
from tests.automata.groups import ALL_LETTERS, group_table

PAGE = (Path(__file__).parents[2] / "docs" / "groups.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\w_\d) \| (\d+) \| (\d) \| (\d) \|$", PAGE, re.MULTILINE)


def test_the_page_has_every_group() -> None:
    assert [row[0] for row in ROWS] == list(ALL_LETTERS)


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] != "S_5"], ids=lambda row: row[0])
def test_a_row_is_what_the_algebra_gives(row: tuple[str, ...]) -> None:
    """That of S_5, which takes some seconds, is in test_turning.py."""
    elements, _ = ALL_LETTERS[row[0]]
    table = minimal(group_table(elements))
    levels = turning_cascade(images(table), table.outputs).levels
    in_a_row = {(level.reads, tuple(level.sets.items())): longest(level) for level in levels}
    found = (len(elements), max(level.size for level in levels), sum(in_a_row.values()))
    assert found == tuple(map(int, row[1:]))
