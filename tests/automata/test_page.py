"""docs/automata.md: written from the rows beside it, whose algebra is found again."""

from __future__ import annotations

import json
from pathlib import Path

from constructions.automata.explain import decide
from constructions.automata.languages import NAMED
from constructions.automata.page import page
from constructions.automata.reproduce import RANDOM, drawn

PAGE = Path(__file__).parents[2] / "docs" / "automata.md"
KEPT = json.loads(PAGE.with_suffix(".json").read_text("utf-8"))
ROWS = list(KEPT["rows"].values())
BEYOND = {"subsequence-abcd"}  # too many situations for the proof of answers


def test_the_page_is_written_from_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(ROWS, KEPT["random"])


def test_every_language_is_right_or_refused() -> None:
    assert {row["name"] for row in ROWS} == set(NAMED) and len(NAMED) >= 40
    for row in ROWS:
        assert row["good"] and ("refused" in row or not any(row["wrong"].values())), row


def test_small_star_free_languages_are_proved_for_every_length() -> None:
    for row in ROWS:
        if row["star_free"]:
            assert row["length"] is None and row["blocks"] <= row["levels"] + 1
            assert all(held for part, held in row["proved"].items() if part != "task")
            if row["monoid"] <= 64 and row["name"] not in BEYOND:
                assert row["proved"]["task"], row["name"]


def test_the_algebra_of_every_row_is_found_again() -> None:
    for row in ROWS:
        found = decide(NAMED[row["name"]].make())
        assert (found.states, found.monoid, found.star_free, found.levels) == tuple(
            row[key] for key in ("states", "monoid", "star_free", "levels")
        )
        assert [group.name for group in found.groups] == row["groups"]


def test_no_random_automaton_is_wrong() -> None:
    assert len(KEPT["random"]) == RANDOM and not any(row.get("wrong") for row in KEPT["random"])
    for row in KEPT["random"][:40]:
        found = decide(drawn(row["number"]))
        assert (found.states, found.star_free) == (row["states"], row["star_free"])
