"""The Haar transform as a task: samples of every size, coefficients by the definition in Fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np

from compiler.language.allowed import allowed
from compiler.language.types import Int, Real
from verify.haar import haar_of
from verify.tasks.numbers import ROWS, NumberBatch, NumberTask, sizes_up_to


class HaarTask(NumberTask):
    """All T coefficients at the last of T = 2^levels positions.

    orthonormal: with the factors 2^((j − J)/2), which float32 rounds; else none, of integers.
    """

    name = "haar"

    def __init__(self, levels: int, orthonormal: bool, largest: float):
        self.levels, self.orthonormal, self.largest, self.length = levels, orthonormal, largest, 2**levels

    def describe(self) -> str:
        kind = "orthonormal" if self.orthonormal else "±1"
        return f"{kind} coefficients of {self.length} samples, against the definition in Fractions"

    def sizes(self) -> tuple[float, ...]:
        sizes = sizes_up_to(self.largest)
        return sizes if self.orthonormal else tuple(size for size in sizes if size >= 1)

    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        samples = rng.uniform(-size, size, (ROWS, self.length))
        samples = np.float32(samples if self.orthonormal else np.round(samples)).astype(float)
        reach = self._reached(size)
        samples = np.clip(samples, -reach, reach)
        samples[0] = reach * rng.choice([-1, 1], self.length)
        whole = np.array([[float(c) for c in haar_of([Fraction(v) for v in row])] for row in samples.tolist()])
        factors = self._factors()
        expected = np.full((ROWS, self.length, self.length), np.nan)
        expected[:, -1] = whole * factors
        slack = 2.0**-23 * np.abs(expected) if self.orthonormal else None
        return NumberBatch({"x": samples[..., None], "position": self._places()}, size, expected, slack)

    def _reached(self, size: float) -> float:
        """The largest sample of this size: a float32 number, and an integer where all are."""
        return allowed(Real(0, size) if self.orthonormal else Int(0, floor(size)), np.float32)[-1][1]

    def _factors(self) -> np.ndarray:
        """The mean counts as scale 0, then 2^j coefficients of every scale j."""
        if not self.orthonormal:
            return np.ones(self.length)
        scales = np.array([0, *(j for j in range(self.levels) for _ in range(2**j))])
        return 2.0 ** ((scales - self.levels) / 2)

    def _places(self) -> np.ndarray:
        return np.tile(np.arange(1.0, self.length + 1)[None, :, None], (ROWS, 1, 1))
