"""With --json the standard output is one JSON object, whatever the code of others prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compiler import compile
from constructions.command import stdout
from constructions.command.cli import app
from tests.artifact.test_compare import count_since

ROOT = Path(__file__).parents[2]
METHOD = """
import atexit, ctypes, os, subprocess, sys
import numpy as np
from constructions.scoring.problem import Found

print("when it is imported")


def find(given):
    print("when it runs")
    os.write(1, b"by no stream of Python\\n")
    subprocess.run(["echo", "by a child process"])
    ctypes.CDLL(None).puts(b"by C")
    if "--json" in sys.argv:
        atexit.register(print, "when the process ends")
    return Found([np.arange(site.width) for site in given.nodes])
"""
PRINTED = ("when it is imported", "when it runs", "by no stream of Python", "by a child process", "by C")
PROBLEM = """
from constructions.copy_dp.problem import DPProblem

print("when it is imported")


def larger(cell, letters, values):
    print("when it runs")
    return values[0] + letters[0] + 1


LARGER = DPProblem(
    name="larger", letters="ab", inputs=(2,), cells=[(0,), (1,)], reads=lambda i: [(0, i)],
    needs=lambda i: [(i - 1,)], missing=0, largest=5, transition=larger, plain=larger,
)
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "method.py").write_text(METHOD)
    (tmp_path / "problem.py").write_text(PROBLEM)
    compile(count_since()).save(tmp_path / "made")
    return tmp_path


def test_what_a_method_prints_goes_to_stderr(there: Path) -> None:
    """From any place, and later as well."""
    score = ("score", "made", "--method", "method.py:find")
    command = [sys.executable, "-m", "constructions", *score, "--json"]
    done = subprocess.run(
        command, cwd=there, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["scores"][0]["area"] is not None and done.returncode == 0
    assert done.stdout.count("\n") == 1 and all(said in done.stderr for said in (*PRINTED, "when the process ends"))
    plain = CliRunner().invoke(app, score)
    assert plain.exit_code == 0 and "when it runs" in plain.stdout and "interchange" in plain.stdout


def test_what_a_problem_prints_goes_to_stderr(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Commands that build run code of others, too, of which they read the options first."""
    done = CliRunner().invoke(app, ["dp", "problem.py:LARGER", "--out", "larger", "--samples", "5", "--json"])
    assert json.loads(done.stdout)["construction"] == "larger" and done.exit_code == 0
    assert "when it is imported" in done.stderr and "when it runs" in done.stderr


def test_a_descriptor_that_is_closed_has_no_copy() -> None:
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    assert stdout._high(write) is None
