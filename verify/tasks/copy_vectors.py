"""COPY of vectors as a task (paper B, Theorem 2): y_i = x_pos(i), looked up in plain Python."""

from __future__ import annotations

import numpy as np

from verify.tasks.numbers import ROWS, NumberBatch, NumberTask, sizes_up_to

MOST_RANDOM = 4 * ROWS


class CopyVectorsTask(NumberTask):
    """N vectors of d numbers, each with its place e_i and the place e_pos(i), pos(i) ≤ i, that it asks for."""

    name = "copy-vectors"
    most_random = MOST_RANDOM

    def __init__(self, places: int, width: int, largest: float, integers: bool):
        self.length, self.width, self.largest, self.integers = places, width, largest, integers

    def describe(self) -> str:
        kind = "integers" if self.integers else "real numbers"
        return f"COPY of vectors of {self.width} {kind} at {self.length} places, against a look-up"

    def sizes(self) -> tuple[float, ...]:
        sizes = sizes_up_to(self.largest)
        return tuple(size for size in sizes if size >= 1) if self.integers else sizes

    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        x = rng.uniform(-size, size, (ROWS, self.length, self.width))
        x[0] = size * rng.choice([-1, 1], x[0].shape)
        x = np.trunc(x) if self.integers else np.float32(x).astype(float)
        x = np.where(np.abs(x) > size, np.nextafter(np.float32(size), np.float32(0)), x)  # rounded outwards
        asked = rng.integers(0, np.arange(1, self.length + 1), (ROWS, self.length))
        asked[:3] = np.arange(self.length), np.zeros(self.length), np.maximum(np.arange(self.length) - 1, 0)
        expected = [[x[row][place].tolist() for place in asked[row].tolist()] for row in range(ROWS)]
        one_hot = np.eye(self.length)
        place = np.tile(one_hot[None], (ROWS, 1, 1))
        return NumberBatch({"x": x, "place": place, "asked": one_hot[asked]}, size, np.array(expected))
