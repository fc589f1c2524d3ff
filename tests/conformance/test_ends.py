"""A kernel that ends the process: no CI service takes that for a verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.fresh import ROOT, fresh

ENDS = """import os
def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    {how}
"""
CHILD = "pid = os.fork(); os._exit(0) if pid == 0 else os.waitpid(pid, 0); os._exit(3)"


@pytest.mark.parametrize(
    ("how", "code"), [("os._exit(0)", 1), ("os._exit(7)", 7), (CHILD, 3)], ids=["0", "7", "a child"]
)
def test_a_kernel_that_ends_the_process_is_not_right(how: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ENDS.format(how=how))
    done = fresh("-m", "constructions", "conformance", "--kernel", "mine.py:scan", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert ("there is no verdict" in done.stderr) == (how == "os._exit(0)")


@pytest.mark.parametrize("how", ["os._exit(0)", "os._exit(7)", "os.kill(os.getpid(), 9)"])
def test_no_verdict_of_an_earlier_run_stays_where_a_kernel_ends_the_process(how: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ENDS.format(how=how))
    (tmp_path / "report.xml").write_text('<testsuites name="conformance">all right')
    command = ("conformance", "--kernel", "mine.py:scan", "--junit", "report.xml")
    done = fresh("-m", "constructions", *command, cwd=tmp_path)
    assert done.returncode != 0
    (suite,) = ET.parse(tmp_path / "report.xml").getroot()
    why = "os._exit(0): there is no verdict" if how == "os._exit(0)" else "the run has not come to its end"
    assert suite.get("errors") == "1" and why in (tmp_path / "report.xml").read_text()


PRINTS = """import atexit, os, sys, threading, time
print("imported")
os.write(1, b"imported by C")
atexit.register(print, "at the end")
atexit.register(os.write, 1, b"at the end, by C")
def forever():
    while True:
        os.write(1, b"from a thread")
        time.sleep(0.001)
threading.Thread(target=forever, daemon=True).start()
def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
    print("run")
    sys.__stdout__.write("run, and kept")
    raise RuntimeError("no such width")
"""
LATE = """import atexit, os
from conformance.faults.small import norm as right
atexit.register(os._exit, 0)
atexit.register(lambda: os._exit(0))
def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
    return {how}
"""
RIGHT = "right(x, weight, z, eps, group_size, norm_before_gate)"


def alone(*arguments: str, at: Path) -> subprocess.CompletedProcess[bytes]:
    """A process of its own, to its end."""
    command = [sys.executable, "-m", "constructions", "conformance", "--kernel", "mine.py:norm", *arguments]
    return subprocess.run(command, cwd=at, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True)


@pytest.mark.parametrize(("how", "code", "says"), [("0 * x", 1, b"wrong: "), (RIGHT, 0, b"right: all ")])
def test_the_code_of_a_verdict_stands_where_a_kernel_ends_the_process_later(
    how: str, code: int, says: bytes, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(LATE.format(how=how))
    done = alone(at=tmp_path)
    assert done.returncode == code and says in done.stdout and b"there is no verdict" not in done.stderr


def test_nothing_that_a_kernel_prints_stands_beside_the_one_object(tmp_path: Path) -> None:
    """When it is imported, when it runs, from a thread of its own, and when the process ends."""
    (tmp_path / "mine.py").write_text(PRINTS)
    done = alone("--json", at=tmp_path)
    assert not json.loads(done.stdout)["good"] and done.returncode == 1
    assert done.stdout.count(b"\n") == len(done.stdout.splitlines()) and b"from a thread" in done.stderr
    for said in (b"imported by C", b"at the end", b"at the end, by C", b"run, and kept"):
        assert said in done.stderr
