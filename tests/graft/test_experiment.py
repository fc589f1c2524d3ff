"""`construct reproduce graft`: its data mean what they say, and its first steps show what the curves show."""

import json

import numpy as np
from typer.testing import CliRunner

from constructions.command.cli import app
from constructions.experiments import graft as experiment
from tests.graft.hosts import induction_answers


def test_what_can_be_recalled_is_what_plain_python_recalls():
    text = experiment.corpus()
    assert len(text) > 50_000 and text.max() < experiment.FIRST
    ids, recalled = experiment.batch(text, np.random.default_rng(0), 8)
    letters = tuple(experiment.symbols())
    for row, marks in zip(ids.tolist(), recalled.tolist(), strict=True):
        words = [letters[i - experiment.FIRST] if i >= experiment.FIRST else "-" for i in row]
        answers = induction_answers(words, letters)
        marked = [t for t, mark in enumerate(marks) if mark]
        assert marked and all(answers[t] == words[t + 1] for t in marked)


def test_the_command_on_a_few_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "SEEDS", 1)
    monkeypatch.setattr(experiment, "STEPS", 4)
    monkeypatch.setattr(experiment, "SHOWN", ())
    files = ("--plot", str(tmp_path / "curves.png"), "--csv", str(tmp_path / "curves.csv"))
    done = CliRunner().invoke(app, ["reproduce", "graft", *files, "--json"])
    assert done.exit_code == 0, done.stderr
    found = {(point["model"], point["step"]): point for point in json.loads(done.stdout)}
    assert found["host", 0]["text"] == found["host with a branch", 0]["text"]
    after, before = found[experiment.AFTERWARDS, 4], found["host", 4]
    assert after["text"] == before["text"] and after["recall"] == 1 and before["recall"] < 0.5
    assert len((tmp_path / "curves.csv").read_text().splitlines()) == len(found) + 1
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_a_host_that_changed_is_seen():
    points = [
        experiment.Point("host", 0, 9, 2.0, 0.1),
        experiment.Point(experiment.AFTERWARDS, 0, 9, 2.0000001, 1.0),
    ]
    assert not experiment.kept(points) and not experiment.kept(points[:1])
