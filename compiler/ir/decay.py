"""How much of a state a step leaves: h ← exp(Δ·A)·h with A = −exp(A_log)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np

from compiler.exactness.levels import ERASE_LOG, FAINT_LOG, KEEP_LOG


@dataclass(frozen=True)
class Fade:
    """A = −exp(a_log), as the module computes it in float32. KEEP, ERASE and FAINT are the ones that gadgets use."""

    a_log: float

    @property
    def rate(self) -> float:
        """|A| in float32: 0 for KEEP, 1 for ERASE."""
        return float(np.float32(exp(self.a_log)))

    def __str__(self) -> str:
        return _NAMES.get(self, f"fade({self.a_log:g})")


KEEP = Fade(KEEP_LOG)  # A = −0: no step is felt (exact-arithmetic E1)
ERASE = Fade(ERASE_LOG)  # A = −1: a step of 128 erases, a step of 0 keeps (exact-arithmetic E4)
FAINT = Fade(FAINT_LOG)  # a step of 32 is not felt, a step of 2^50 erases (exact-arithmetic E9)
_NAMES = {KEEP: "keep", ERASE: "erase", FAINT: "faint"}


def rates(decays: tuple[Fade, ...]) -> np.ndarray:
    """|A| of each: (count,) float64."""
    return np.array([decay.rate for decay in decays])


def a_logs(decays: tuple[Fade, ...]) -> np.ndarray:
    """A_log of each: (count,) float64."""
    return np.array([decay.a_log for decay in decays])
