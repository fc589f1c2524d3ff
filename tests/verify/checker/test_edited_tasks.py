"""Edited circuits of token selection: compiled, and never proved where an answer is wrong."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from tests.verify.checker import edited_tasks
from verify.checker.check import Verdict

CASES = 8


def test_no_edited_checkpoint_is_proved_where_an_answer_is_wrong(capsys: pytest.CaptureFixture) -> None:
    assert edited_tasks.main(CASES, 16) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["failures"] and sum(found["edits"].values()) == CASES
    assert found["edits"]["rejected"] >= 2


def test_a_checker_that_believes_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    believes = lambda directory: Verdict("all", None, None, None, None, Fraction(1))
    monkeypatch.setattr(edited_tasks, "check", believes)
    assert "WRONG" in {edited_tasks.verdict(case)[0] for case in range(16, 16 + CASES)}


def test_the_same_number_is_the_same_edit() -> None:
    assert edited_tasks.edited(5)[2][0] == edited_tasks.edited(5)[2][0] != edited_tasks.edited(13)[2][0]
    assert {edited_tasks.edited(n)[:2] for n in range(16)} == {(i, t) for i in range(8) for t in edited_tasks.TARGETS}
