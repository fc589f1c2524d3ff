"""The sizes of a model that a direct sum widens."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True)
class Widths:
    """Of one model: d_model, d_inner, d_state, taps of the convolution, dt_rank (Mamba) or headdim (Mamba-2), and the
    groups of B and C, each of which has d_inner/groups channels. Of the gated delta rule: d_state is that of a key,
    rank the values of a head, groups the heads of keys.
    """

    d_model: int
    d_inner: int
    d_state: int
    d_conv: int
    rank: int
    groups: int = 1


def is_exact(narrow: int, wide: int) -> bool:
    """Whether √(narrow/wide) is a power of two, so that the host's norms are scaled without rounding."""
    ratio, rest = divmod(wide, narrow)
    return rest == 0 and ratio & (ratio - 1) == 0 and isqrt(ratio) ** 2 == ratio
