"""Types as an author declares them: bounds that are numbers, in order, or one sentence that says which is none."""

from __future__ import annotations

from typing import get_args

import numpy as np

from compiler.language.allowed import allowed
from compiler.language.arguments import MOST_LANES, instance, integer, number
from compiler.language.types import OPEN, Int, Logits, Real, Type


def declared(type: Type, what: str) -> Type:
    """The type; ValueError or TypeError where no number is within its bounds, or where those of integers are none.

    what: the word that it is given to, for messages.
    """
    instance(type, get_args(Type), f"the type of {what}", "a stream type such as Int(-3, 3)")
    integer(getattr(type, "width", None), f"the width of {what}", 1, MOST_LANES)
    if not isinstance(type, Int | Real):
        return type
    if isinstance(type, Real) and number(type.gap, f"the gap of {what}") < 0:
        raise ValueError(f"the gap of {what} is {type.gap}, and it must be at least 0")
    bounds = [bound for bound in (type.lo, type.hi) if bound is not None]
    for bound in bounds:
        (integer if isinstance(type, Int) else number)(bound, f"a bound of {what}")
    if bounds != sorted(bounds):
        raise ValueError(f"the type of {what} is {type}, and lo must be at most hi")
    return type


def of_input(type: Type, what: str) -> Type:
    """The same of a numeric input, whose open bound is 2^62 in size: ValueError for a bound that lies beyond it, for a
    gap that leaves 0 alone, and where no number of the input's format is allowed (float32, of integers float64).
    """
    declared(type, what)
    if isinstance(type, Logits):
        raise ValueError(f"the type of {what} is {type}, and scores are what a circuit gives; declare Real")
    if isinstance(type, Int | Real):
        above = type.hi is None and type.lo is not None and type.lo > OPEN
        below = type.lo is None and type.hi is not None and type.hi < -OPEN
        if above or below:
            side, limit = ("hi", "2^62") if above else ("lo", "-2^62")
            raise ValueError(
                f"the type of {what} is {type}, and its open {side} stands for {limit}, which its other bound exceeds; "
                f"declare {side}"
            )
        _need_some(type, what)
    return type


def _need_some(type: Int | Real, what: str) -> None:
    """ValueError where nothing is allowed of which a model could be given any."""
    dtype = np.float64 if type.integral else np.float32
    found = allowed(type, dtype)
    gap = getattr(type, "gap", 0)
    if gap and found in ([], [(0.0, 0.0)]):
        left = "nothing but 0" if found else "no number"
        raise ValueError(f"the type of {what} is {type}, and its gap leaves {left}; declare a smaller gap")
    if not found:
        raise ValueError(f"the type of {what} is {type}, and no number of {np.dtype(dtype)} is within its bounds")
