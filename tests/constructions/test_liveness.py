"""On a terminal every long command shows life within a second, each part under its own name."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.constructions.test_construct import run
from tests.spread import some

ROOT = Path(__file__).parents[2]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WIDTH = 66
WIDTHS = (50, 90)
SECOND = 1.0


def on_a_terminal(*command: str) -> Iterator[tuple[float, bytes]]:
    """(seconds since it began, what was written) again and again, of a command whose output is a terminal; it must end
    well, or is stopped where nobody reads on."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    variables = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    variables |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command], stdin=theirs, stdout=theirs, stderr=theirs, env=variables, close_fds=True
    )
    os.close(theirs)
    written = b""
    try:
        while part := _read(ours):
            written += part
            yield time.monotonic() - start, part
        assert process.wait() == 0, written.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # its other end is closed
        return b""


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


SHOWN = some(COMMANDS, 0.25)  # all of these are run for the first test of them

# Commands one after the other on one terminal, each after a line that names it: a process of its own would take
# seconds to import what the last one had.
IN_TURN = """
import fcntl, json, struct, sys, termios
from constructions.__main__ import main

for name, (width, *arguments) in json.loads(sys.argv[1]).items():
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    print(f"\\n=== {name} ===", flush=True)
    sys.argv = ["construct", *arguments]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
"""


def in_turn(commands: dict[str, tuple[int | str, ...]]) -> dict[str, str]:
    """What each command (a width and its words), by its name, shows on a terminal as wide, without its escapes; all
    of them must end well.
    """
    text = b"".join(part for _, part in on_a_terminal("-c", IN_TURN, json.dumps(commands))).decode()
    _, *shown = re.split(r"=== (.*) ===", ESCAPES.sub("", text))
    return dict(zip(shown[::2], shown[1::2], strict=True))


@pytest.fixture(scope="module")
def shown(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command shows, and by command and width what is shown of a checkpoint."""
    new, place = tmp_path_factory.mktemp("shown"), str(checkpoint)
    lines = {name: COMMANDS[name][0] for name in SHOWN}
    parts = {name: (WIDTH, *(a.format(old=place, new=new / name) for a in line)) for name, line in lines.items()}
    words = {"show": ("show", place), "core": ("show", place, "--stage", "core"), "inspect": ("inspect", place)}
    return in_turn(parts | {f"{name} {width}": (width, *line) for width in WIDTHS for name, line in words.items()})


@pytest.mark.parametrize("name", SHOWN)
def test_a_long_command_names_its_parts(name: str, shown: dict[str, str]) -> None:
    for part in COMMANDS[name][1]:
        assert part in shown[name], part


@pytest.mark.quick
@pytest.mark.parametrize("name", ["plot", "degree-gap"])
def test_a_command_shows_life_at_once(name: str, checkpoint: Path, tmp_path: Path) -> None:
    """Before anything is imported, whichever command it is: one of a checkpoint, and one that builds nothing."""
    words = (a.format(old=checkpoint, new=tmp_path / "new") for a in COMMANDS[name][0])
    first, _ = next(on_a_terminal("-m", "constructions", *words))
    assert first <= SECOND, f"{first:.2f} s to the first sign of life"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_width_is_that_of_the_terminal(width: int, shown: dict[str, str]) -> None:
    for name in ("show", "core"):
        lines = shown[f"{name} {width}"].splitlines()
        assert max(map(len, lines)) <= width and len(lines) > 5
    tables = [line for line in shown[f"inspect {width}"].splitlines() if line.strip() and line.strip()[0] in "┏┃│└"]
    assert tables and max(map(len, tables)) <= width
