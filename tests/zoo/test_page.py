"""docs/zoo.md and measured.json: the circuits as they are now, all right in one run, in under 20 CPU minutes."""

from __future__ import annotations

from pathlib import Path

from constructions.zoo.build import circuit_hash
from constructions.zoo.collection import entries
from constructions.zoo.measured import measured, total
from constructions.zoo.page import page

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
LEAST, MOST_SECONDS = 200, 20 * 60


def test_the_page_is_written_from_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(measured())


def test_the_rows_are_of_the_circuits_as_they_are() -> None:
    assert list(measured()) == [name for name in entries() if name in measured()]
    stale = [name for name, row in measured().items() if circuit_hash(entries()[name]) != row.circuit]
    assert not stale, f"build these again: {stale}"


def test_everything_was_right() -> None:
    found = total(list(measured().values()))
    assert len(entries()) >= LEAST and len(measured()) == len(entries()) and not found["failed"]
    assert found["exact"] == len(measured()) and found["right"] == found["questions"]
    assert found["cpu_seconds"] < MOST_SECONDS
    assert found["proved"][""] == 0
