"""docs/automata.md: written from the rows beside it, whose algebra is found again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from constructions.automata import random_automata, reproduce, runs
from constructions.automata.explain import decide, with_swaps
from constructions.automata.languages import NAMED
from constructions.automata.page import page, wrong_of
from constructions.automata.random_automata import RANDOM, RUNS, built_on, drawn, holds, missing
from constructions.automata.reproduce import Run, names

PAGE = Path(__file__).parents[2] / "docs" / "automata.md"
KEPT = json.loads(PAGE.with_suffix(".json").read_text("utf-8"))
ROWS = list(KEPT["rows"].values())
SOME = {"tomita-4 mamba", "tomita-4 mamba2", "parity gated-deltanet", "a5 mamba"}  # which run again


def test_the_page_is_written_from_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(ROWS, KEPT["random"])


def test_every_language_is_right_or_refused() -> None:
    assert KEPT["rows"].keys() <= set(names()) and {row["name"] for row in ROWS} == set(NAMED) and len(NAMED) >= 40
    for row in ROWS:
        assert row["good"] and ("refused" in row or not any(row["wrong"].values())), row
        if row["arch"] == "mamba" and row["star_free"]:
            assert "1 x 100000" in row["wrong"]


def test_small_star_free_languages_are_proved_for_every_length() -> None:
    for row in ROWS:
        if row["star_free"] and row["arch"] != "gated-deltanet" and "refused" not in row:
            assert row["length"] is None and row["blocks"] <= row["levels"] * (1 + (row["arch"] == "mamba2")) + 1
            assert all(held for part, held in row["proved"].items() if part != "task")
            if row["monoid"] <= 64:
                assert row["proved"]["task"], row["name"]


def test_the_algebra_of_every_row_is_found_again() -> None:
    for name in NAMED:
        found = decide(NAMED[name].make())
        for row in (row for row in ROWS if row["name"] == name):
            assert (found.states, found.monoid, found.star_free, found.levels) == tuple(
                row[key] for key in ("states", "monoid", "star_free", "levels")
            )
            assert [group.name for group in found.groups] == row["groups"]


@pytest.mark.parametrize("name", sorted(SOME))
def test_a_row_comes_out_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the longest words and what was measured in seconds."""
    monkeypatch.setattr(reproduce, "LONG", {})
    monkeypatch.setattr(reproduce, "LONGEST", {})
    language, _, arch = name.partition(" ")
    kept, found = KEPT["rows"][name], reproduce.row(language, arch, Run())
    assert {key: kept[key] for key in found if key != "wrong" and not key.endswith("_in")} == {
        key: value for key, value in found.items() if key != "wrong" and not key.endswith("_in")
    }
    assert found.get("wrong", {}).items() <= kept.get("wrong", {}).items()


def test_no_random_automaton_is_wrong() -> None:
    assert [row["number"] for row in KEPT["random"]] == list(range(RANDOM))
    for row in KEPT["random"]:
        assert not wrong_of(row) and not any("refused" in one for one in row["built"].values())
        assert not missing(row)


def test_random_automata_are_decided_again() -> None:
    for row in KEPT["random"][:40]:
        found = with_swaps(decide(drawn(row["number"])), drawn(row["number"]))
        assert (found.states, found.star_free, holds(found)) == (row["states"], row["star_free"], row["holds"])


def _first(arch: str) -> int:
    return next(row["number"] for row in KEPT["random"] if row["states"] > 2 and arch in row["built"])


@pytest.mark.parametrize("arch", RUNS)
def test_a_random_automaton_comes_out_again(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With shorter words."""
    monkeypatch.setattr(random_automata, "RUNS", RUNS | {arch: (0, 2, 200)})
    row = next((row for row in KEPT["random"] if row["states"] > 1 and arch in row["built"]), KEPT["random"][1])
    found, kept = built_on(row, arch), row["built"][arch]
    assert {**found, "wrong": 0} == {**kept, "wrong": 0} and not any(found["wrong"].values())


@pytest.mark.parametrize("run", [runs.wrong_in_modules, runs.wrong_in_transformers])
def test_a_wrong_answer_is_counted(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one language is asked by the table of another."""
    from constructions.automata.automaton import Automaton, table_json
    from constructions.checkpoints.built import build

    built = build(Automaton(table=table_json(NAMED["tomita-1"].make())))
    other = Automaton(table=table_json(NAMED["tomita-7"].make())).tasks()[0]
    given = np.array([[0, 1, 0, 0, 1]])
    right, wrong = (np.array(task.labels(given[0].tolist())) for task in (runs.task_of(built), other))
    assert run(built, given) == 0 and (right != wrong).any()
    monkeypatch.setattr(runs, "task_of", lambda _: other)
    assert run(built, given) == (right != wrong).sum()
