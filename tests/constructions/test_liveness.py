"""On a terminal every long command shows life within a second, each part under its own name."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.constructions.test_construct import run

ROOT = Path(__file__).parents[2]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDTH = 66
SECOND = 1.0


def on_a_terminal(*command: str, width: int = WIDTH) -> tuple[float, str]:
    """(seconds to the first byte, everything that was written) of a command whose output is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    variables = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    variables |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command], stdin=theirs, stdout=theirs, stderr=theirs, env=variables, close_fds=True
    )
    os.close(theirs)
    first, parts = float("inf"), []
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the terminal's other end is closed
            break
        if not part:
            break
        first = min(first, time.monotonic() - start)
        parts.append(part)
    os.close(ours)
    assert process.wait() == 0, b"".join(parts).decode()
    return first, b"".join(parts).decode()


def construct(*arguments: str) -> tuple[float, str]:
    return on_a_terminal("-m", "constructions", *arguments)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("live") / "out"
    assert run("count-in-row", "--largest", "2", "--samples", "20", "--out", str(place), "--json") == 0
    return place


COMMANDS = {
    "build": (
        ("count-in-row", "--largest", "2", "--samples", "20", "--out", "{new}"),
        (
            "start PyTorch",
            "compile",
            "package",
            "verify count-in-row (bare)",
            "verify count-in-row (language model)",
            "proof",
            "save and report",
        ),
    ),
    "verify": (("verify", "{old}", "--samples", "20"), ("start PyTorch", "verify count-in-row (checkpoint)")),
    "plot": (("plot", "{old}", "--input", "1 1 0", "--out", "{new}.png"), ("plot",)),
    "prove": (("prove", "{old}"), ("prove",)),
    "haar": (
        ("haar", "--levels", "1", "--samples", "4", "--out", "{new}"),
        ("haar", "compile for the checkpoint", "verify numbers (checkpoint)", "verify haar (checkpoint)"),
    ),
    "keep-nth-position": (
        ("keep-nth-position", "--n", "2", "--vocab", "2", "--samples", "2", "--no-certify"),
        ("start PyTorch", "keep-nth-position"),
    ),
    "fnn+ssm": (
        ("unique-induction", "--vocab", "2", "--length", "3", "--arch", "fnn+ssm"),
        ("start PyTorch", "compile", "verify unique-induction (fnn+ssm)"),
    ),
    "degree-gap": (("degree-gap", "--length", "4", "--layers", "1"), ("degree-gap",)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_command_shows_life_and_names_its_parts(name: str, checkpoint: Path, tmp_path: Path) -> None:
    arguments, parts = COMMANDS[name]
    first, text = construct(*(a.format(old=checkpoint, new=tmp_path / "new") for a in arguments))
    assert first <= SECOND, f"{first:.2f} s to the first sign of life"
    for part in parts:
        assert part in ESCAPES.sub("", text), part


@pytest.mark.parametrize("width", [50, 90])
def test_the_width_is_that_of_the_terminal(width: int, checkpoint: Path) -> None:
    for arguments in (("show", str(checkpoint)), ("show", str(checkpoint), "--stage", "core")):
        _, text = on_a_terminal("-m", "constructions", *arguments, width=width)
        lines = ESCAPES.sub("", text).splitlines()
        assert max(map(len, lines)) <= width and len(lines) > 5
    _, text = on_a_terminal("-m", "constructions", "inspect", str(checkpoint), width=width)
    tables = [line for line in ESCAPES.sub("", text).splitlines() if line.strip() and line.strip()[0] in "┏┃│└"]
    assert tables and max(map(len, tables)) <= width
