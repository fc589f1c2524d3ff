"""docs/dp.md: its table of blocks is what the programs compile to (who shares one: passes/test_direct_sums.py)."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest

from compiler import compile
from constructions.registry import CONSTRUCTIONS

PAGE = Path(__file__).parents[2] / "docs" / "dp.md"


def _rows() -> list[tuple[str, int, int]]:
    """(construction, blocks, blocks without conflicts) of every program in the table."""
    lines = PAGE.read_text("utf-8").splitlines()
    start = lines.index("<!-- table: tests/constructions/test_docs_dp.py -->") + 3
    rows = []
    for line in takewhile(bool, lines[start:]):
        names, *counts = [re.findall(r"[a-z-]+|\d+", cell) for cell in line.strip("|").split("|")[:3]]
        rows += [(name, int(built), int(least)) for name, built, least in zip(names, *counts, strict=True)]
    return rows


def test_every_program_stands_in_the_table_of_dp_md():
    assert PAGE.name == "dp.md"
    assert {name for name, _, _ in _rows()} >= {name for name, c in CONSTRUCTIONS.items() if c.group == "dp"}


@pytest.mark.parametrize(("name", "blocks", "without_conflicts"), _rows(), ids=str)
def test_blocks_are_what_the_page_says(name: str, blocks: int, without_conflicts: int):
    made = compile(CONSTRUCTIONS[name]().circuit(), "mamba")
    assert (len(made.blocks), made.schedule.least) == (blocks, without_conflicts)


def test_of_which_answers_the_checker_knows_the_rule():
    """The page names the problems that it knows; of all others of its first table answers are only tested."""
    table, _, rest = PAGE.read_text("utf-8").partition("The last number before `.` is the answer.")
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE))
    _, _, after = rest.partition("By name it knows five problems of the table above:")
    known, _, _ = after.partition(".")
    proved = {name for name in listed if CONSTRUCTIONS[name]().asks() is not None}
    assert set(re.findall(r"`([a-z-]+)`", known)) == proved and len(proved) == len(listed - proved) == 5
