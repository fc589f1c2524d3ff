"""A file of the user's that ends the process: no command that runs one ends with 0 by that, nor without a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiler import compile
from tests.artifact.test_compare import count_since
from tests.fresh import ROOT, fresh

COMMANDS = {
    "score": ("score", "{saved}", "--method", "mine.py:f"),
    "dp": ("dp", "mine.py:f"),
    "compose": ("compose", "mine.py:f", "{saved}", "--out", "both"),
    "graft": ("graft", "{saved}", "mine.py:f", "--out", "both"),
}
SENTENCE = "a file that this command runs has ended it by os._exit(0): there is no result."


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ends") / "saved"
    compile(count_since()).save(place)
    return place


def ended(name: str, saved: Path, at: Path, *more: str):
    command = [part.format(saved=saved) for part in COMMANDS[name]]
    return fresh("-m", "constructions", *command, *more, cwd=at)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_ends_the_process_is_told(name: str, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\nos._exit(0)\n")
    done = ended(name, saved, tmp_path)
    assert done.returncode == 2 and SENTENCE in done.stderr


def test_a_method_that_ends_the_process_is_told(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import os\ndef f(given):\n    os._exit(0)\n")
    done = ended("score", saved, tmp_path, "--json")
    assert done.returncode == 2 and json.loads(done.stdout) == {"error": SENTENCE, "exit_code": 2}


def test_the_code_of_a_refusal_stands_where_a_file_ends_the_process_later(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import atexit, os\natexit.register(os._exit, 0)\nf = 1 // 0\n")
    command = [sys.executable, "-m", "constructions", "dp", "mine.py:f"]  # of its own, for a fork ends by no atexit
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True)
    assert done.returncode == 2 and b"ZeroDivisionError" in done.stderr


def test_a_child_of_a_file_ends_as_it_likes(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os\npid = os.fork()\nif not pid: os._exit(0)\nassert os.waitpid(pid, 0)[1] == 0\n"
    )
    done = ended("score", saved, tmp_path)
    assert done.returncode == 2 and SENTENCE not in done.stderr and "has no function 'f'" in done.stderr
