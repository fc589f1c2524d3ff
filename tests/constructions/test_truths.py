"""What the theorems do not say: each statement fails on its counterexample, what is told to hold does, and the page
shows the measured numbers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from constructions.reporting import strict_json
from constructions.truths.collection import TRUTHS, chosen
from constructions.truths.commands import as_data
from constructions.truths.page import PAGE, page
from constructions.truths.truth import Finding, Truth
from tests.constructions.test_construct import run


@cache
def measured(truth: Truth) -> Finding:
    return truth.measure()


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_the_statement_fails_and_what_holds_holds(truth: Truth) -> None:
    finding = measured(truth)
    assert finding.fails, finding.against
    assert finding.holds, finding.instead
    assert json.loads(strict_json(as_data(truth, finding)))["statement_fails"] is True


def test_the_page_shows_what_is_measured() -> None:
    found = page([(truth, measured(truth)) for truth in TRUTHS])
    assert PAGE.read_text() == found, "run `python -m constructions.truths.page`"


def test_names_are_distinct_and_others_refused() -> None:
    assert len({truth.name for truth in TRUTHS}) == len(TRUTHS)
    with pytest.raises(ValueError, match="no statement 'x'"):
        chosen("x")


def test_the_command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("truths", "windows-end", "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["against"] == {"last token for 3³, copies from x₂ on, T = 6": 0, "promised": 27}
    assert told["statement_fails"] and told["instead_holds"]
    assert run("truths", "no-such-thing") == 2
    turned = replace(chosen("windows-end")[0], measure=lambda: Finding({}, False, {}, True))
    monkeypatch.setattr("constructions.truths.collection.chosen", lambda name: (turned,))
    assert run("truths", "windows-end") == 1
    assert "not as the page says: windows-end" in capsys.readouterr().err
