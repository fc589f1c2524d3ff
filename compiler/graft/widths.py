"""The sizes of a model that a direct sum widens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Widths:
    """Of one model: d_model, d_inner, d_state, taps of the convolution, dt_rank (Mamba) or headdim (Mamba-2), and the
    groups of B and C, each of which has d_inner/groups channels.
    """

    d_model: int
    d_inner: int
    d_state: int
    d_conv: int
    rank: int
    groups: int = 1
