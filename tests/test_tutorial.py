"""docs/tutorial.md: its code runs as printed, and so do its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.constructions.test_construct import run

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text("utf-8")


def test_the_tutorial_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    scope: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "tutorial", "exec"), scope)  # the page's own text, in its order
    claimed = re.search(r"# (right on all .*)", PAGE)[1]
    assert claimed in capsys.readouterr().out
    commands = re.findall(r"^construct (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        words = re.findall(r'"[^"]*"|\S+', command)
        code = run(*(word.strip('"') for word in words))
        assert code == 0, (command, capsys.readouterr().err)
