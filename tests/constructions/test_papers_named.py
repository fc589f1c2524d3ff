"""What is printed of a paper names the paper, and says of what is ours that it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from constructions import papers
from constructions.command.cli import app
from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.run import chosen
from tests.constructions.test_construct import run
from verify.tasks.induction import Induction
from verify.tasks.mqar import PaperLayout

ROOT = Path(__file__).parents[2]
NUMBERED = re.compile(r"\b(?:Theorem|Lemma|Corollary|Proposition|Table|Definition)s? [\w.]*\d")
LARGEST_RATIO = 0.1  # γ of paper A, Appendix D.4


def helps() -> dict[str, str]:
    """The first paragraph of the help of every command and sub-command."""
    found, groups = {}, [typer.main.get_command(app)]
    while groups:
        for name, command in groups.pop().commands.items():
            found[name] = " ".join((command.help or "").split("\n\n")[0].split())
            groups += [command] if hasattr(command, "commands") else []
    return found


def test_a_help_text_that_names_a_statement_names_its_paper() -> None:
    told = helps()
    named = {name: text for name, text in told.items() if NUMBERED.search(text)}
    assert {"haar", "copy-decay", "degree-gap", "estimation", "sensitivity", "copy-vectors"} <= named.keys()
    assert [text for text in named.values() if not re.search(r"paper [ABCD]\b", text, re.IGNORECASE)] == []


def test_rates_are_told_of_the_square(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corollary 1 is about the norm; what is fitted is its square, which falls twice as fast."""
    monkeypatch.setattr("constructions.command.display.console.width", 200)
    assert run("approximation-rate", "--breaks", "1/3", "--values", "0,1") == 0
    shown = capsys.readouterr().out
    assert "slopes of the squared error" in shown and "after Corollary 1, of the squared error" in shown
    assert "rates of Corollary 1 (it states them of the error itself)" in shown


@pytest.mark.parametrize("filler", ["neutral", "mixed", "values"])
def test_noise_that_is_not_the_papers_is_not_called_its_layout(filler: str) -> None:
    """Paper A, (46): the noise is random values."""
    told = PaperLayout(4, 8, 32, filler).describe()
    assert "paper layout" not in told
    assert ("(the paper: random values)" in told) == (filler != "values")


def test_a_hard_setting_beyond_the_papers_is_told_in_the_note() -> None:
    for name, experiment in EXPERIMENTS.items():
        ratios = {c.task.gamma for e in chosen(name) for c in e.controls if isinstance(c.task, Induction)}
        for ratio in ratios:
            if ratio > LARGEST_RATIO:
                assert f"γ = {ratio:g}" in experiment.note and f"at most {LARGEST_RATIO:g}" in experiment.note


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith(("figure-", "table-"))])
def test_the_small_sizes_of_a_note_are_those_that_are_trained(name: str) -> None:
    """Of each table its own: which lengths and letters, or none."""
    tasks = [control.task for entry in chosen(name) for control in entry.controls]
    _, said, small = EXPERIMENTS[name].note.partition("Small: ")
    assert bool(said) == bool(tasks)
    if tasks:
        told = small.split(".")[0]
        (lengths,) = re.findall(r"T = (\d+(?:, \d+)*(?: and \d+)?)", told)
        assert {int(length) for length in re.findall(r"\d+", lengths)} == {task.length for task in tasks}
        assert {f"V = {task.vocab}" for task in tasks} == {*re.findall(r"V = \d+", told)}


def test_every_paper_that_is_built_is_cited() -> None:
    cited = (ROOT / "CITATION.cff").read_text("utf-8").replace('\\"', '"')
    for title in (papers.SELECTIVITY, papers.FREE_LUNCH, papers.EXPRESSIVITY, papers.TOKEN_SELECTION):
        assert title in cited
