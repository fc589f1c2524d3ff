"""docs/automata.md: written from the rows beside it, whose algebra is found again."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from constructions.automata import controls, random_automata, reproduce, runs
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import decide, with_swaps
from constructions.automata.languages import NAMED
from constructions.automata.page import page, wrong_of
from constructions.automata.random_automata import (
    LONG,
    RANDOM,
    RUNS,
    built_on,
    drawn,
    holds,
    long_on,
    long_run,
    missing,
    proved_on_mamba,
    weights_of,
    work,
)
from constructions.automata.reproduce import Run, names
from constructions.checkpoints.built import build
from constructions.command.cli import app
from tests.automata.walked import assert_blocks_answer
from tests.spread import some

PAGE = Path(__file__).parents[2] / "docs" / "automata.md"
KEPT = json.loads(PAGE.with_suffix(".json").read_text("utf-8"))
ROWS = list(KEPT["rows"].values())
SOME = {"tomita-4 mamba", "tomita-4 mamba2", "parity gated-deltanet", "a5 mamba"}  # which run again


def test_the_page_is_written_from_the_rows() -> None:
    assert PAGE.read_text("utf-8") == page(ROWS, KEPT["random"], KEPT["controls"])


def test_the_first_lines_of_the_page_are_what_the_command_says() -> None:
    said = CliRunner().invoke(app, ["automaton", "--regex", "(a|b)*abb", "--explain"])
    assert said.exit_code == 0
    told = " ".join(said.stdout.split())
    block = PAGE.read_text("utf-8").split("--explain\n")[1].split("    construct automaton")[0]
    lines = [line.strip() for line in block.splitlines() if line.strip() != "…"]
    assert len(lines) == 4 and all(line in told for line in lines if line)


def test_every_language_is_right_or_refused() -> None:
    assert KEPT["rows"].keys() <= set(names()) and {row["name"] for row in ROWS} == set(NAMED) and len(NAMED) >= 40
    for row in ROWS:
        assert row["good"] and ("refused" in row or not any(row["wrong"].values())), row
        if row["arch"] == "mamba" and row["star_free"]:
            assert "1 x 100000" in row["wrong"]
        counts = row["arch"] != "gated-deltanet" and row["name"] in ("s3", "s4")  # several, beside each other
        assert all(held for part, held in row.get("proved", {}).items() if part != "task" or not counts), row


def test_small_star_free_languages_are_proved_for_every_length() -> None:
    for row in ROWS:
        if row["star_free"] and row["arch"] != "gated-deltanet" and "refused" not in row:
            assert row["length"] is None and row["blocks"] <= row["levels"] * (1 + (row["arch"] == "mamba2")) + 1
            assert all(held for part, held in row["proved"].items() if part != "task")
            if row["monoid"] <= 64:
                assert row["proved"]["task"], row["name"]


def test_the_algebra_of_every_row_is_found_again() -> None:
    for name in some(NAMED, 0.12):
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
    language, _, arch = name.partition(" ")
    kept, found = KEPT["rows"][name], reproduce.row(language, arch, Run())
    assert {key: kept[key] for key in found if key != "wrong" and not key.endswith("_in")} == {
        key: value for key, value in found.items() if key != "wrong" and not key.endswith("_in")
    }
    assert found.get("wrong", {}).items() <= kept.get("wrong", {}).items()


def test_those_that_are_held_to_a_bounded_length_are_built() -> None:
    """At a short length: what counts follow there, they follow as far as they are exact."""
    held = [row["number"] for row in KEPT["random"] if row["holds"].get("mamba")]
    assert len(held) > 300
    for number in some(held, 0.01):
        assert_blocks_answer(drawn(number), "mamba", 12, 20, number)


def test_no_random_automaton_is_wrong() -> None:
    assert [row["number"] for row in KEPT["random"]] == list(range(RANDOM))
    for row in KEPT["random"]:
        assert not wrong_of(row) and not any("refused" in one for one in row["built"].values())
        assert not missing(row)


def test_every_star_free_one_is_proved_on_mamba_for_every_length() -> None:
    star_free = [row for row in KEPT["random"] if row["star_free"]]
    assert len(star_free) > 100
    for row in star_free:
        assert row["holds"]["mamba"] is None and len(row["proved"]) == 4 and all(row["proved"].values()), row["number"]


def test_one_of_the_proofs_comes_out_again() -> None:
    row = max((row for row in KEPT["random"] if row["star_free"]), key=lambda row: row["monoid"])
    assert proved_on_mamba(row) == row["proved"]


def test_random_automata_are_decided_again() -> None:
    for row in some(KEPT["random"][:40], 0.06):
        found = with_swaps(decide(drawn(row["number"])), drawn(row["number"]))
        assert (found.states, found.star_free, holds(found)) == (row["states"], row["star_free"], row["holds"])


def test_long_texts_are_right() -> None:
    """What the page says of them: each on a mixer that holds it, every letter read, the smallest circuits first."""
    held = [row for row in KEPT["random"] if long_on(row) is not None]
    run = [row for row in held if "long" in row]
    assert len(run) >= 100 and not any("long" in row for row in KEPT["random"] if row not in held)
    for row in run:
        one = row["long"]
        assert one["arch"] == long_on(row) and row["holds"][one["arch"]] is None
        assert "refused" in one or (one["letters"], one["wrong"]) == (LONG, 0)
    order = sorted(held, key=lambda row: (work(row), row["number"]))
    assert ["long" in row for row in order] == [i < len(run) for i in range(len(held))]


@pytest.mark.parametrize("arch", ["mamba", "gated-deltanet"])
def test_a_long_text_comes_out_again(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter one, and in shorter pieces."""
    monkeypatch.setattr(random_automata, "PIECE", 100)
    own = [row for row in KEPT["random"] if row["states"] > 2 and long_on(row) == arch]
    row = min(own, key=lambda row: ("long" not in row, work(row)))
    found = long_run(row, 250)
    assert found["arch"] == arch and (found["letters"], found["wrong"]) == (250, 0)
    kept = row.get("long", found)
    assert all(found[key] == kept[key] for key in ("blocks", "d_model"))


def test_long_texts_go_on_and_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept.json"
    rows = [{key: value for key, value in row.items() if key != "long"} for row in KEPT["random"][:6]]
    kept.write_text(json.dumps({"rows": {}, "random": rows}), "utf-8")
    read: list[int] = []
    monkeypatch.setattr(reproduce, "long_run", lambda row: read.append(row["number"]) or {"wrong": 0})
    reproduce.kept_long(kept, 0.0)
    assert not read
    for _ in range(2):  # the second time all are there
        reproduce.kept_long(kept, 1.0)
        order = sorted((row for row in rows if long_on(row)), key=lambda row: (work(row), row["number"]))
        first = {weights_of(row): row["number"] for row in reversed(order)}
        assert read == [row["number"] for row in order if first[weights_of(row)] == row["number"]]
    after = {row["number"]: row.get("long", {}) for row in json.loads(kept.read_text("utf-8"))["random"]}
    assert [after[row["number"]].get("as", row["number"]) for row in order] == [first[weights_of(row)] for row in order]


def test_automata_that_share_a_text_have_the_same_weights() -> None:
    shared = [row for row in KEPT["random"] if row["states"] > 1 and "as" in row.get("long", {})][0]
    other = KEPT["random"][shared["long"]["as"]]
    assert weights_of(shared) == weights_of(other) and drawn(shared["number"]) != drawn(other["number"])
    tensors = [_weights(row) for row in (shared, other)]
    assert tensors[0].keys() == tensors[1].keys()
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def _weights(row: dict) -> dict[str, torch.Tensor]:
    return build(Automaton(table=table_json(drawn(row["number"])), arch=long_on(row))).stack().state_dict()


def test_minutes_are_for_random_automata(tmp_path: Path) -> None:
    for more in ([], ["--keep", str(tmp_path / "k.json"), "--only", "a5 mamba"]):
        found = CliRunner().invoke(app, ["reproduce", "languages", "--minutes", "1", *more])
        assert isinstance(found.exception, ValueError) and "without --only, is how they go on" in str(found.exception)
    assert not (tmp_path / "k.json").exists()


def test_controls_are_trained_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page says, and that training changes what is answered: two steps are worse than what is kept."""
    assert set(KEPT["controls"]) <= set(controls.TRAINED) and set(controls.PUBLISHED) <= set(NAMED)
    for one in KEPT["controls"].values():
        assert all(0 <= share <= 1 for share in (*one["accuracy"].values(), *one["common"].values()))
    monkeypatch.setattr(controls, "STEPS", 2)
    monkeypatch.setattr(controls, "TESTS", {40: 16})
    found = controls.trained("ends-with-abb")
    assert found["parameters"] == KEPT["controls"]["ends-with-abb"]["parameters"]
    assert found["accuracy"]["40"] < KEPT["controls"]["ends-with-abb"]["accuracy"]["40"]


def _first(arch: str) -> int:
    return next(row["number"] for row in KEPT["random"] if row["states"] > 2 and arch in row["built"])


@pytest.mark.parametrize("arch", RUNS)
def test_a_random_automaton_comes_out_again(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With shorter words."""
    monkeypatch.setattr(random_automata, "RUNS", RUNS | {arch: (0, 2, 200)})
    row = next((row for row in KEPT["random"] if row["states"] > 1 and arch in row["built"]), KEPT["random"][1])
    found, kept = built_on(row, arch), row["built"][arch]
    assert {**found, "wrong": 0} == {**kept, "wrong": 0} and not any(found["wrong"].values())


in_pieces = partial(runs.wrong_in_transformers, piece=2)


@pytest.mark.parametrize(
    "run, arch",
    [
        (runs.wrong_in_modules, "mamba"),
        (runs.wrong_in_transformers, "mamba"),
        (in_pieces, "gated-deltanet"),
    ],
)
def test_a_wrong_answer_is_counted(run, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one language is asked by the table of another."""
    built = build(Automaton(table=table_json(NAMED["tomita-1"].make()), arch=arch))  # type: ignore[arg-type]
    other = Automaton(table=table_json(NAMED["tomita-7"].make())).tasks()[0]
    given = np.array([[0, 1, 0, 0, 1]])
    right, wrong = (np.array(task.labels(given[0].tolist())) for task in (runs.task_of(built), other))
    assert run(built, given) == 0 and (right != wrong).any()
    monkeypatch.setattr(runs, "task_of", lambda _: other)
    assert run(built, given) == (right != wrong).sum()
