"""What a report says where some answers are wrong: of the answers, and of a margin that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compiler.artifact.records import answers_word
from constructions.command.cli import app

KEYS = ("mqar", "--kappa", "4", "--vocab", "8", "--arch", "mamba2", "--samples", "40", "--no-certify")
RANDOM = ("--guarantee", "random", "--key-code", "8")
BELOW = "at 0 or below another is as high, or higher"


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict[str, tuple[str, float, Path]]:
    """Of one-hot keys and of short key codes: the report, the least margin, and the checkpoint."""
    found = {}
    for name, more in (("one-hot", ()), ("codes", RANDOM)):
        out = tmp_path_factory.mktemp(name) / "model"
        text = " ".join(CliRunner().invoke(app, [*KEYS, *more, "--out", str(out)]).stdout.split())
        run = json.loads((out / "construction.json").read_text("utf-8"))["verification"]
        found[name] = text, min(row["margin"] for row in run["tasks"].values()), out
    return found


def test_codes_this_short_are_wrong_somewhere(told):
    assert told["codes"][1] <= 0 < told["one-hot"][1]


def test_a_margin_that_is_none_is_told(told):
    assert BELOW in told["codes"][0] and BELOW not in told["one-hot"][0]


def test_of_key_codes_it_is_said_that_some_answers_are_wrong(told):
    card = (told["codes"][2] / "README.md").read_text("utf-8")
    said = "answers right: not all; some are wrong, at a rate that was measured"
    assert said in told["codes"][0] and said.capitalize() in card and said not in told["one-hot"][0]


LONG = ("mqar", "--kappa", "4", "--vocab", "8", "--arch", "mamba2", "--guarantee", "random", "--key-code", "64")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "answers right: all "),
        (("--no-certify",), "answers right: all that were tested (160); others may be wrong"),
    ],
)
def test_of_key_codes_that_err_nowhere_no_answer_is_called_wrong(more, said, tmp_path):
    """Codes this long are proved to answer right. Without a proof it is said what was tested."""
    found = CliRunner().invoke(app, [*LONG, *more, "--samples", "40", "--out", str(tmp_path / "model")])
    assert found.exit_code == 0 and said in " ".join(found.stdout.split()).replace("domain:", " domain:")
    card = " ".join((tmp_path / "model" / "README.md").read_text("utf-8").split())
    assert said.strip().capitalize() in card and "some are wrong" not in card + found.stdout


def test_the_word_for_programs_is_all_where_all_is_proved():
    parts = {"arithmetic": True, "meaning": True, "specials": True}
    told = lambda holds, task: {"answers": "random", "certificate": {"holds": holds, "parts": parts | {"task": task}}}
    assert answers_word(told(True, True), None) == "all"
    for guarantee in (told(False, True), told(True, False), {"answers": "random", "certificate": None}):
        assert answers_word(guarantee, None) == "random"
