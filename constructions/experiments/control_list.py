"""The controls that are trained: each family of them small enough for minutes on one core."""

from __future__ import annotations

from typing import Literal

import numpy as np

from constructions.experiments.control_model import Mixer, Transition
from constructions.experiments.controls import Control, Regression
from verify.tasks.count_in_row import CountInRow
from verify.tasks.induction import Induction
from verify.tasks.keep import Keep
from verify.tasks.mqar import PaperLayout

KEPT, KEEP_TOKENS = 5, 16
POLYNOMIAL = "3*x1**2*x2*x3**2*x4 - 2*x2**3*x4**2 + x1*x3*x4"


def keep_control(mixer: Mixer, position: bool, length: int) -> Control:
    """KEEP FIFTH without convolution and gate, as in paper A's appendix D.2."""
    watched = 0 if mixer == "attention" else KEPT
    return Control(mixer, Keep(KEPT, KEEP_TOKENS, length), 16, 4, position=position, watched=watched)


def mqar_control(mixer: Literal["s6", "s4d", "mamba2"], width: int, columns: int) -> Control:
    """MQAR with convolution; the gate for S4D alone, as in appendix D.3."""
    task = PaperLayout(4, 16, 16, "neutral")
    return Control(mixer, task, width, columns, convolution=True, gate=mixer == "s4d", steps=800, rate=0.02)


def induction_control(mixer: Literal["s6", "s6-transposed"], width: int, columns: int) -> Control:
    """Induction heads with convolution and without gate, three in four in a hard setting as in paper A's appendix D.4,
    but with γ = 0.2 for T = 16; the paper's is at most 0.1, which leaves r = 1 alone.
    """
    return Control(mixer, Induction(4, 16, gamma=0.2), width, columns, convolution=True, steps=800, rate=0.02)


def counting_control(mixer: Literal["s6", "attention"], layers: int, width: int, position: bool) -> Control:
    """Paper C's Table 2, above: how long the run of ones is, asked at every one of ten digits."""
    return Control(mixer, CountInRow(10, 10, 0.8), width, width, layers, position=position, rate=0.02)


def variant_control(transition: Transition) -> Control:
    """Paper C's Table 1 and Figure 3 at our size: the same S6 with other transitions, counting runs."""
    return Control("s6", CountInRow(10, 10, 0.8), 4, 4, transition=transition, rate=0.02)


def regression_control(mixer: Literal["s6", "attention"], width: int, position: bool) -> Control:
    """Paper C's Table 2, below: a polynomial whose degree is above the length."""
    task = Regression(POLYNOMIAL, 4, _polynomial)
    return Control(mixer, task, width, width, position=position, rate=0.02)


def _polynomial(x: np.ndarray) -> np.ndarray:
    a, b, c, d = x.T
    return 3 * a**2 * b * c**2 * d - 2 * b**3 * d**2 + a * c * d
