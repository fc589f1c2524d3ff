"""Every `construct …` that a page or a docstring names is a command, and every option beside it one of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constructions.command.cli import command_line

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = [p for folder in ("constructions", "compiler", "conformance", "verify") for p in (ROOT / folder).rglob("*.py")]
NAMED = re.compile(r"`construct ((?:[^`\\]|\\.)+)`")
LINE = re.compile(r"^ *(?:\$ )?(?:\.venv/bin/)?construct (.+?)(?: *#.*)?$", re.MULTILINE)
FENCED = re.compile(r"```(?:sh|bash|console|text)?\n(.*?)```", re.DOTALL)


def named(text: str, fenced: bool) -> Iterator[str]:
    """The command lines of a text, without the word construct; in one line."""
    yield from (" ".join(found.split()) for found in NAMED.findall(text))
    if fenced:
        for block in FENCED.findall(text):
            yield from LINE.findall(block.replace("\\\n", " "))


def wrong(line: str) -> str | None:
    """What of a command line there is not: a command or an option; None where all is there, or a placeholder stands."""
    command: Any = command_line()
    words = re.split(r"[\s\[\]()|]+", line)
    while hasattr(command, "commands") and words:
        word = words.pop(0)
        if not re.fullmatch(r"[a-z][a-z0-9-]*", word):
            return None  # such as DIR, NAME or …, or an option of all
        if word not in command.commands:
            return word
        command = command.commands[word]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    options = [word.split("=")[0].rstrip(".,;:") for word in words if re.match(r"--[a-z]", word)]
    return next((option for option in options if option not in known), None)


@pytest.mark.parametrize("path", [p for p in PAGES if p.exists()], ids=lambda path: path.name)
def test_commands_of_a_page_are_there(path: Path) -> None:
    lines = list(named(path.read_text("utf-8"), fenced=True))
    assert [(line, found) for line in lines if (found := wrong(line)) is not None] == []


def test_commands_of_docstrings_are_there() -> None:
    lines = [(path.name, line) for path in CODE for line in named(path.read_text("utf-8"), fenced=False)]
    assert len(lines) > 50
    assert [(name, line, found) for name, line in lines if (found := wrong(line)) is not None] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mqar --kappa 4 --vocab 8", None),
        ("dp lis --length 4", None),
        ("lis --dtype float16", "lis"),
        ("mqar --kapa 4", "--kapa"),
        ("zoo biuld x", "biuld"),
        ("NAME --anything", None),
    ],
)
def test_what_is_not_there_is_found(line: str, found: str | None) -> None:
    assert wrong(line) == found
