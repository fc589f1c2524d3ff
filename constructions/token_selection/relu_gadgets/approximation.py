"""A network together with what is proved about it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from compiler.machines.fnn_ssm.relu_network import ReluNetwork


@dataclass(frozen=True, eq=False)
class Approximation:
    """A network that is nowhere on its range farther than `error` from the function (in exact arithmetic)."""

    network: ReluNetwork
    error: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(…, inputs) to (…, outputs)."""
        return self.network(x)


def teeth_for(error: float) -> int:
    """The least m ≥ 1 with 4^−(m+1) ≤ error: the teeth that a square within `error` takes."""
    if not error > 0:
        raise ValueError(f"error = {error}: a network approximates within an error above 0.")
    return max(1, ceil(log(1 / error, 4) - 1e-12) - 1)


def tooth(m: int) -> float:
    """4^−(m+1): how far a square of m teeth may be off."""
    return 4.0 ** -(m + 1)
