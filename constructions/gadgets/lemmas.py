"""Lemmas 1–5 of paper B, each a word of the language, on none to three blocks: exact on integers, within a proved bound
on reals.

Lemma 1: the product (`a * b`, and the paper's own by four values of silu); Lemma 2: a two-layer network with relu;
Lemma 3: a linear map; Lemma 4: select by the sign of t, |t| ≥ α; Lemma 5, with a condition that it does not have: [a >
b], [a < b], [a ≠ b] where |a − b| ≥ α or a = b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from compiler import (
    Circuit,
    Int,
    Real,
    Stream,
    choose,
    compile,
    concatenate,
    differs,
    exceeds,
    maximum,
    minimum,
    numbers,
    select,
    silu_product,
)
from compiler.artifact.numeric import numeric_stack
from compiler.compiled import Compiled

GAP = Fraction(1, 64)  # α of the comparisons of real numbers
FIRST = np.array([[1, -2], [3, 1], [-1, 1], [2, 2]])  # a network: 2 inputs, 4 hidden units, 2 outputs
SECOND = np.array([[1, -1, 2, 0], [0, 3, -1, 1]])
EXHAUSTIVE_TRIPLES = 12
EPSILONS = (1e-1, 1e-2, 5e-3, 2e-3, 1e-3, 1e-5)  # for which the paper's rule chooses λ

Arrays = dict[str, np.ndarray]  # the values of x, y and t, each (n, 1)


@dataclass(frozen=True)
class Word:
    """One lemma as a stream over x, y, t, and the same in numpy."""

    lemma: str
    name: str
    build: Callable[[Stream, Stream, Stream], Stream]
    plain: Callable[[Arrays], np.ndarray]


def _network(v: Arrays) -> np.ndarray:
    return np.maximum(np.concatenate([v["x"], v["y"]], axis=1) @ FIRST.T, 0) @ SECOND.T


def _linear(v: Arrays) -> np.ndarray:
    return np.concatenate([v["x"], v["y"]], axis=1) @ FIRST.T


_COMMON = (
    Word("1", "a · b", lambda x, y, t: x * y, lambda v: v["x"] * v["y"]),
    Word("2", "two-layer network", lambda x, y, t: SECOND @ (FIRST @ concatenate(x, y)).relu(), _network),
    Word("2", "min(a, b)", lambda x, y, t: minimum(x, y), lambda v: np.minimum(v["x"], v["y"])),
    Word("2", "max(a, b)", lambda x, y, t: maximum(x, y), lambda v: np.maximum(v["x"], v["y"])),
    Word("2", "abs(a − b)", lambda x, y, t: abs(x - y), lambda v: np.abs(v["x"] - v["y"])),
    Word("3", "linear map", lambda x, y, t: FIRST @ concatenate(x, y), _linear),
)
ON_INTEGERS = (
    *_COMMON,
    Word("4", "x if t > 0 else y", lambda x, y, t: select(t > 0, x, y), lambda v: np.where(v["t"] > 0, v["x"], v["y"])),
    Word("5", "[a > b]", lambda x, y, t: x > y, lambda v: v["x"] > v["y"]),
    Word("5", "[a < b]", lambda x, y, t: x < y, lambda v: v["x"] < v["y"]),
    Word("5", "[a ≠ b]", lambda x, y, t: x != y, lambda v: v["x"] != v["y"]),
)
ON_REALS = (
    *_COMMON,
    Word(
        "4",
        "x if t > 0 else y",
        lambda x, y, t: choose(t, x, y, GAP),
        lambda v: np.where(v["t"] > 0, v["x"], v["y"]),
    ),
    Word("5", "[a > b]", lambda x, y, t: exceeds(x, y, GAP), lambda v: v["x"] > v["y"]),
    Word("5", "[a < b]", lambda x, y, t: exceeds(y, x, GAP), lambda v: v["x"] < v["y"]),
    Word("5", "[a ≠ b]", lambda x, y, t: differs(x, y, GAP), lambda v: v["x"] != v["y"]),
)


def report(bound: int = 64, samples: int = 10_000, seed: int = 0) -> dict[str, Any]:
    """Both tables and that of Lemma 1; bound: integers up to this are tried exhaustively, and reals are at most 1."""
    integers = [on_integers(word, bound, seed) for word in ON_INTEGERS]
    reals = [on_reals(word, samples, seed) for word in ON_REALS]
    products = silu_products(samples, seed)
    exact = all(row["wrong"] == 0 and row["proved"] for row in integers)
    within = all(row["error"] <= row["bound"] for row in (*reals, *products))
    return {
        "theorem": "paper B, Lemmas 1–5",
        "largest": bound,
        "gap": str(GAP),
        "samples": samples,
        "integers": integers,
        "reals": reals,
        "silu_products": products,
        "good": exact and within,
    }


def on_integers(word: Word, bound: int, seed: int = 0) -> dict[str, Any]:
    """A word on all pairs of integers up to a bound (with t: all (x, t), and all triples up to 12), on the real
    module.
    """
    inputs = {name: numbers(Int(-bound, bound), name) for name in "xyt"}
    made = _compiled(word, inputs)
    values = _integers(bound, seed)
    if not _reads_t(made):
        values = {name: part[: (2 * bound + 1) ** 2] for name, part in values.items()}
    got = _run(made, inputs, values)
    return _sizes(word, made) | {
        "cases": len(got),
        "wrong": int((got != word.plain(values)).sum()),
        "proved": made.error_bound == 0,
    }


def on_reals(word: Word, samples: int, seed: int = 0) -> dict[str, Any]:
    """A word on random real numbers of at most 1 that keep the gap, against float64, beside its bound."""
    inputs = {name: numbers(Real(-1, 1), name) for name in "xyt"}
    made = _compiled(word, inputs)
    values = _reals(samples, seed)
    error = float(np.abs(_run(made, inputs, values) - word.plain(values)).max())
    return _sizes(word, made) | {"cases": samples, "error": error, "bound": made.error_bound}


def silu_products(samples: int, seed: int = 0) -> list[dict[str, Any]]:
    """Lemma 1's own product for |a|, |b| ≤ 1 and λ a power of two.

    Those of the paper's rule for an ε, rounded up, are marked by it, and by whether the error is within this ε.
    """
    epsilons = {paper_scale(epsilon): epsilon for epsilon in EPSILONS}
    scales = sorted({Fraction(2**k) for k in range(2, 15)} | set(epsilons))
    rows = []
    for scale in scales:
        word = Word("1", "silu product", lambda x, y, t, s=scale: silu_product(x, y, s), lambda v: v["x"] * v["y"])
        row = on_reals(word, samples, seed)
        curved = 1 / (3 * float(scale) ** 2)
        epsilon = epsilons.get(scale)
        within = {"within": None if epsilon is None else row["error"] <= epsilon}
        rows.append({"scale": int(scale), "of_epsilon": epsilon, "curvature": curved} | within | row)
    return rows


def paper_scale(epsilon: float, largest: float = 1.0) -> Fraction:
    """λ = 216·M³/(2ε) of Lemma 1, rounded up to a power of two."""
    return Fraction(2) ** int(np.ceil(np.log2(216 * largest**3 / (2 * epsilon))))


def _compiled(word: Word, inputs: dict[str, Stream]) -> Compiled:
    return compile(Circuit(word.name, word.build(*inputs.values()), length=1))


def _reads_t(made: Compiled) -> bool:
    return any(s.name == "t" for s in made.source.streams)


def _run(made: Compiled, inputs: dict[str, Stream], values: Arrays) -> np.ndarray:
    return numeric_stack(made).run({inputs[name]: part[:, None] for name, part in values.items()})[:, 0]


def _sizes(word: Word, made: Compiled) -> dict[str, Any]:
    channels = sum(len(block.channels.names) for block in made.blocks)
    return {"lemma": word.lemma, "word": word.name, "blocks": len(made.blocks), "channels": channels}


def _integers(bound: int, seed: int) -> Arrays:
    """All (x, y) with t drawn, all (x, t) with y drawn, and all triples up to 12: columns (n, 1)."""
    every, few = (
        np.arange(-bound, bound + 1),
        np.arange(-min(bound, EXHAUSTIVE_TRIPLES), min(bound, EXHAUSTIVE_TRIPLES) + 1),
    )
    first, second = (part.reshape(-1) for part in np.meshgrid(every, every))
    drawn = np.random.default_rng(seed).choice(every, len(first))
    triples = [part.reshape(-1) for part in np.meshgrid(few, few, few)]
    columns = {"x": (first, first, triples[0]), "y": (second, drawn, triples[1]), "t": (drawn, second, triples[2])}
    return {name: np.concatenate(parts)[:, None].astype(float) for name, parts in columns.items()}


def _reals(samples: int, seed: int) -> Arrays:
    """Random x, y and t of at most 1, float32 numbers; x = y for an eighth, else |x − y| ≥ α; |t| ≥ α."""
    rng, gap = np.random.default_rng(seed), float(GAP)
    x = rng.uniform(-1, 1, samples).astype(np.float32)
    away = np.where(x > 0, -1, 1) * rng.uniform(gap, 1, samples)
    y = np.where(rng.integers(0, 8, samples) == 0, x, np.float32(x + away))
    y = np.where((y != x) & (np.abs(y.astype(float) - x) < gap), x, y)
    t = rng.choice([-1, 1], samples) * rng.uniform(gap, 1, samples).astype(np.float32)
    return {name: part.astype(float)[:, None] for name, part in (("x", x), ("y", y), ("t", t))}


def draw_products(result: dict[str, Any], path: Any) -> None:
    """Lemma 1: the measured error against λ, its bound, and where the paper's rule puts λ."""
    from matplotlib.figure import Figure

    from constructions.pictures.page import save

    figure = Figure(figsize=(5.5, 3.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    rows = result["silu_products"]
    scales = [row["scale"] for row in rows]
    axes.loglog(scales, [row["error"] for row in rows], "o-", label="measured; ε: at the paper's λ for it")
    axes.loglog(scales, [row["bound"] for row in rows], "--", label="bound")
    for row in rows:
        if row["of_epsilon"]:
            said = f"ε = {row['of_epsilon']:g}{'' if row['within'] else ', above it'}"
            axes.annotate(said, (row["scale"], row["error"]), (4, -3), textcoords="offset points", va="top", fontsize=7)
    axes.set_xlabel("λ")
    axes.set_ylabel("largest |g(a, b) − ab|")
    axes.set_title("Lemma 1: a product by four values of silu, |a|, |b| ≤ 1", fontsize=10)
    axes.legend(fontsize=8)
    save(figure, path)
