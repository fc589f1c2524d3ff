"""What the ports of a block take: what gadgets and passes ask of a target."""

from __future__ import annotations

from typing import ClassVar, Literal

from compiler.language.operations import Operation

# "written": one rectified row of lanes and their past, x̂ of a channel (times a positive unit).
# "linear":  a linear map of such rows, which may be signed.
# "lanes":   a linear map of the present lanes.
Port = Literal["written", "linear", "lanes"]

CONSTANT_COLUMN = ("constant",)  # the column group of every state that has one column, on at every position


class Ports:
    """What one mixer has.

    name:    what compile() and the command call it.
    step:    the port at Δ; None where Δ does not see the input.
    column:  the port at B and C; None where they do not see the input.
    d_conv:  taps of the convolution; a port reaches d_conv − 1 positions back.
    apart:   whether a channel can keep out of the state by a Δ of 0, so that one block holds states and D paths.
    counts:  whether a channel counts since a reset (exactness E9); elsewhere a count is a running sum minus its
        latched copy.
    sums:    whether A may differ from column to column, so that one block holds a direct sum of column groups (E15).
    chunk:   over how many steps its scan adds up the exponents of the decays before it forms their exp; 0: one by one.
    heads:   whether each column group of a block has a state of its own, which follows the delta rule.
    reflects: whether a step may turn a number of a state around (β = 2).
    row_bias: whether a row has a bias beside its taps; elsewhere a constant is a lane that rows read.
    reals:   operations that are lowered for real numbers, beside linear maps.
    max_d_state: the most state columns that the kernels of its modules take; None where there is no limit.
    """

    name: ClassVar[str]
    step: ClassVar[Port | None]
    column: ClassVar[Port | None]
    d_conv: ClassVar[int] = 4
    apart: ClassVar[bool] = True
    counts: ClassVar[bool] = False
    sums: ClassVar[bool] = False
    chunk: ClassVar[int] = 0
    heads: ClassVar[bool] = False
    reflects: ClassVar[bool] = False
    row_bias: ClassVar[bool] = True
    reals: ClassVar[tuple[type[Operation], ...]] = ()
    max_d_state: int | None = None

    @property
    def max_lag(self) -> int:
        return self.d_conv - 1
