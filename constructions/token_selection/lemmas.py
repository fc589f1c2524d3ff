"""Lemmas F.2–F.4 of paper D: each network's sizes beside the stated ones, its error beside the proved bound.

Points are random, with the corners of the range among them. Squares and products reach their bound, so they are asked
at multiples of 2^−20, at which float64 makes no error; elsewhere the bound is far above what float64 errs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product as every
from typing import Any

import numpy as np

from constructions.token_selection.relu_gadgets.approximation import Approximation
from constructions.token_selection.relu_gadgets.cosine import cosine
from constructions.token_selection.relu_gadgets.exponential import exponential
from constructions.token_selection.relu_gadgets.products import clip, product, product_of_many, square
from constructions.token_selection.relu_gadgets.reciprocal import (
    parts_within,
    ratio_teeth,
    ratio_within,
    reciprocal_within,
)
from verify import lemma_bounds as stated

GRID = 2.0**20
AT_ONCE = 20_000
Row = dict[str, Any]
Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A lemma's network, the function, points of its range, its corners, and the sizes that are stated."""

    lemma: str
    what: str
    made: Approximation
    plain: Callable[[np.ndarray], np.ndarray]
    draw: Draw
    corners: list[list[float]]
    stated: dict[str, float]

    def row(self, samples: int, seed: int) -> Row:
        drawn = self.draw(np.random.default_rng(seed), samples)
        points = np.concatenate([np.array(self.corners, dtype=float), drawn])
        error = max(
            float(np.abs(self.made(part)[:, 0] - self.plain(part)).max())
            for part in np.array_split(points, max(1, samples // AT_ONCE))
        )
        sizes = self.made.network.sizes()
        return row_of(self.lemma, self.what, len(points), error, self.made.error, sizes=sizes, stated=self.stated)


def cases() -> Iterator[Case]:
    """The lemmas that are networks, at sizes of use."""
    unit, ends = _uniform([0], [1]), [[0], [1], [0.5]]
    made = Approximation(clip(3), 0.0)
    yield Case("F.2", "clip to [−3, 3]", made, _clip3, _uniform([-9], [9]), [[-3], [3], [0]], stated.clip_sizes(3))
    for m in (4, 9):
        yield Case("F.3", f"x², m = {m}", square(m), _square, unit, ends, stated.square_sizes(m))
    for d, m, c in ((2, 4, 1), (2, 9, 4), (3, 6, 2), (8, 9, 2)):
        many = product(m, c) if d == 2 else product_of_many(d, m, c)
        corners = [list(corner) for corner in every((-c, c, 0), repeat=d)][:729]
        draw, sizes = _uniform([-c] * d, [c] * d), stated.product_sizes(m, c, d)
        yield Case("F.3", f"product of {d}, C = {c}, m = {m}", many, _times, draw, corners, sizes)
    for k, m in ((7, 7), (14, 14)):
        sizes = stated.exponential_sizes(k, m)
        yield Case("F.3", f"e^−x, k = {k}, m = {m}", exponential(k, m), _decay, _tails, [[0], [2], [1e6]], sizes)
    for error, low, high in ((1e-2, 0.1, 1.0), (1e-3, 0.05, 20.0)):
        made, (factors, m) = reciprocal_within(error, low, high), parts_within(error, low, high)
        what, sizes = (
            f"1/x on [{low}, {high:g}], K = {factors}, m = {m}",
            stated.reciprocal_sizes(factors, m, low, high),
        )
        yield Case("F.3", what, made, _inverse, _uniform([low], [high]), [[low], [high]], sizes)
    for r, k, m in ((0, 5, 8), (7, 7, 11)):
        reach, sizes = 2.0**r, stated.cosine_sizes(r, k, m)
        corners = [[sign * t] for sign in (-1, 1) for t in (0, 0.25, 0.5, reach)]
        yield Case("F.3", f"cos 2πt, |t| ≤ {2**r}", cosine(r, k, m), _cos, _uniform([-reach], [reach]), corners, sizes)
    error, largest, low, high = 1e-2, 4.0, 0.25, 8.0
    made, sizes = (
        ratio_within(error, largest, low, high),
        stated.ratio_sizes(*ratio_teeth(error, largest, low, high), largest, low, high),
    )
    corners = [[y, x] for y in (-largest, 0, largest) for x in (low, high)]
    draw = _uniform([-largest, low], [largest, high])
    yield Case("F.4", f"y/x, |y| ≤ {largest:g}, x in [{low}, {high:g}]", made, _over, draw, corners, sizes)


def row_of(lemma: str, what: str, points: int, error: float, bound: float, **more: Any) -> Row:
    """A row of the table; good: the error is within its bound, and no size beyond what is stated."""
    sizes, promised = more.get("sizes", {}), more.get("stated", {})
    within = error <= bound and all(sizes[name] <= promised[name] for name in promised)
    row = {"lemma": lemma, "what": what, "points": points, "error": error, "bound": bound}
    return row | {"sizes": sizes, "stated": promised} | more | {"good": bool(within and more.get("good", True))}


def _uniform(low: list[float], high: list[float]) -> Draw:
    """Multiples of 2^−20 in a box."""
    lows, highs = np.array(low), np.array(high)

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        points = np.round(rng.uniform(lows, highs, (count, len(low))) * GRID) / GRID
        return np.clip(points, lows, highs)

    return draw


def _tails(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of every size from 10^−4 to 10^4."""
    return 10 ** rng.uniform(-4, 4, (count, 1))


def _clip3(x: np.ndarray) -> np.ndarray:
    return np.clip(x[:, 0], -3, 3)


def _square(x: np.ndarray) -> np.ndarray:
    return x[:, 0] ** 2


def _times(x: np.ndarray) -> np.ndarray:
    return np.prod(x, axis=1)


def _decay(x: np.ndarray) -> np.ndarray:
    return np.exp(-x[:, 0])


def _inverse(x: np.ndarray) -> np.ndarray:
    return 1 / x[:, 0]


def _cos(x: np.ndarray) -> np.ndarray:
    return np.cos(2 * np.pi * x[:, 0])


def _over(x: np.ndarray) -> np.ndarray:
    return x[:, 0] / x[:, 1]
