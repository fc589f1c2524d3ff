"""Types as an author declares them: bounds that are numbers, in order, or one sentence that says which is none."""

from __future__ import annotations

from typing import get_args

from compiler.language.arguments import MOST_LANES, instance, integer, number
from compiler.language.types import OPEN, Int, Real, Type


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
    """The same of a numeric input, whose open bound is 2^62 in size: ValueError for a bound that lies beyond it."""
    declared(type, what)
    if isinstance(type, Int | Real):
        above = type.hi is None and type.lo is not None and type.lo > OPEN
        below = type.lo is None and type.hi is not None and type.hi < -OPEN
        if above or below:
            side, limit = ("hi", "2^62") if above else ("lo", "-2^62")
            raise ValueError(
                f"the type of {what} is {type}, and its open {side} stands for {limit}, which its other bound exceeds; "
                f"declare {side}"
            )
    return type
