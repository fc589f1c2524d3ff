"""What a trait of an operation can be, where it is more than yes or no."""

from __future__ import annotations

from enum import Enum


class Sees(Enum):
    """What the value at a position is a function of."""

    POINTWISE = "the inputs at this position"
    LINEAR = "the inputs at this position, linearly"
    PAST = "the inputs at this position and before"


class Source(Enum):
    """Where a source takes its values from."""

    TOKEN = "the present token"
    NUMBERS = "numbers that are given at each position"
    RUN = "nothing but the position"


class LaneWise(Enum):
    """Which lanes of the operands a lane of the result is made of; lane by lane, some may be left out."""

    TOGETHER = "any lanes"
    EACH = "the same lane of each operand, or the only lane of one"
    VALUE = "the same lane of the first operand, under each flag of a latch"
