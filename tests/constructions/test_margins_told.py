"""What a report says where some answers are wrong: of the answers, and of a margin that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

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
