"""Help texts as they are written: `rich` takes what stands in brackets for a style, and would leave it out."""

from __future__ import annotations

from typing import Any

from rich.markup import escape


def as_written(command: Any) -> Any:
    """The same command, with the texts of its options and of all commands below it shown with their brackets."""
    for option in command.params:
        if getattr(option, "help", None):
            option.help = escape(option.help)
    for below in getattr(command, "commands", {}).values():
        as_written(below)
    return command
