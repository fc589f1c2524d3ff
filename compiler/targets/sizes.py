"""Sizes of one module, or the least that a block needs."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """What every mixer has; targets add what is theirs."""

    d_model: int
    d_inner: int
    d_state: int

    @property
    def convolved(self) -> int:
        """How many channels the convolution holds: d_inner, and of some mixers also what reads and writes the state."""
        return self.d_inner

    def carried(self, taps: int) -> int:
        """How many numbers go from one position to the next: the state, and so many positions of the convolution."""
        return self.d_inner * self.d_state + taps * self.convolved

    def with_inner(self, d_inner: int) -> Sizes:
        return replace(self, d_inner=d_inner)


@dataclass(frozen=True)
class MambaSizes(Sizes):
    """Sizes of a Mamba, and of mixers with the same parts."""

    dt_rank: int
    d_conv: int = 4
