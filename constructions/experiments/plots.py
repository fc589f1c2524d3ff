"""The figures of paper A's experiments with built models: sizes against keys or tokens, beside the paper's bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from constructions.experiments.run import Row

_AXIS = {"figure-2": "kappa", "table-1": "vocab", "figure-3": "vocab"}
_NAMES = {"kappa": "keys κ", "vocab": "tokens V", "d_model": "width d", "d_inner": "channels", "d_state": "columns N"}
_TITLES = {
    "figure-2": "MQAR (Figures 2, A.2, A.3)",
    "table-1": "KEEP FIFTH (Table 1)",
    "figure-3": "induction heads (Figure 3)",
}


def draw_experiment(experiment: str, rows: Sequence[Row], path: str | Path) -> None:
    """For each mixer the built channels (dots) and the paper's bound (line); above it the accuracy of every model.

    The paper draws the accuracy of trained models over their size: here every model is built at one size, and right.
    """
    mixers = list(dict.fromkeys(row.arch for row in rows))
    figure = Figure(figsize=(3.6 * len(mixers) + 0.6, 3.4), layout="constrained")
    for axes, mixer in zip(figure.subplots(1, len(mixers), squeeze=False)[0], mixers, strict=True):
        _draw_mixer(axes, [row for row in rows if row.arch == mixer], _AXIS[experiment])
        axes.set_title(mixer, fontsize=10)
    figure.suptitle(f"{_TITLES[experiment]}: {_accuracy(rows)}", fontsize=11)
    figure.savefig(path, dpi=110)


def _accuracy(rows: Sequence[Row]) -> str:
    right = sum(row.accuracy == 1 and row.bit_exact for row in rows)
    return f"{right} of {len(rows)} built models answer everything, bit for bit"


def _draw_mixer(axes: Axes, rows: list[Row], over: str) -> None:
    """One line for each setting of the other parameters."""
    settings = list(dict.fromkeys(_others(row, over) for row in rows))
    for number, setting in enumerate(settings):
        mine = [row for row in rows if _others(row, over) == setting]
        x = [_parameters(row)[over] for row in mine]
        label = ", ".join(f"{name} = {value}" for name, value in setting) or "built"
        color = f"C{number}"
        size = 4 + 3 * (len(settings) - 1 - number)  # settings of one size show as rings around each other
        axes.plot(x, [row.used["d_inner"] for row in mine], "o", color=color, markersize=size, mfc="none", label=label)
        if all("d_inner" in row.bound for row in mine):
            axes.plot(x, [row.bound["d_inner"] for row in mine], "-", color=color, linewidth=0.9)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis, values in (
        (axes.xaxis, [_parameters(row)[over] for row in rows]),
        (axes.yaxis, [row.used["d_inner"] for row in rows]),
    ):
        axis.set_major_locator(FixedLocator(sorted(set(values))))
        axis.set_major_formatter("{x:.0f}")
    axes.set_xlabel(_NAMES[over])
    axes.set_ylabel("d_inner (dots: built, line: bound)", fontsize=8)
    axes.grid(linewidth=0.3)
    axes.legend(fontsize=7)


def _parameters(row: Row) -> dict[str, int]:
    """ "kappa=4 vocab=128" as a dictionary."""
    return {name: int(value) for name, value in (word.split("=") for word in row.parameters.split())}


def _others(row: Row, over: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, value) for name, value in _parameters(row).items() if name != over)
