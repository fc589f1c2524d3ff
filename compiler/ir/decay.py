"""How much of a state a step leaves: h ← exp(Δ·A)·h with A = −exp(A_log)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log

import numpy as np

from compiler.exactness.levels import ERASE_LOG, FAINT_LOG, FORGET_LOG, KEEP_LOG, ON


@dataclass(frozen=True)
class Fade:
    """A = −exp(a_log), as the module computes it in float32. KEEP, ERASE and FAINT are the ones that gadgets use,
    FORGET stands where a channel meets columns that are not its own."""

    a_log: float

    @property
    def rate(self) -> float:
        """|A| in float32: 0 for KEEP, 1 for ERASE."""
        return float(np.float32(exp(self.a_log)))

    @property
    def fades(self) -> bool:
        """Whether a step leaves a part of the state, rather than all of it or nothing."""
        return self not in _NAMES

    def __str__(self) -> str:
        return _NAMES.get(self, f"fade({self.a_log:g})")


KEEP = Fade(KEEP_LOG)  # A = −0: no step is felt (exactness E1)
ERASE = Fade(ERASE_LOG)  # A = −1: a step of 128 erases, a step of 0 keeps (exactness E4)
FAINT = Fade(FAINT_LOG)  # a step of 32 is not felt, a step of 2^50 erases (exactness E9)
FORGET = Fade(FORGET_LOG)  # every step of 32 or more erases (exactness E15)
_NAMES = {KEEP: "keep", ERASE: "erase", FAINT: "faint", FORGET: "forget"}


def fade_by(factor: Fraction) -> Fade:
    """The float32 A_log nearest to ln(−ln(factor)/128): a step of 128 leaves about this factor of the state."""
    return Fade(float(np.float32(log(-log(factor) / ON))))


def fade_error(factor: Fraction, chunk: int = 0) -> float:
    """η with |what a step leaves / factor − 1| ≤ η in float32, the two roundings of h ← a·h + w included.

    λ = −ln(factor). A = −exp(A_log) is right within |A_log|·u (A_log is rounded) and 4u (exp, 2 ulp); 128·A is exact;
    exp(128·A) is right within 4u, and within 2u·λ more where it is computed as 2^(x·log2 e). Where a scan adds up the
    exponents of up to `chunk` steps first (Mamba-2), each sum is off by chunk·u of itself. First order, times 1.01.
    """
    u, exponent = 2.0**-24, -log(factor)
    return 1.01 * u * (exponent * (abs(fade_by(factor).a_log) + 6 + chunk) + 6)


def rates(decays: tuple[Fade, ...]) -> np.ndarray:
    """|A| of each: (count,) float64."""
    return np.array([decay.rate for decay in decays])


def a_logs(decays: tuple[Fade, ...]) -> np.ndarray:
    """A_log of each: (count,) float64."""
    return np.array([decay.a_log for decay in decays])
