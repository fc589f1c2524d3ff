"""Theorem 4.6 of paper D measured: a series estimator, over n and smoothness.

The target has every wave up to a level beyond what is kept, each level with the most that |f|_γ ≤ 1 lets it have when
all share alike. x is uniform on [0, 1], y = f(x) + noise; a coefficient is the mean of y·ψ_r(x), the first 2^(T/a⁺) =
n^(1/(2a⁺ + 1)) waves are kept, as we read the proof. Its error is known exactly, for the waves are orthonormal. One
coordinate, so a⁺ is its smoothness: this is the rate of the class, which paper D reaches by a model that finds the
coordinate first. The estimator is ours, and the theorem's formulas are our reading (`RECONSTRUCTED`). One coordinate of
smoothness below 1 has a weak norm above 1: there the rate is the formula's, and the theorem, as we read it, says
nothing (`weak_norm`).
"""

from __future__ import annotations

from math import ceil, floor, log
from typing import Any

import numpy as np

from verify import estimation
from verify.arguments import at_least, at_most
from verify.covering import SsmClass

SMOOTHNESS = (0.5, 1.0, 2.0)  # the first is outside of Assumption 4.3 as we read it
SAMPLES = tuple(4**k for k in range(3, 8))
BEYOND = 1  # levels of the target that no estimate here keeps
NOISE = 0.5
AT_ONCE = 4096
MOST_COORDINATES = 64
LARGEST_SMOOTHNESS = 1e6
LARGEST_LOG = 1000  # of weights: 2^1024 is no float64
ROUNDED = 1e-12  # of j^alpha


def report(seed: int = 0, repeats: int = 8, most: int = SAMPLES[-1]) -> dict[str, Any]:
    """Rows of (a⁺, n, T, waves, error, rate); the slope of the error for each a⁺, the formula's exponent, and the weak
    norm, up to 1 of which the theorem promises it."""
    rows = [_row(a, n, repeats, seed) for a in SMOOTHNESS for n in SAMPLES if n <= most]
    slopes = []
    for a in SMOOTHNESS:
        mine = [row for row in rows if row["a_plus"] == a]
        logs = np.log2([[row["samples"], row["error"]] for row in mine])
        slope = -float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
        norm = estimation.weak_norm([a], 1.0)
        slopes.append({"a_plus": a, "weak_norm": norm, "exponent": estimation.exponent(a), "slope": slope})
    told = {"theorem": "after paper D, Theorem 4.6", "reconstructed": list(estimation.RECONSTRUCTED)}
    return told | {"rows": rows, "slopes": slopes, "noise": NOISE}


def _row(a: float, samples: int, repeats: int, seed: int) -> dict[str, Any]:
    terms = estimation.terms_for(samples, a)
    kept = max(1, round(2 ** (terms / a)))
    top = floor(estimation.terms_for(SAMPLES[-1], a) / a) + BEYOND
    rng = np.random.default_rng([seed, samples, round(8 * a)])
    error = float(np.mean([_error(a, samples, kept, top, rng) for _ in range(repeats)]))
    rate = estimation.rate(samples, a)
    return {"a_plus": a, "samples": samples, "terms": terms, "waves": kept, "error": error, "rate": rate}


def target(a: float, top: int) -> np.ndarray:
    """Coefficients of the waves cos and sin of 0, 1, 2, …: level s has the norm 2^(−a·s)/√(top + 1), so |f|_γ = 1.

    Alike within a level, but for a sign that alternates.
    """
    levels = [np.full(2**s if s else 1, 2.0 ** (-a * s - s / 2)) for s in range(top + 1)]
    flat = np.concatenate(levels) / np.sqrt(top + 1)
    return flat * (-1.0) ** np.arange(len(flat))


def waves(x: np.ndarray, count: int) -> np.ndarray:
    """(n,) to (n, count): 1, √2·cos 2πx, √2·sin 2πx, √2·cos 4πx, …"""
    angle = 2 * np.pi * np.outer(x, np.arange(1, count // 2 + 1))
    out = np.ones((len(x), count))
    out[:, 1::2] = np.sqrt(2) * np.cos(angle)
    out[:, 2::2] = np.sqrt(2) * np.sin(angle[:, : (count - 1) // 2])
    return out


def _error(a: float, samples: int, kept: int, top: int, rng: np.random.Generator) -> float:
    coefficients = target(a, top)
    count = min(kept, len(coefficients))
    sums = np.zeros(count)
    for part in np.array_split(np.arange(samples), max(1, samples // AT_ONCE)):
        at = waves(rng.random(len(part)), len(coefficients))
        seen = at @ coefficients + NOISE * rng.standard_normal(len(part))
        sums += at[:, :count].T @ seen
    guessed = np.zeros(len(coefficients))
    guessed[:count] = sums / samples
    return float(((guessed - coefficients) ** 2).sum())


def model_sizes(samples: int, smoothness: list[float], kind: str, alpha: float) -> dict[str, Any]:
    """What Theorems 4.5, 4.6 and J.3 say for n samples, all constants 1 but that of J.3."""
    _check(smoothness, alpha)
    a_plus = estimation.effective_smoothness(smoothness, kind)
    terms = max(1.0, estimation.terms_for(samples, a_plus))
    sizes = estimation.sizes(terms, alpha, a_plus)
    if sizes["log2_B"] > LARGEST_LOG:
        raise ValueError(
            f"alpha = {alpha:g} asks for weights of 2^{sizes['log2_B']:.0f}, and at most 2^{LARGEST_LOG} are counted "
            f"with; the smallest alpha that works here is {ceil(1000 * log(terms) / log(LARGEST_LOG)) / 1000:g}."
        )
    blocks, depth, width = (max(1, round(sizes[name])) for name in ("M", "L", "W"))
    channels = max(1, round(terms ** (1 / alpha)))
    window, largest = round(2 ** sizes["log2_U"]), 2 ** sizes["log2_B"]
    model = SsmClass(blocks, window, channels, depth, max(width, channels), round(sizes["S"]), largest)
    delta = 1 / samples if samples > 1 else 0.5
    covering = model.log_covering(delta)
    return {
        "a_plus": a_plus,
        "weak_norm": estimation.weak_norm(smoothness, alpha),
        "T": terms,
        "kept_waves": estimation.kept_waves(terms, smoothness, kind),
        **sizes,
        "exponent": estimation.exponent(a_plus),
        "rate": estimation.rate(samples, a_plus),
        "log_covering": covering,
        "log_covering_bound": model.theorem(delta),
    }


def _check(smoothness: list[float], alpha: float) -> None:
    """ValueError where Assumption 4.3, as we read it, does not hold, so that the theorems say nothing, or floats do not
    reach.
    """
    at_most("coordinates", len(smoothness), MOST_COORDINATES, "their waves are counted one coordinate after another")
    for a in smoothness:
        at_most("smoothness", a, LARGEST_SMOOTHNESS, "its waves are counted in floats")
        at_least("smoothness", a, 1, "the weak norm, as reconstructed, is at most 1: sorted a_j is at least j^alpha")
    norm = estimation.weak_norm(smoothness, alpha)
    if norm > 1 + ROUNDED:
        least = ",".join(f"{ceil(1000 * (j + 1) ** alpha) / 1000:g}" for j in range(len(smoothness)))
        raise ValueError(
            f"smoothness = {','.join(f'{a:g}' for a in smoothness)} has the weak norm {norm:.4g} for alpha = "
            f"{alpha:g}, and Theorems 4.5 and 4.6, as reconstructed, need at most 1; the smallest smoothness that "
            f"works is {least}."
        )


def draw(result: dict[str, Any], path: Any) -> None:
    """The error against n, the rate beside it, and the slope against the smoothness."""
    from matplotlib.figure import Figure

    from constructions.pictures.page import save

    figure = Figure(figsize=(9.5, 3.8), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, slope in enumerate(result["slopes"]):
        mine = [row for row in result["rows"] if row["a_plus"] == slope["a_plus"]]
        n = [row["samples"] for row in mine]
        color, label = f"C{number}", f"a⁺ = {slope['a_plus']:g}, measured"
        outside = "" if slope["weak_norm"] <= 1 else ", no theorem: weak norm > 1"
        left.loglog(n, [row["error"] for row in mine], "o", color=color, label=label)
        scale = np.exp(np.mean([np.log(row["error"] / row["rate"]) for row in mine]))
        line = [scale * row["rate"] for row in mine]
        left.loglog(n, line, "-", color=color, linewidth=1, label=f"n^−{slope['exponent']:.2f}{outside}")
    left.set_xlabel("n, samples")
    left.set_ylabel("mean squared error")
    left.legend(fontsize=6, ncols=2)
    smooth = np.linspace(0.1, 4, 100)
    right.plot(smooth, [estimation.exponent(a) for a in smooth], label="2a⁺/(2a⁺ + 1)")
    found = [(s["a_plus"], s["slope"]) for s in result["slopes"]]
    right.plot(*zip(*found, strict=True), "o", label="measured slope")
    right.set_xlabel("smoothness a⁺")
    right.set_ylabel("exponent of 1/n")
    right.set_ylim(0, 1)
    right.legend(fontsize=8)
    figure.suptitle("Theorem 4.6 as reconstructed: the rate of estimation, up to powers of log n", fontsize=10)
    save(figure, path)
