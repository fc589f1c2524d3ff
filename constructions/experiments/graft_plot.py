"""The learning curves of `construct reproduce graft`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.experiments.graft import AFTERWARDS, Point
from constructions.pictures.page import save

_COLOURS = {"host": "C3", "host with a branch": "C0", AFTERWARDS: "C2"}


def draw_learning(points: Sequence[Point], path: str | Path) -> None:
    """Recall and text over training steps, a line for each seed; what was grafted afterwards is a dot."""
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    recall, text = figure.subplots(1, 2)
    _draw(recall, points, "recall", "right recalls of unseen chains")
    _draw(text, points, "text", "nats a character of unseen text")
    recall.set_ylim(-0.03, 1.05)
    recall.legend(fontsize=8, loc="center right")
    save(figure, path, 110)


def _draw(axes: Axes, points: Sequence[Point], what: str, label: str) -> None:
    named = set()
    for model, seed in dict.fromkeys((point.model, point.seed) for point in points):
        mine = [point for point in points if (point.model, point.seed) == (model, seed)]
        x, y = [point.step for point in mine], [getattr(point, what) for point in mine]
        legend = {} if model in named else {"label": model}
        axes.plot(x, y, "o" if model == AFTERWARDS else "-", color=_COLOURS[model], linewidth=1.2, **legend)
        named.add(model)
    axes.set_xlabel("training steps", fontsize=9)
    axes.set_ylabel(label, fontsize=9)
    axes.tick_params(labelsize=8)
