"""Where a circuit stands in a host: sizes, lanes and levels, decided before a tensor is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compiler.compiled import Compiled
from compiler.exactness.ballast import Ballast
from compiler.graft.widths import Widths
from compiler.ir.block import SelectiveBlock


@dataclass(frozen=True, eq=False)
class Placement:
    """The circuit's blocks and where they stand.

    ballast: of the stream's norm; faint: FAINT; scale: κ; lanes: the circuit's lanes in d_model; reach: Σ|weight|·b,
    the largest over the letters, and terms: the most lanes that a score reads; epsilons: of the norms of the direct
    sum, that of the stream first, by the names of config.json.
    """

    compiled: Compiled
    blocks: tuple[SelectiveBlock, ...]
    host: Widths
    wide: Widths
    ballast: Ballast
    faint: float
    scale: float
    bounds: np.ndarray
    reach: float
    terms: int
    epsilons: Mapping[str, float]

    @property
    def epsilon(self) -> float:
        return next(iter(self.epsilons.values()))

    @property
    def lanes(self) -> np.ndarray:
        return self.host.d_model + np.arange(self.compiled.lanes.count)

    @property
    def places(self) -> np.ndarray:
        """Of the circuit's lanes and then of the ballast lanes."""
        count = len(self.ballast.factors)
        return np.concatenate([self.lanes, self.wide.d_model - count + np.arange(count)])
