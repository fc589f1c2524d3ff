"""A page whose coordinates are inches, so that every text has the room that it takes, and none is cut off."""

from __future__ import annotations

import textwrap
from functools import cache
from io import BytesIO
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from compiler.artifact.files import GENERATOR
from compiler.artifact.plain_files import fresh_file

POINT = 1 / 72  # inches
LINE = 1.35  # height of a line of text over its size
_HINTED = 1.08  # small letters on whole pixels are wider than their outlines


@cache
def _paths() -> TextToPath:
    return TextToPath()


@cache
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Inches that the longest line takes."""
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    lines = text.split("\n")
    widest = max(_paths().get_text_width_height_descent(line, font, ismath=False)[0] for line in lines)
    return widest * POINT * _HINTED


def text_height(text: str, size: float) -> float:
    """Inches that the lines take."""
    return (text.count("\n") + 1) * size * LINE * POINT


def wrapped(text: str, size: float, width: float) -> str:
    """The text in lines of at most `width` inches, broken between words and, where one word is longer, inside it."""
    characters = max(8, int(width / max(text_width(text, size), 1e-9) * len(text)))
    while True:
        shown = "\n".join(textwrap.wrap(text, characters, break_on_hyphens=False)) or text
        if text_width(shown, size) <= width or characters <= 8:
            return shown
        characters -= 1


def shortened(text: str, most: int) -> str:
    """A text of any length as its start and its end."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]}…{text[len(text) - most // 3 + 1 :]}"


def blank(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty page; (0, 0) is its upper left corner."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    return figure, axes


def save(figure: Figure, path: str | Path, dpi: int | None = None) -> None:
    """Write a picture, whole or not at all, with the mark by which a later run knows it; the same picture gives the
    same file.

    dpi: points of an inch [default: the figure's].
    """
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    kind = Path(path).suffix.lower().removeprefix(".") or "png"  # told, for matplotlib finds no ending in ..svg
    with rc_context({"svg.hashsalt": "construct"}):
        metadata = {"Creator": GENERATOR, **dated.get(kind, {})}
        drawn = BytesIO()  # what is drawn into a file on a full disk leaves half of it, and of PDF ends in a traceback
        figure.savefig(drawn, format=kind, dpi=dpi or "figure", metadata=metadata)
    with fresh_file(Path(path)) as place:
        place.write_bytes(drawn.getvalue())
