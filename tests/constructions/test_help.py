"""The help of every command shows the text of each option as it is written, whatever stands in brackets there."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from rich.markup import escape

from constructions.command.cli import command_line
from tests.command_lines import commands

EVERY = dict(commands(command_line()))


def shown(names: tuple[str, ...]) -> str:
    """A help on a terminal so wide that no text is folded."""
    done = CliRunner(env={"COLUMNS": "1000"}).invoke(command_line(), [*names, "--help"])
    assert done.exit_code == 0, done.output
    return done.output


def of_options(command: Any) -> list[str]:
    """The texts of its options, as they were written."""
    texts = [option.help for option in command.params if getattr(option, "help", None)]
    return [text.replace("\\[", "[") for text in texts]


@pytest.mark.parametrize("names", EVERY, ids=" ".join)
def test_help_shows_every_text_of_an_option(names: tuple[str, ...]) -> None:
    said = shown(names)
    assert not [text for text in of_options(EVERY[names]) if text not in said]


def test_brackets_stand_in_many_texts_and_rich_would_leave_them_out() -> None:
    bracketed = [text for command in EVERY.values() for text in of_options(command) if escape(text) != text]
    assert len(bracketed) > 40 and "which block, from 1 on [default: the last]" in bracketed
    assert "which block, from 1 on [default: the last]" in shown(("sensitivity",))
