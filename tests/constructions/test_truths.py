"""Statements that do not stand as they are: each fails on its counterexample, what is told to hold does, the page shows
the measured numbers, and these come from the counterexample: other constants give other ones.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from constructions.command.reporting import strict_json
from constructions.truths.collection import TRUTHS, chosen
from constructions.truths.commands import as_data
from constructions.truths.page import PAGE, page
from constructions.truths.truth import Finding, Kind, Truth
from tests.constructions.test_construct import run
from tests.constructions.truths_constants import OTHERS


@cache
def measured(truth: Truth) -> Finding:
    return truth.measure()


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_the_statement_fails_and_what_holds_holds(truth: Truth) -> None:
    finding = measured(truth)
    assert finding.fails, finding.against
    assert finding.holds, finding.instead
    assert json.loads(strict_json(as_data(truth, finding)))["statement_fails"] is True


def numbers(finding: Finding) -> list[float]:
    return [*finding.against.values(), *finding.instead.values()]


@cache
def elsewhere(truth: Truth) -> dict[str, Finding]:
    """What is measured with another value for each constant, one at a time."""
    return {name: truth.measure(**{name: value}) for name, value in OTHERS[truth.name].other.items()}


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_every_constant_of_the_counterexample_moves_some_number(truth: Truth) -> None:
    others = OTHERS[truth.name].other
    assert others.keys() == truth.constants.keys(), "a constant of `measure` has no other value in truths_constants.py"
    assert all(value != truth.constants[name] for name, value in others.items())
    assert [name for name, finding in elsewhere(truth).items() if numbers(finding) == numbers(measured(truth))] == []


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_every_number_is_moved_by_some_constant(truth: Truth) -> None:
    """So that none of them is written down. Where a constant changes how many rows there are, they do not compare."""
    others = [truth.measure(**kept) for kept in (OTHERS[truth.name].stands, OTHERS[truth.name].breaks)]
    rows = numbers(measured(truth))
    found = [numbers(f) for f in (*elsewhere(truth).values(), *others) if len(numbers(f)) == len(rows)]
    labels = [*measured(truth).against, *measured(truth).instead]
    assert [label for i, label in enumerate(labels) if all(other[i] == rows[i] for other in found)] == []


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_each_judgement_can_come_out_the_other_way(truth: Truth) -> None:
    assert not truth.measure(**OTHERS[truth.name].stands).fails
    assert not truth.measure(**OTHERS[truth.name].breaks).holds


@pytest.mark.parametrize("changed", [{}, OTHERS["copy-clause"].other])
def test_what_the_clause_is_compared_with_is_taken_at_the_epsilon_that_is_told(changed: dict) -> None:
    """By hand: L = `window`, M‖Δ‖ = 1, and where each copies itself one quotient, a/(1 − a), is left of (27)."""
    (truth,) = chosen("copy-clause")
    constants = {name: changed.get(name, value) for name, value in truth.constants.items()}
    told = truth.measure(**constants).instead
    least, quotient = told["one ρ, all pos(i) = i: ε for which (7) is met at all"], constants["decay"]
    quotient /= 1 - quotient
    assert told["right side of (27) at this ε"] == pytest.approx(least / quotient, rel=1e-12)
    assert told["ε/((L − 1)M‖Δ‖) at this ε"] == pytest.approx(least / (constants["window"] - 1), rel=1e-12)


def test_the_constants_belong_to_statements() -> None:
    assert OTHERS.keys() == {truth.name for truth in TRUTHS}
    assert {truth.kind for truth in TRUTHS} == set(Kind)


def test_the_page_shows_what_is_measured() -> None:
    found = page([(truth, measured(truth)) for truth in TRUTHS])
    assert PAGE.read_text() == found, "run `python -m constructions.truths.page`"


def test_the_changelog_tells_what_was_withdrawn_and_what_moved_where() -> None:
    """And these are no statements any more; those that it calls new or corrected are."""
    root, names = Path(__file__).parents[2], {truth.name for truth in TRUTHS}
    text = (root / "CHANGELOG.md").read_text("utf-8")
    told = re.search(r"Withdrawn,(.*?)Moved,(.*?)New:(.*?)Corrected:(.*?)\n- ", text, re.DOTALL)
    assert told is not None
    withdrawn, moved, new, corrected = (set(re.findall(r"`([a-z-]+)`", part)) for part in told.groups())
    assert {"printed-constants", "signs-pass-silu", "attention-own-token"} == withdrawn and "adjacent-keys" in moved
    assert not names & (withdrawn | moved) and names >= new | corrected and new and corrected
    assert all((root / page).is_file() for page in re.findall(r"docs/[a-z-]+\.md", told[2]))


def test_names_are_distinct_and_others_refused() -> None:
    assert len({truth.name for truth in TRUTHS}) == len(TRUTHS)
    with pytest.raises(ValueError, match="no statement 'x'"):
        chosen("x")


def test_the_command(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("truths", "keep-sign", "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["against"] == {"⟨x, h₁ − h₂⟩": -7, "x_n": 7} and told["kind"] == "fails as printed"
    assert told["constants"] == {"n": 3, "x": [5, -2, 7, 4], "order": [0, 1]}
    assert told["statement_fails"] and told["instead_holds"]
    assert run("truths", "keep-sign") == 0
    shown = capsys.readouterr().out
    assert "(fails as printed)" in shown and "= 1[s > n]" in shown and "n = 3" in shown
    assert run("truths", "no-such-thing") == 2
    turned = replace(chosen("keep-sign")[0], measure=lambda: Finding({}, False, {}, True))
    monkeypatch.setattr("constructions.truths.collection.chosen", lambda name: (turned,))
    assert run("truths", "keep-sign") == 1
    assert "not as the page says: keep-sign" in capsys.readouterr().err
