"""The figures of the experiments: sizes over keys or tokens, accuracies, stages, distributions and curves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.names import MIXERS
from constructions.experiments.run import Row
from constructions.experiments.tables import label
from constructions.pictures.page import save, shortened

SIZES: dict[str, Callable[[Row], int]] = {
    "d_model": lambda row: row.used["d_model"],
    "d_inner": lambda row: row.used["d_inner"],
    "columns N": lambda row: row.used["d_state"],
    "state entries": lambda row: row.state_entries,
    "parameters": lambda row: row.parameters_of_model,
}
BOUNDS = {"d_model": "d_model", "d_inner": "d_inner", "columns N": "d_state"}
BITS_OF_A_NUMBER = 32  # of float32, sign and exponent too: the most that one entry of the state can tell
_NAMES = {"kappa": "keys κ", "vocab": "tokens V"}
_DPI = 100
_ACROSS = 4  # panels of a distribution side by side
Trained = Mapping[str, dict]


def draw_experiment(name: str, rows: Sequence[Row], trained: Trained, path: str | Path) -> None:
    """The picture of an experiment: stages or distributions where rows have them, sizes over its axis, else accuracies.

    Figure 3 of paper C is of curves.
    """
    title, axis = EXPERIMENTS[name].title, EXPERIMENTS[name].axis
    if any("stages" in row.detail for row in rows):
        figure = _stages(rows)
    elif any(row.detail for row in rows):
        figure = _distributions(rows, trained)
    elif name == "polynomial-figure-3":
        figure = _curves(rows, trained)
    elif axis:
        figure = _sizes([row for row in rows if row.used and axis in _parameters(row)], axis)
    else:
        figure = _accuracies(rows, trained)
    figure.suptitle(title, fontsize=11)
    save(figure, path, _DPI)


def _sizes(rows: Sequence[Row], axis: str) -> Figure:
    """Every size for each mixer: dots are built, lines the bound, dotted what the information asks of the state."""
    mixers = list(dict.fromkeys(row.arch for row in rows))
    shape = (3.3 * len(mixers) + 0.6, 2.2 * len(SIZES))
    figure = Figure(figsize=shape, layout="constrained")
    panels = figure.subplots(len(SIZES), len(mixers), squeeze=False, sharex=True)
    for column, mixer in enumerate(mixers):
        mine = [row for row in rows if row.arch == mixer]
        for axes, size in zip(panels[:, column], SIZES, strict=True):
            _panel(axes, mine, axis, size)
        panels[0, column].set_title(MIXERS[mixer], fontsize=10)
        panels[-1, column].set_xlabel(_NAMES[axis])
        panels[0, column].legend(fontsize=7)
    for axes, size in zip(panels[:, 0], SIZES, strict=True):
        axes.set_ylabel(size, fontsize=8)
    marks = [
        Line2D([], [], marker="o", linestyle="", mfc="none", color="black", label="what is built uses"),
        Line2D([], [], linestyle="-", color="black", linewidth=0.9, label="the bound"),
        Line2D(
            [], [], linestyle=":", color="black", linewidth=0.9, label="the least that any state needs (32 bits each)"
        ),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _panel(axes: Axes, rows: Sequence[Row], axis: str, size: str) -> None:
    """One line for each setting of the other parameters, code lengths and splits among them."""
    settings = list(dict.fromkeys(_others(row, axis) for row in rows))
    for number, setting in enumerate(settings):
        mine = sorted((row for row in rows if _others(row, axis) == setting), key=lambda row: _parameters(row)[axis])
        x, color = [_parameters(row)[axis] for row in mine], f"C{number % 10}"
        rings = 4 + 2 * (len(settings) - 1 - number) % 9  # settings of one size show as rings around each other
        axes.plot(x, [SIZES[size](row) for row in mine], "o", color=color, markersize=rings, mfc="none", label=setting)
        bound = BOUNDS.get(size)
        if bound and all(bound in row.bound for row in mine):
            axes.plot(x, [row.bound[bound] for row in mine], "-", color=color, linewidth=0.9)
        if size == "state entries":
            least = [row.information_bits / BITS_OF_A_NUMBER for row in mine]
            axes.plot(x, least, ":", color="black", linewidth=0.9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted({_parameters(row)[axis] for row in rows})))
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.tick_params(labelsize=7)
    axes.grid(linewidth=0.3)


def _accuracies(rows: Sequence[Row], trained: Trained) -> Figure:
    """A line for each row: the paper's accuracy, what is built, the most that is possible, what was trained."""
    figure = Figure(figsize=(7.5, 1.5 + 0.24 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    marks: dict[str, tuple[str, list[tuple[float, int]]]] = {
        "the paper's number": ("|", [(value, i) for i, row in enumerate(rows) for value in _told(row.paper)]),
        "built": ("o", [(row.accuracy, i) for i, row in enumerate(rows) if row.arch and not row.refused]),
        "no weights can do better": ("<", [(row.ceiling, i) for i, row in enumerate(rows) if row.ceiling < 1]),
        "trained, one mark a seed": ("x", [(q, i) for i, row in enumerate(rows) for q in _qualities(row, trained)]),
    }
    for name, (mark, points) in marks.items():
        if points:
            axes.plot(*zip(*points, strict=True), mark, mfc="none", markersize=6, label=name)
    axes.set_yticks(range(len(rows)), [label(row) for row in rows], fontsize=6)
    axes.invert_yaxis()
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("share of right answers (of squared errors: over the variance)", fontsize=8)
    axes.grid(linewidth=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=7)
    return figure


def _told(paper: str) -> list[float]:
    """The accuracies that the text of a row begins with: "1.00 0.58" or "83.1 %, 35"; none of errors, nor of what we
    expect of a figure.
    """
    text = "" if paper.startswith("expected") else paper.split(",")[0]
    numbers = [float(word) for word in re.findall(r"\d+\.\d+", text)]
    values = [value / 100 for value in numbers] if "%" in text else numbers
    return [value for value in values if value <= 1]


def _qualities(row: Row, trained: Trained) -> list[float]:
    return [q for name in row.controls if name in trained for q in trained[name]["quality"]]


def _distributions(rows: Sequence[Row], trained: Trained) -> Figure:
    """exp(−λΔ) in tenths, before the n-th token and from it on: of built weights, and of the best trained ones."""
    parts = [(label(row), row.detail) for row in rows if row.detail]
    parts += [(f"trained: {row.model}", trained[c]["decay"]) for row in rows for c in row.controls if c in trained]
    lines = -(-len(parts) // _ACROSS)
    figure = Figure(figsize=(2.6 * min(len(parts), _ACROSS), 2.3 * lines + 0.4), layout="constrained")
    panels = figure.subplots(lines, min(len(parts), _ACROSS), squeeze=False).flatten()
    for axes, (name, shares) in zip(panels, parts, strict=False):
        left = np.arange(10) / 10
        axes.bar(left, shares["before"], 0.05, align="edge", label="before position n")
        axes.bar(left + 0.05, shares["after"], 0.05, align="edge", label="from position n on")
        axes.set_title(name, fontsize=7)
        axes.set_xlabel("exp(−λΔ)", fontsize=7)
        axes.set_ylabel("share of channels and steps", fontsize=7)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)
        axes.tick_params(labelsize=6)
    for axes in panels[len(parts) :]:
        axes.axis("off")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=7)
    return figure


def _curves(rows: Sequence[Row], trained: Trained) -> Figure:
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for row in rows:
        for name in row.controls:
            if name in trained:
                steps, _, quality = zip(*trained[name]["curve"], strict=True)
                axes.plot(steps, quality, label=row.model)
    axes.set_xlabel("steps")
    axes.set_ylabel("right answers, best seed")
    axes.grid(linewidth=0.3)
    if axes.lines:
        axes.legend(fontsize=7)
    return figure


def _stages(rows: Sequence[Row]) -> Figure:
    """A column for each mixer, a band for each stage: its used rows over time."""
    shown = [row for row in rows if row.detail]
    names = list(dict.fromkeys(stage for row in shown for stage in row.detail["stages"]))
    heights = [max(3, *(len(row.detail["stages"][name]["rows"]) for row in shown)) for name in names]
    figure = Figure(figsize=(4.4 * len(shown), 0.16 * sum(heights) + 0.5 * len(names) + 0.6), layout="constrained")
    panels = figure.subplots(len(names), len(shown), squeeze=False, height_ratios=heights)
    for column, row in enumerate(shown):
        panels[0, column].set_title(f"{row.model}: {MIXERS[row.arch]}", fontsize=9)
        for axes, name in zip(panels[:, column], names, strict=True):
            _stage(axes, row.detail["stages"][name], name if column == 0 else "")
        panels[-1, column].set_xticks(range(len(row.detail["tokens"])), row.detail["tokens"], fontsize=7)
        panels[-1, column].set_xlabel("input, one step after the other", fontsize=8)
    scale = ScalarMappable(Normalize(-1, 1), "RdBu_r")
    bar = figure.colorbar(scale, ax=panels, location="bottom", shrink=0.3, aspect=40, pad=0.01)
    bar.set_label("the value over the largest of its row", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _stage(axes: Axes, stage: dict, name: str) -> None:
    values = np.array(stage["values"], dtype=float).reshape(len(stage["rows"]), -1)
    scale = np.abs(values).max(axis=1, initial=0, keepdims=True)  # each row by its own largest number
    axes.imshow(values / np.where(scale > 0, scale, 1), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
    axes.set_yticks(range(len(stage["rows"])), [shortened(name, 28) for name in stage["rows"]], fontsize=6)
    axes.set_xticks([])
    axes.set_ylabel(name, fontsize=8)


def _parameters(row: Row) -> dict[str, int]:
    """ "kappa=4 vocab=128" as a dictionary; what is no number is left out."""
    words = (word.split("=") for word in row.parameters.split())
    return {name: int(value) for name, value in words if value.isdecimal()}


def _others(row: Row, axis: str) -> str:
    """What else tells a row from others: parameters, and the columns where they are cut in proportion to the keys."""
    given = {name: value for name, value in _parameters(row).items() if name != axis}
    words = {"key_code": "key codes", "max_d_state": "split keys"}
    return ", ".join(words.get(name, f"{name} = {value}") for name, value in given.items()) or "built"
