"""A model over time as one picture: a row for each number, a band for each stream or state entry, a column for a step.

Colours compare the numbers of one band. The numbers stand in their cells where there is room for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.pictures.model_history import ModelHistory, Section
from constructions.pictures.page import blank, save, shortened, text_height, text_width, wrapped
from constructions.pictures.state_history import Group

MOST_ROWS = 240
MOST_STEPS = 200
_MOST_NUMBERS = 4000  # cells with a number written in
_ROW, _HEAD, _EDGE, _GAP = 0.17, 0.3, 0.15, 0.08  # inches: a row, a section's title, the margin, between bands
_SMALL, _TEXT, _TITLE = 6.5, 8, 10  # points
_LEAST_WIDTH = 5.5
_COLOURS = colormaps["RdBu_r"]
_PALE = 0.6  # so that what is written in a cell can be read
_DPI = 110


@dataclass(frozen=True)
class _Grid:
    """left: where the cells begin; cell: width of one; steps: how many; right: where the meanings begin."""

    left: float
    cell: float
    steps: int

    @property
    def right(self) -> float:
        return self.left + self.cell * self.steps

    def middle(self, step: int) -> float:
        return self.left + self.cell * (step + 0.5)


def draw_state(history: ModelHistory, path: str | Path, title: str = "") -> None:
    """Write the picture of a history (PNG, PDF or SVG). ValueError for one too large for a picture."""
    save(state_figure(history, title), path, _DPI)


def state_figure(history: ModelHistory, title: str = "") -> Figure:
    """The picture: at the left the names of the bands, at the right what each row means.

    ValueError for more rows or steps than a picture can show.
    """
    groups = [group for section in history.sections for group in section.groups]
    rows, steps = sum(map(_rows, groups)), len(history.tokens)
    if rows > MOST_ROWS:
        raise ValueError(
            f"the picture would have {rows} rows, and it shows at most {MOST_ROWS}; draw one block (--block) or a "
            "smaller instance"
        )
    if steps > MOST_STEPS:
        raise ValueError(f"the input has {steps} steps, and a picture shows at most {MOST_STEPS}; draw a shorter one")
    upright = max(map(len, history.tokens)) <= 8
    grid = _grid(history.tokens, groups, upright)
    meanings = max((text_width(text, _SMALL) for group in groups for text in _meanings(group)), default=0)
    width = max(_LEAST_WIDTH, grid.right + _GAP + meanings + _EDGE)
    title = wrapped(title, _TITLE, width - 2 * _EDGE) if title else ""
    legend = [wrapped(line, _SMALL, width - 2 * _EDGE) for line in _legend(history)]
    names = max(text_width(token, _TEXT) for token in history.tokens)
    head = text_height(title, _TITLE) * bool(title) + (0.22 if upright else names + 0.1)
    body = sum(_HEAD + sum(_ROW * _rows(g) + _GAP for g in section.groups) for section in history.sections)
    foot = 0.3 + sum(text_height(line, _SMALL) for line in legend)
    figure, axes = blank(width, 2 * _EDGE + head + body + foot)
    if title:
        _write(axes, _EDGE, _EDGE, title, _TITLE, va="top")
    for step, token in enumerate(history.tokens):
        turned = {"va": "baseline"} if upright else {"va": "bottom", "rotation": 90}
        _write(axes, grid.middle(step), _EDGE + head - 0.06, token, _TEXT, ha="center", **turned)
    top = _EDGE + head
    numbers = rows * steps <= _MOST_NUMBERS
    for section in history.sections:
        top = _draw_section(axes, section, grid, top, numbers)
    _draw_legend(axes, legend, top + 0.1)
    return figure


def _grid(tokens: Sequence[str], groups: Sequence[Group], upright: bool) -> _Grid:
    """Cells wide enough for the tokens, the answers and the numbers; room at the left for the names of the bands."""
    words = [text_width(token, _TEXT) for token in tokens] if upright else [0.2]
    words += [text_width(word, _TEXT) for group in groups for word in group.answers or ()]
    words += [text_width(_number(v), _SMALL) for group in groups for v in np.unique(group.values)]
    left = max((text_width(_name(group), _TEXT) for group in groups), default=0)
    return _Grid(_EDGE + left + 0.1, max(0.25, max(words) + 0.08), len(tokens))


def _rows(group: Group) -> int:
    """Rows of the picture: the numbers, and one for the answers."""
    return group.values.shape[1] + (group.answers is not None)


def _name(group: Group) -> str:
    return shortened(group.name, 32)


def _meanings(group: Group) -> list[str]:
    """What stands at the right of each row of the group, the answers' first."""
    said = group.meanings or ("",) * len(group.rows)
    rows = [
        ": ".join(filter(None, [_row(n, group.name, len(group.rows) == 1), m if m != n else ""]))
        for n, m in zip(group.rows, said, strict=True)
    ]
    return ["answer"] * (group.answers is not None and bool(group.rows)) + [shortened(row, 80) for row in rows]


def _row(name: str, group: str, alone: bool) -> str:
    """The name of a row, without that of its band where it only repeats it."""
    if name == f"{group}[0]" and alone:
        return ""
    return name.removeprefix(group) if name.startswith(f"{group}[") or name == group else name


def _number(value: float) -> str:
    """At most seven characters; nothing for 0."""
    text = f"{value:.6g}" if value == round(value) else f"{value:.4g}"
    return "" if not value else text if len(text) <= 6 else f"{value:.1e}"


def _draw_section(axes: Axes, section: Section, grid: _Grid, top: float, numbers: bool) -> float:
    """The title and the bands of a section; returns where the next begins."""
    still = f"  ({section.still} more stay 0)" if section.still else ""
    _write(axes, _EDGE, top + _HEAD - 0.06, section.title + still, _TEXT, va="bottom", weight="bold")
    top += _HEAD
    for group in section.groups:
        _draw_band(axes, group, grid, top, numbers)
        top += _ROW * _rows(group) + _GAP
    return top


def _draw_band(axes: Axes, group: Group, grid: _Grid, top: float, numbers: bool) -> None:
    """One band: its name, its answers, its numbers as colours, its rows' meanings, a frame around it."""
    height = _ROW * _rows(group)
    _write(axes, grid.left - 0.06, top + height / 2, _name(group), _TEXT, ha="right")
    answered = _ROW * (group.answers is not None)
    for step, answer in enumerate(group.answers or ()):
        _write(axes, grid.middle(step), top + _ROW / 2, answer, _TEXT, ha="center", style="italic")
    if group.rows:
        _draw_cells(axes, group.values, grid, top + answered, numbers)
    for row, meaning in enumerate(_meanings(group)):
        _write(axes, grid.right + _GAP, top + _ROW * (row + 0.5), meaning, _SMALL)
    frame = ([grid.left, grid.right, grid.right, grid.left, grid.left], [top, top, top + height, top + height, top])
    axes.plot(*frame, color="black", linewidth=0.6)


def _draw_cells(axes: Axes, values: np.ndarray, grid: _Grid, top: float, numbers: bool) -> None:
    steps, rows = values.shape
    largest = np.abs(values).max() or 1.0
    x = grid.left + grid.cell * np.arange(steps + 1)
    y = top + _ROW * np.arange(rows + 1)
    axes.pcolormesh(x, y, values.T / largest, cmap=_COLOURS, vmin=-1, vmax=1, alpha=_PALE, rasterized=True)
    for step, row in np.argwhere(values) if numbers else ():
        middle = top + _ROW * (row + 0.5)
        _write(axes, grid.middle(step), middle, _number(values[step, row]), _SMALL, ha="center")


def _legend(history: ModelHistory) -> list[str]:
    groups = [group for section in history.sections for group in section.groups]
    lines = ["Columns: the input, one step after the other. A state stands as it is after the step. Empty cells are 0."]
    if any(group.answers is not None and group.rows for group in groups):
        lines.append("Words in italics: the token that the head would answer from this entry alone.")
    return [*lines, "The lane of the constant 1 is not shown."]


def _draw_legend(axes: Axes, lines: Sequence[str], top: float) -> None:
    """The scale of the colours, and what the rest of the picture means."""
    cells = np.linspace(-1, 1, 21)
    x = _EDGE + 0.1 + 1.2 * np.linspace(0, 1, len(cells) + 1)
    axes.pcolormesh(x, [top, top + 0.12], cells[None], cmap=_COLOURS, vmin=-1, vmax=1, alpha=_PALE, rasterized=True)
    _write(axes, _EDGE, top + 0.06, "−", _SMALL)
    _write(axes, x[-1] + 0.04, top + 0.06, "+   colour: the value over the largest in its band", _SMALL)
    top += 0.2
    for line in lines:
        _write(axes, _EDGE, top, line, _SMALL, va="top")
        top += text_height(line, _SMALL)


def _write(axes: Axes, x: float, y: float, text: str, size: float, **style) -> None:
    if text:
        given = {"va": "center", "ha": "left"} | style
        axes.text(x, y, text, fontsize=size, parse_math=False, linespacing=1.1, **given)
