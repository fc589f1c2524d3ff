"""docs/zoo.md and measured.json: the circuits as they are now, all right, built in under 20 CPU minutes together."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from pathlib import Path

from compiler.language.data import to_data
from constructions.zoo.build import circuit_hash
from constructions.zoo.collection import entries
from constructions.zoo.entry import Own
from constructions.zoo.families import counting
from constructions.zoo.measured import measured, on_mamba2, total
from constructions.zoo.page import page

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
LEAST, MOST_SECONDS = 200, 20 * 60


def test_the_page_is_written_from_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(measured(), on_mamba2())


def test_the_rows_are_of_the_circuits_as_they_are() -> None:
    hashes = {name: circuit_hash(entry) for name, entry in entries().items()}
    for rows in (measured(), on_mamba2()):
        assert list(rows) == [name for name in entries() if name in rows]
        stale = [name for name, row in rows.items() if hashes[name] != row.circuit]
        assert not stale, f"build these again: {stale}"


def test_a_circuit_whose_lines_have_moved_is_the_same() -> None:
    entry, moved = entries()["count-a-to-8"], dict(vars(counting))
    exec(compile("\n\n" + inspect.getsource(counting.count_letter), "moved.py", "exec"), moved)
    assert isinstance(entry, Own)
    again = replace(entry, make=partial(moved["count_letter"], 8))
    assert to_data(again.circuit()) != to_data(entry.circuit()) and circuit_hash(again) == circuit_hash(entry)


def test_everything_was_right() -> None:
    assert len(entries()) >= LEAST
    for rows in (measured(), on_mamba2()):
        found = total(list(rows.values()))
        assert len(rows) == len(entries()) and found["failed"] == []
        assert found["exact"] == len(rows) and 0 < found["questions"] == found["right"]
        assert found["cpu_seconds"] < MOST_SECONDS
    assert all(row.arch == "mamba2" for row in on_mamba2().values())
