"""The scorer tested by who reads the truth and by who draws, twins by two steps of training, and the page by its
file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from compiler import CheckpointError, compile
from compiler.disguise.key import read_key
from constructions.command.cli import command_line
from constructions.scoring.build import problem_of
from constructions.scoring.circuits import CIRCUITS, circuit
from constructions.scoring.evaluate import score
from constructions.scoring.methods.named import METHODS, ORACLE, found_by
from constructions.scoring.problem import Featurizer, Found
from constructions.scoring.sites import read_all
from constructions.scoring.table import COLUMNS, KINDS, on_page
from constructions.scoring.truth import Truth
from constructions.scoring.twin import exchanged, fresh, trained
from constructions.scoring.twins_saved import read_twin, write_twin
from tests.tracing.models import NAMED as CASES

ROOT = Path(__file__).parents[2]
KEPT = json.loads((ROOT / "docs" / "scores.json").read_text("utf-8"))


def run(*arguments: object) -> int:
    return command_line()([str(a) for a in arguments], standalone_mode=False) or 0


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A flip-flop, plain and disguised."""
    place = tmp_path_factory.mktemp("scores")
    compile(circuit("flip-flop"), "mamba").save(place / "plain")
    assert run("disguise", place / "plain", "--out", place / "hidden", "--seed", 1, "--samples", 10) == 0
    return place


def problem(place: Path, kind: str):
    return (
        problem_of(place / "plain")
        if kind == "plain"
        else problem_of(place / "hidden", read_key(place / "hidden.key.json"))
    )


@pytest.mark.parametrize("kind", ["plain", "hidden"])
def test_the_truth_scores_one_and_chance_does_not(place, kind):
    one = problem(place, kind)
    right = score(one, found_by(ORACLE, one))
    assert right.area == right.faithfulness == right.interchange == 1 and right.matched == pytest.approx(1)
    assert right.answers > 200
    areas = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        areas.append(score(one, Found([rng.random(site.width) for site in one.given.nodes])).area)
    assert abs(np.mean(areas) - 0.5) < 0.12
    assert score(one, found_by("random", one)).interchange < 0.6
    wrong = {name: Featurizer(f.read.flip(0), f.write) for name, f in one.oracle.items()}
    assert score(one, Found(None, wrong)).interchange < 0.5


@pytest.mark.parametrize("target", ["gated-deltanet", "gated-deltanet-qwen"])
def test_the_truth_scores_one_where_the_library_has_other_names(target, tmp_path):
    compile(CASES["accepted"].build(), target).save(tmp_path / "made")
    one = problem_of(tmp_path / "made")
    right = score(one, found_by(ORACLE, one))
    assert right.area == right.faithfulness == 1 and right.matched == pytest.approx(1)


def test_sites_are_read_in_the_order_in_which_they_are_asked_for(place):
    one = problem(place, "plain")
    sites = [*one.given.site.values(), *one.given.nodes]
    for site, values in zip(sites, read_all(one.given.model, sites, one.given.ids), strict=True):
        assert torch.equal(values, site.read(one.given.model, one.given.ids))


def test_patching_finds_the_channels_of_a_plain_circuit(place):
    one = problem(place, "plain")
    assert score(one, found_by("activation-patching", one)).area > 0.9


def test_a_twin_is_written_and_read_and_its_lanes_are_exchanged(place, tmp_path):
    truth = Truth(compile(circuit("flip-flop"), "mamba"))
    twin = trained(truth, seed=0, steps=2)
    write_twin(twin, place / "plain", tmp_path / "twin")
    again, _ = read_twin(tmp_path / "twin")
    assert again.lanes == twin.lanes and again.faithfulness == twin.faithfulness
    ids = torch.from_numpy(truth.draw(3, 12, 5))
    assert torch.equal(twin.model(ids).logits, again.model(ids).logits)
    one = problem_of(tmp_path / "twin")
    assert (one.used[0] == 1).sum() == 4 and (one.used[0] == 0).sum() == 28
    base, source = torch.zeros(1, 1, 32), torch.ones(1, 1, 32)
    assert exchanged(base, source, [3, 5]).sum() == 2
    assert all(fresh(truth, 1).lanes[name] != lanes for name, lanes in twin.lanes.items())


def test_every_circuit_has_a_variable_and_its_interchange_changes_answers():
    for name in CIRCUITS:
        truth = Truth(compile(circuit(name), "mamba"))
        ids = truth.draw(40, 12, 1)
        for variable in truth.variables:
            swapped = truth.pairs(variable, ids[:20], ids[20:]).answers
            assert (swapped != truth.answers(ids[:20])).any(), (name, variable)
            own = truth.pairs(variable, ids[:20], ids[:20]).answers
            assert (own == truth.answers(ids[:20])).all(), (name, variable)


def test_refusals(place, tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def nothing(given):\n    return 3\n")
    plain = place / "plain"
    asked = {
        "its key": ("score", place / "hidden", "--method", "oracle"),
        "neither FILE.py:function": ("score", plain, "--method", "guess"),
        "no function 'some'": ("score", plain, "--method", f"{bad}:some"),
        "returned int": ("score", plain, "--method", f"{bad}:nothing"),
        "left alone": ("twin", plain, "--out", plain),
    }
    for sentence, arguments in asked.items():
        with pytest.raises((ValueError, CheckpointError), match=sentence):
            run(*arguments)
    one = problem(place, "plain")
    with pytest.raises(ValueError, match="shapes"):
        score(one, Found([np.zeros(3)]))


def test_the_page_has_the_table_of_the_file():
    page = (ROOT / "docs" / "scores.md").read_text("utf-8")
    assert page == on_page(page, KEPT)
    oracle = [row for row in KEPT["rows"] if row["method"] == ORACLE]
    assert oracle and all(
        row[c] in (1, None) or abs(row[c] - 1) < 1e-9 for row in oracle for c in COLUMNS if row["kind"] != KINDS[2]
    )
    assert {row["method"] for row in KEPT["rows"]} == {ORACLE, *METHODS}
