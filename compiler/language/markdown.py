"""Names that users gave, as Markdown shows them and does not obey them: a name may hold a heading, or a tag of HTML."""

from __future__ import annotations

import re

_MARKS = re.compile(r"[\\`*<>\[\]|&]|(?<!\w)_|_(?!\w)|^(?=[#+\-=~])")
_NUMBER = re.compile(r"^(\d+)(?=[.)])")
_RUNS = re.compile(r"`+")


def one_line(text: str) -> str:
    """The text with its white space as single blanks, and what cannot be printed as Python writes it."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """The text with its lines as they are, and what cannot be printed as Python writes it: a terminal obeys an ESC."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else repr(c)[1:-1] for c in text)


def prose(text: str) -> str:
    """One line in which no character is a mark."""
    return _NUMBER.sub(r"\1\\", _MARKS.sub(lambda mark: f"\\{mark[0]}", one_line(text)))


def code(text: str, in_table: bool = False) -> str:
    """One line as a span of code, between more backticks than stand side by side in it. in_table: within a cell."""
    said = one_line(text) or " "
    fence = "`" * (1 + max((len(run) for run in _RUNS.findall(said)), default=0))
    blank = " " if said[0] == "`" or said[-1] == "`" else ""
    return f"{fence}{blank}{said.replace('|', chr(92) + '|') if in_table else said}{blank}{fence}"
