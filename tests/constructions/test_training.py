"""`construct reproduce training`: its answers are plain Python's, its rows what they say, and the page has them all."""

import json
from pathlib import Path

import numpy as np
import torch
from typer.testing import CliRunner

from constructions.command.cli import app
from constructions.experiments import training
from tests.graft.hosts import induction_answers

PAGE = (Path(__file__).parents[2] / "docs" / "graft.md").read_text("utf-8")


def test_the_answers_are_those_of_plain_python():
    row = training.ROWS[2]
    places = training.answers_of(row, 0)
    assert sorted(places) == list(range(training.LETTERS + 1)) and places[0] == 0 and (np.diff(places) < 0).any()
    ids, wanted = training.batch(np.random.default_rng(0), 4, places)
    names = tuple("abcdefgh")
    for line, answers in zip(ids.tolist(), wanted.tolist(), strict=True):
        found = induction_answers([names[i - 1] for i in line], names)
        assert answers == [0 if answer is None else places[1 + names.index(answer)] for answer in found]


def test_the_starts_are_what_their_rows_say():
    exact = training.compiled_model().state_dict()
    for row, close in ((training.ROWS[0], 0.0), (training.ROWS[4], 1.0)):
        model = training.started(row, 0).state_dict()
        assert all(
            torch.equal(model[name], tensor) == (close == 0 or not tensor.any()) for name, tensor in exact.items()
        )
        assert all((model[name] - tensor).abs().max() <= close * tensor.abs().max() for name, tensor in exact.items())


def test_the_command_on_one_row(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "ROWS", training.ROWS[:1])
    monkeypatch.setattr(training, "SEEDS", 1)
    monkeypatch.setattr(training, "SHOWN", (0, 2))
    done = CliRunner().invoke(app, ["reproduce", "training", "--json", "--csv", str(tmp_path / "points.csv")])
    assert done.exit_code == 0, done.stderr
    assert [(point["step"], point["right"]) for point in json.loads(done.stdout)] == [(0, 1.0), (2, 1.0)]
    assert len((tmp_path / "points.csv").read_text().splitlines()) == 3
    monkeypatch.setattr(training, "RATES", {"relative": 100.0})
    assert CliRunner().invoke(app, ["reproduce", "training"]).exit_code == 1
    refused = CliRunner().invoke(app, ["reproduce", "training", "--only", "own"])
    assert "one run without parts" in str(refused.exception)


def test_the_page_has_every_row():
    table = PAGE.split("as `construct reproduce training` prints them:")[1].split("```")[1]
    for row in training.ROWS:
        assert sum(line.startswith(row.name) for line in table.splitlines()) == 1
