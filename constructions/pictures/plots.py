"""Pictures: states over time, wavelets and their bases, approximation rates, sensitivities.

Each function writes one PNG.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from constructions.pictures.state_history import Group, StateHistory
from constructions.selectivity.haar_bases import basis, jumps, wavelet
from verify.attention_sensitivity import AttentionSensitivity
from verify.sensitivity import Sensitivity

MOST_ROWS = 240
_DPI = 110
_LEAST_SENSITIVITY = 1e-16  # what float32 would take for 0 is left out


def draw_state(history: StateHistory, path: str | Path, title: str = "") -> None:
    """The state after every step: steps along time, a band of rows for each entry that is ever used, its answer in the
    band.

    At the left the entry's name, at the right the names of its rows; the colours are numbers, told beside the picture,
    and an entry of one row has them written in. ValueError for a state of more rows than a picture can show.
    """
    used = tuple(g for g in history.groups if np.any(g.values)) or history.groups
    rows = sum(len(g.rows) for g in used)
    if rows > MOST_ROWS:
        raise ValueError(
            f"the state has {rows} numbers, and a picture shows at most {MOST_ROWS}; draw a smaller instance"
        )
    steps = len(history.tokens)
    height = 1.4 + max(0.16 * rows, 0.34 * len(used), 0.8)
    figure = Figure(figsize=(max(4.6, 2.6 + 0.42 * steps), height), dpi=_DPI, layout="constrained")
    axes = figure.add_subplot()
    picture = np.concatenate([g.values.T for g in used])
    largest = np.abs(picture).max() or 1.0
    image = axes.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    image.set_alpha(0.6)  # so that what is written in the bands can be read
    figure.colorbar(image, ax=axes, label="value", fraction=0.05, pad=0.02).ax.tick_params(labelsize=7)
    edges = np.cumsum([0, *(len(g.rows) for g in used)]) - 0.5
    for edge in edges[1:-1]:
        axes.axhline(edge, color="black", linewidth=0.6)
    for top, bottom, group in zip(edges, edges[1:], used, strict=False):
        for t, written in enumerate(_written(group)):
            axes.text(t, (top + bottom) / 2, written, ha="center", va="center", fontsize=7)
    axes.set_yticks((edges[:-1] + edges[1:]) / 2, [_short(g.name) for g in used], fontsize=8)
    names = axes.secondary_yaxis("right")
    names.set_yticks(range(rows), [_row(name, g.name) for g in used for name in g.rows], fontsize=5)
    names.tick_params(length=2)
    axes.set_xticks(range(steps), history.tokens, fontsize=8, rotation=90 if max(map(len, history.tokens)) > 3 else 0)
    axes.set_xlabel("input, one step after the other")
    hidden = len(history.groups) - len(used)
    axes.set_title(title + (f"\n({hidden} entries that stay 0 are not shown)" if hidden else ""), fontsize=9)
    figure.savefig(path)


def _short(name: str, most: int = 32) -> str:
    """A name of any length as one that leaves room for the picture: its start and its end."""
    return name if len(name) <= most else f"{name[: most * 2 // 3]}…{name[-most // 3 + 1 :]}"


def _row(name: str, group: str) -> str:
    """The name of a row, without that of its band where it only repeats it."""
    return _short(name.removeprefix(group) or name)


def _written(group: Group) -> Iterable[str]:
    """What stands in a band at every step: the answer, or the number itself where there is one row and no answer."""
    if group.answers is not None:
        return group.answers
    return [f"{value:g}" for value in group.values[:, 0]] if len(group.rows) == 1 else ()


def draw_bases(
    path: str | Path,
    wavelets: tuple[tuple[int, int], ...] = ((0, 0), (1, 1), (2, 2)),
    slopes: tuple[float, ...] = (30, 300, 3000),
) -> None:
    """The paper's Figure A.1: Haar wavelets, the three bases of one of them for a finite slope, and their combination
    as it grows.
    """
    s = np.linspace(0, 1, 1601)
    figure = Figure(figsize=(10, 2.8), dpi=_DPI, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for j, k in wavelets:
        left.plot(s, wavelet(s, j, k), label=f"ψ({j},{k})")
    j, k = wavelets[1]
    for at in jumps(j, k):
        middle.plot(s, basis(s, at, slopes[1], j), label=f"t̂ = {at:g}")
    for slope in slopes:
        first, second, third = (basis(s, at, slope, j) for at in jumps(j, k))
        right.plot(s, first - 2 * second + third, label=f"|w| = {slope:g}")
    right.plot(s, wavelet(s, j, k), color="black", linewidth=0.8, label=f"ψ({j},{k})")
    for axes, title in (
        (left, "Haar wavelets"),
        (middle, f"three bases, |w| = {slopes[1]:g}"),
        (right, "g1 − 2 g2 + g3"),
    ):
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("s")
        axes.legend(fontsize=7)
    figure.savefig(path)


def draw_rates(report: Mapping, path: str | Path) -> None:
    """Corollary 1: both squared errors against the number of bases, beside the rates."""
    figure = Figure(figsize=(5.5, 3.6), dpi=_DPI, layout="constrained")
    axes = figure.add_subplot()
    n = np.array(report["bases"])
    mamba, fourier = (np.array(report[key]) for key in ("mamba_squared_error", "s4d_squared_error"))
    axes.semilogy(n, np.where(mamba > 0, mamba, np.nan), drawstyle="steps-post", label="Mamba: best Haar wavelets")
    axes.semilogy(n, fourier, label="S4D: best Fourier bases")
    axes.semilogy(
        n, mamba[0] * 2.0 ** (-n / (3 * report["jumps"])), "k:", linewidth=0.9, label=f"2^(−N/{3 * report['jumps']})"
    )
    axes.semilogy(n, fourier[-1] * n[-1] / n, "k--", linewidth=0.9, label="1/N")
    axes.set_xlabel("bases N")
    axes.set_ylabel("squared L² error")
    axes.set_title(f"jumps at {', '.join(report['breaks'])}", fontsize=10)
    axes.legend(fontsize=8)
    figure.savefig(path)


def draw_sensitivity(results: Mapping[str, Sensitivity | AttentionSensitivity], path: str | Path) -> None:
    """Sensitivity of the last state against the distance t − j: measured (dots) and predicted (lines; for attention its
    bound).
    """
    figure = Figure(figsize=(5.5, 3.6), dpi=_DPI, layout="constrained")
    axes = figure.add_subplot()
    for number, (name, result) in enumerate(results.items()):
        measured, line = (curve.numpy() for curve in result.by_distance())
        first = 1 if isinstance(result, AttentionSensitivity) else 0
        distance = np.arange(first, first + len(measured))
        axes.semilogy(distance, np.where(measured > 0, measured, np.nan), ".", color=f"C{number}", label=name)
        axes.semilogy(distance, np.where(line > 0, line, np.nan), "-", color=f"C{number}", linewidth=0.8)
    axes.set_ylim(bottom=max(axes.get_ylim()[0], _LEAST_SENSITIVITY))
    axes.set_xlabel("distance t − j")
    axes.set_ylabel("|∂h_t/∂x_j|")
    axes.legend(fontsize=8)
    figure.savefig(path)
