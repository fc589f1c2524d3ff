"""Theorem 1 of paper A: three S6 bases with finite slope against a Haar wavelet.

With λ = 1, B = 2^(j/2) and Δ(r) = softplus(−a(r − t̂)), a = |w|, the basis of equation (8) is

    g(s; t̂) = 2^(j/2) exp(−(F(a(t̂ − s)) − F(a(t̂ − 1)))/a),    F(u) = ∫_{−∞}^u softplus = −Li2(−e^u),

and ψ_{j,k} ≈ g(s; t1) − 2 g(s; t2) + g(s; t3) at the wavelet's start, middle and end.

Where the theorem fails as printed (an error below ϵ “∀s ∈ [0, 1]”). A continuous g cannot be
uniformly close to a jump (`construct truths haar-neighbourhood`). From t̂ on, the
error of one g is at most 2^(j/2)·π²/(12a), for F(0) = π²/12. Before t̂ − δ it is at most
2^(j/2)·e^(−aδ²/2), for F(u) − F(0) ≥ u²/2. So with δ(a) = √(2 ln a / a) the error of ψ is at most
4·2^(j/2)/a everywhere but within δ(a) to the left of the three jumps: that neighbourhood shrinks
like √(ln a / a), not like 1/a. On a grid of T bins whose edges the jumps are, bin centres lie 1/(2T)
or more from every jump: for a ≥ 208·T each Δ is 0 or at least 104 and float32 gives ψ itself, error 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, pi, sqrt

import numpy as np
from scipy.special import spence

EXACT_PER_BIN = 208  # slope per bin from which float32 bases are exact on the grid: 2 · 104


def wavelet(s: np.ndarray, j: int, k: int) -> np.ndarray:
    """ψ_{j,k}(s) with H(0) = 0, as equation (18) has it."""
    start, middle, end = jumps(j, k)
    step = lambda at: (s > at).astype(np.float64)
    return 2 ** (j / 2) * (step(start) - 2 * step(middle) + step(end))


def jumps(j: int, k: int) -> tuple[float, float, float]:
    """Start, middle and end of the support of ψ_{j,k}; ValueError where there is no such wavelet on [0, 1]."""
    if j < 0 or not 0 <= k < 2**j:
        raise ValueError(f"ψ_{{{j},{k}}} is no Haar wavelet on [0, 1]: j must be at least 0 and k in 0 … 2^j − 1")
    return k / 2**j, (k + 0.5) / 2**j, (k + 1) / 2**j


def _softplus_integral(u: np.ndarray) -> np.ndarray:
    """F(u) = −Li2(−e^u); for u > 0 by F(u) + F(−u) = u²/2 + π²/6."""
    low = -spence(1 + np.exp(-np.abs(u)))
    return np.where(u <= 0, low, u**2 / 2 + pi**2 / 6 - low)


def basis(s: np.ndarray, at: float, slope: float, j: int = 0) -> np.ndarray:
    """g(s; t̂) for t̂ = at and w = −slope, slope > 0."""
    if slope <= 0:
        raise ValueError(f"slope = {slope} must be positive; it is |w|")
    exponent = (_softplus_integral(slope * (at - s)) - _softplus_integral(np.array(slope * (at - 1)))) / slope
    return 2 ** (j / 2) * np.exp(-exponent)


def approximation(s: np.ndarray, j: int, k: int, slope: float) -> np.ndarray:
    """g1 − 2 g2 + g3."""
    first, second, third = (basis(s, at, slope, j) for at in jumps(j, k))
    return first - 2 * second + third


def neighbourhood(slope: float) -> float:
    """δ(a) = √(2 ln a / a): how far to the left of each jump the bound does not hold, a > 1."""
    return sqrt(2 * log(slope) / slope)


def error_bound(slope: float, j: int) -> float:
    """4·2^(j/2)/a: the error outside the neighbourhoods."""
    return 4 * 2 ** (j / 2) / slope


def measured_error(j: int, k: int, slope: float, points: int = 20001) -> float:
    """The largest error without the neighbourhoods: over a fine grid, and at their edges, where it is largest."""
    edges = [edge for at in jumps(j, k) for edge in (at - neighbourhood(slope), np.nextafter(at, 1))]
    s = np.sort([*np.linspace(0, 1, points), *(edge for edge in edges if 0 <= edge <= 1)])
    near = np.zeros(len(s), dtype=bool)
    for at in jumps(j, k):
        near |= (s > at - neighbourhood(slope)) & (s <= at)
    if near.all():
        raise ValueError(
            f"slope = {slope:g} is too small: no point of [0, 1] is outside the neighbourhoods of the jumps."
        )
    return float(np.abs(approximation(s, j, k, slope) - wavelet(s, j, k))[~near].max())


def grid_error(j: int, k: int, slope: float, bins: int) -> float:
    """The largest error of the discrete bases at the centres of the bins, in float32.

    g_i = 2^(j/2) Π_{r≥i} exp(−Δ_r), Δ_r = softplus(−a(s_r − t̂)) at the centre s_r = (r − 1/2)/T: the bin's own step
    counts.
    """
    if bins % 2 ** (j + 1):
        raise ValueError(f"{bins} bins have no edge at the jumps of scale {j}; take a multiple of {2 ** (j + 1)}")
    centres = (np.arange(bins) + 0.5) / bins
    height = np.float32(2 ** (j / 2))
    bases = [height * _discrete(centres, at, slope) for at in jumps(j, k)]
    exact = height * np.round(wavelet(centres, j, k) / 2 ** (j / 2)).astype(np.float32)
    return float(np.abs(bases[0] - 2 * bases[1] + bases[2] - exact).max())


def _discrete(centres: np.ndarray, at: float, slope: float) -> np.ndarray:
    steps = np.logaddexp(np.float32(0), np.float32(-slope) * (centres - at).astype(np.float32))
    factors = np.exp(-steps.astype(np.float32))
    return np.cumprod(factors[::-1], dtype=np.float32)[::-1]


def exact_slope(bins: int) -> int:
    """The slope |w| from which `grid_error` is 0: 208·T."""
    return EXACT_PER_BIN * bins


def theorem_report(
    j: int = 2, k: int = 1, slopes: Sequence[float] = (10, 100, 1e3, 1e4, 1e5, 1e6), bins: int = 64
) -> dict:
    """Errors against |w|, outside the neighbourhoods and on the grid, beside the bound: plain numbers for JSON."""
    first_exact = exact_slope(bins)
    rows = [
        {
            "slope": float(a),
            "neighbourhood": neighbourhood(a),
            "error": measured_error(j, k, a),
            "bound": error_bound(a, j),
            "grid_error": grid_error(j, k, a, bins),
        }
        for a in sorted({*slopes, float(ceil(first_exact))})
    ]
    return {"theorem": "Theorem 1", "j": j, "k": k, "bins": bins, "exact_from_slope": first_exact, "rows": rows}
