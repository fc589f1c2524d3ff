"""The circuit of a model as a picture: a box for each source line, with its values, constants and thresholds.

Every box stands below those that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, PathPatch, Rectangle
from matplotlib.path import Path as Curve

from compiler.language.circuit import Circuit
from constructions.pictures.circuit_boxes import INPUT, OUTPUT, PAST, PRESENT, Box, boxes_of
from constructions.pictures.layers import Layers, Passing, above, layered
from constructions.pictures.page import blank, save, shortened, text_height, text_width, wrapped

MOST_STREAMS = 200
_FILL = {INPUT: "#cfe3f5", PAST: "#f9d9b4", PRESENT: "#f4f4f4", OUTPUT: "#cdebcf"}
_TEXT, _SMALL, _TITLE = 7.5, 6.5, 11  # points
_WIDEST_ROW = 3.2  # inches of text before it wraps
_LONGEST_ROW = 400  # characters
_PAD, _EDGE, _BETWEEN = 0.06, 0.2, 0.45  # inches: in a row, around the page, from layer to layer
_LEAST_WIDTH = 5.5
_DPI = 110
_NUMBERS = "%n: a value without a name of its own, numbered as in construct show --stage source"


@dataclass(frozen=True)
class _Drawn:
    """A box with its size and its wrapped rows."""

    box: Box
    rows: tuple[str, ...]
    width: float
    height: float


def draw_circuit(circuit: Circuit, path: str | Path) -> None:
    """Write the picture (SVG, PDF or PNG). ValueError for a circuit of more streams than a picture can show."""
    save(circuit_figure(circuit), path, _DPI)


def circuit_figure(circuit: Circuit) -> Figure:
    """The picture on a page as large as it needs. ValueError for a circuit of more than MOST_STREAMS streams."""
    if len(circuit.streams) > MOST_STREAMS:
        raise ValueError(f"the circuit has {len(circuit.streams)} streams, and a picture shows at most {MOST_STREAMS}.")
    drawn = {box: _sized(box) for box in boxes_of(circuit)}
    layers = layered({box: box.sources for box in drawn}, {box: d.width for box, d in drawn.items()})
    heights = [max((drawn[i].height for i in row if isinstance(i, Box)), default=0.2) for row in layers.items]
    extent = max(layers.x[box] + d.width / 2 for box, d in drawn.items())
    width = max(_LEAST_WIDTH, extent + 2 * _EDGE)
    title = wrapped(f"{circuit.name}: the circuit as written", _TITLE, width - 2 * _EDGE)
    head = _EDGE + text_height(title, _TITLE) + 0.1
    height = head + sum(heights) + _BETWEEN * len(heights) + 0.5
    figure, axes = blank(width, height)
    axes.text(_EDGE, _EDGE, title, fontsize=_TITLE, va="top", parse_math=False)
    tops = [head + sum(heights[:i]) + _BETWEEN * i for i in range(len(heights))]
    left = (width - extent) / 2
    _draw_lines(axes, layers, drawn, tops, heights, left)
    for top, row in zip(tops, layers.items, strict=True):
        for box in row:
            if isinstance(box, Box):
                _draw_box(axes, drawn[box], left + layers.x[box], top)
    _draw_legend(axes, {row.kind for box in drawn for row in box.rows}, height - 0.5)
    return figure


def _sized(box: Box) -> _Drawn:
    rows = tuple(wrapped(shortened(row.text, _LONGEST_ROW), _TEXT, _WIDEST_ROW) for row in box.rows)
    width = max([text_width(box.title, _SMALL), *(text_width(row, _TEXT) for row in rows)]) + 2 * _PAD
    height = text_height(box.title, _SMALL) + sum(text_height(row, _TEXT) + _PAD for row in rows)
    return _Drawn(box, rows, width, height)


def _draw_box(axes: Axes, drawn: _Drawn, middle: float, top: float) -> None:
    """The source line above, and below it the rows."""
    left = middle - drawn.width / 2
    head = text_height(drawn.box.title, _SMALL)
    axes.text(
        left + _PAD, top + head / 2, drawn.box.title, fontsize=_SMALL, va="center", color="#555555", parse_math=False
    )
    y = top + head
    for row, text in zip(drawn.box.rows, drawn.rows, strict=True):
        height = text_height(text, _TEXT) + _PAD
        axes.add_patch(Rectangle((left, y), drawn.width, height, facecolor=_FILL[row.kind], linewidth=0, zorder=1))
        axes.text(
            left + _PAD, y + height / 2, text, fontsize=_TEXT, va="center", linespacing=1.1, parse_math=False, zorder=2
        )
        y += height
    axes.add_patch(Rectangle((left, top), drawn.width, drawn.height, fill=False, linewidth=0.7, zorder=2))


def _draw_lines(
    axes: Axes, layers: Layers, drawn: dict[Box, _Drawn], tops: list[float], heights: list[float], left: float
) -> None:
    """From the bottom of each box to the top of its readers, through the places that are kept for it."""
    layer = {item: number for number, row in enumerate(layers.items) for item in row}
    for number, row in enumerate(layers.items):
        for item in row:
            x, bottom = left + layers.x[item], tops[number] + heights[number]
            if isinstance(item, Passing):
                _draw_line(axes, (x, tops[number]), (x, bottom), arrow=False)
                came = above(item.source, number, layer)
                start = (left + layers.x[came], tops[number - 1] + heights[number - 1])
                _draw_line(axes, start, (x, tops[number]), arrow=False)
                continue
            if any(item in other.sources for other in drawn):
                _draw_line(axes, (x, tops[number] + drawn[item].height), (x, bottom), arrow=False)
            came = sorted({above(source, number, layer) for source in item.sources}, key=lambda i: layers.x[i])
            for place, source in enumerate(came, start=1):
                end = x + drawn[item].width * (place / (len(came) + 1) - 0.5)
                start = (left + layers.x[source], tops[number - 1] + heights[number - 1])
                _draw_line(axes, start, (end, tops[number]), arrow=True)


def _draw_line(axes: Axes, start: tuple[float, float], end: tuple[float, float], arrow: bool) -> None:
    """A curve that leaves and arrives upright."""
    middle = (start[1] + end[1]) / 2
    curve = Curve(
        [start, (start[0], middle), (end[0], middle), end], [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    )
    style = {"linewidth": 0.8, "edgecolor": "#666666", "zorder": 0}
    if arrow:
        axes.add_patch(FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=7, facecolor="#666666", **style))
    else:
        axes.add_patch(PathPatch(curve, fill=False, **style))


def _draw_legend(axes: Axes, kinds: set[str], top: float) -> None:
    x = _EDGE
    for kind in (kind for kind in _FILL if kind in kinds):
        box = Rectangle((x, top), 0.18, 0.12, facecolor=_FILL[kind], edgecolor="black", linewidth=0.6)
        axes.add_patch(box)
        axes.text(x + 0.23, top + 0.06, kind, fontsize=_SMALL, va="center")
        x += 0.23 + text_width(kind, _SMALL) + 0.2
    axes.text(_EDGE, top + 0.25, _NUMBERS, fontsize=_SMALL, va="center")
