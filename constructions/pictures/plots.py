"""Pictures of wavelets and their bases, approximation rates and sensitivities.

Each function writes one PNG.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from constructions.pictures.page import save
from constructions.selectivity.haar_bases import basis, jumps, wavelet
from verify.attention_sensitivity import AttentionSensitivity
from verify.sensitivity import Sensitivity

_DPI = 110
_LEAST_SENSITIVITY = 1e-16  # what float32 would take for 0 is left out


def draw_bases(
    path: str | Path,
    wavelets: tuple[tuple[int, int], ...] = ((0, 0), (1, 1), (2, 2)),
    slopes: tuple[float, ...] = (30, 300, 3000),
) -> None:
    """After the paper's Figure A.1: Haar wavelets and the three bases of one of them for a finite slope; ours is the
    last panel, their combination as the slope grows.
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
    save(figure, path)


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
    save(figure, path)


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
    save(figure, path)
