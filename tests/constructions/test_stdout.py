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
LAST = """
import atexit, ctypes, sys
from compiler.artifact.formats import format_names, register
from tests.graft.hosts import counter, induction

counts, follows = counter(), induction("abc")
if "mine" not in format_names():  # compose reads the file once for each circuit
    register("mine", lambda checkpoint, target, overwrite: target.write_text("mine"))

atexit.register(print, "when the process ends")
atexit.register(print, "by its own stream", file=sys.__stdout__)
ctypes.CDLL(None).puts(b"by C, which keeps it")
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


def in_a_process(there: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "constructions", *arguments]
    return subprocess.run(
        command, cwd=there, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )


def test_what_a_method_prints_goes_to_stderr(there: Path) -> None:
    """From any place, and later as well."""
    score = ("score", "made", "--method", "method.py:find")
    done = in_a_process(there, *score, "--json")
    assert json.loads(done.stdout)["scores"][0]["area"] is not None and done.returncode == 0
    assert done.stdout.count("\n") == 1 and all(said in done.stderr for said in (*PRINTED, "when the process ends"))
    plain = CliRunner().invoke(app, score)
    assert plain.exit_code == 0 and "when it runs" in plain.stdout and "interchange" in plain.stdout


def test_what_a_problem_prints_goes_to_stderr(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Commands that build run code of others, too, of which they read the options first."""
    done = CliRunner().invoke(app, ["dp", "problem.py:LARGER", "--out", "larger", "--samples", "5", "--json"])
    assert json.loads(done.stdout)["construction"] == "larger" and done.exit_code == 0
    assert "when it is imported" in done.stderr and "when it runs" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("dp", "problem.py:LARGER", "--out", "larger", "--samples", "5", "--no-certify"),
        ("dp", "problem.py:NONE"),
        ("export", "made", "--format", "problem.py:mine"),
        ("compose", "problem.py:counts", "problem.py:follows", "--out", "both", "--samples", "5"),
    ],
    ids=" ".join,
)
def test_what_is_printed_when_the_process_ends_goes_to_stderr(command, there: Path) -> None:
    (there / "problem.py").write_text(PROBLEM + LAST)
    done = in_a_process(there, *command, "--json")
    assert done.stdout.count("\n") == 1 and isinstance(json.loads(done.stdout), dict), done.stdout
    assert done.returncode == (2 if "problem.py:NONE" in command else 0)
    for said in ("when the process ends", "by its own stream", "by C, which keeps it"):
        assert said in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("score", "made", "--method", "nosuch"),
        ("score", "nowhere", "--method", "method.py:find"),
        ("conformance", "--kernel", "nowhere.py:scan"),
        ("conformance", "--kernel", "method.py:find", "--operation", "nosense"),
    ],
    ids=" ".join,
)
def test_a_refusal_is_the_object_of_the_standard_output(command, there: Path) -> None:
    """Also behind a block that lends the standard output for good."""
    done = in_a_process(there, *command, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == 2 and told["error"] in done.stderr and "{" not in done.stderr


def test_a_descriptor_that_is_closed_has_no_copy() -> None:
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    assert stdout._high(write) is None
