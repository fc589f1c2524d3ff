"""What the ports of a block accept, target by target.

A block rectifies rows of its input lanes (x̂ = silu(conv(row))) and feeds the results to
its state: what is written (x̂ of the channel itself), the step Δ, the columns B and C.
The gate z and the last linear map see lanes. Targets differ in what may stand at Δ, B
and C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PortRules:
    """The ports of one target.

    delta:   "features": Δ is linear in x̂ (Mamba); "lanes": linear in the present input
             lanes, no convolution (Mamba-2); "constant": it does not see the input (S4D);
             "columns": one step per state column, linear in x̂, that does not scale what is written (Mamba-Δᵀ).
    columns: "linear": B and C are linear in x̂ (Mamba); "features": each is one rectified
             row, nothing after (Mamba-2); "constant": they do not see the input (S4D).
    d_conv:  taps of the convolution; a port reaches d_conv − 1 positions back.
    counts:  whether a channel counts since a reset (exact-arithmetic E9): Δ must reach 2^50, which float16
             does not hold; elsewhere a count is a running sum minus its latched copy.
    checkpoint: whether Hugging Face has a language model of this mixer (S4D: as a Mamba with constant Δ, B, C).
    """

    name: str
    delta: Literal["features", "lanes", "constant", "columns"]
    columns: Literal["linear", "features", "constant"]
    d_conv: int = 4
    counts: bool = False
    checkpoint: bool = True

    @property
    def max_lag(self) -> int:
        return self.d_conv - 1


MAMBA = PortRules("mamba", "features", "linear", counts=True)
MAMBA2 = PortRules("mamba2", "lanes", "features")
S4D = PortRules("s4d", "constant", "constant")
MAMBA_DELTA_T = PortRules("mamba-delta-t", "columns", "linear", checkpoint=False)
TARGETS = {rules.name: rules for rules in (MAMBA, MAMBA2, S4D, MAMBA_DELTA_T)}


def rules_of(target: str) -> PortRules:
    """The rules of a target by its name; ValueError for a name that is none."""
    if target not in TARGETS:
        raise ValueError(f"{target!r} is no target; there are {', '.join(TARGETS)}")
    return TARGETS[target]
