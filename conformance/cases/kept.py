"""What is drawn once and kept: the cases of a kernel that takes everything, and those of the last few that take less.

A kernel that takes less is asked cases of its own, hundreds of MB of them. Who tries many kernels, as the tests do,
would hold all of these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, wraps
from typing import Any, TypeVar, cast

OTHERS = 8
"""Of how many kernels that take less the cases are kept, of each crossing."""

Make = TypeVar("Make", bound=Callable[..., Any])


def kept(make: Make) -> Make:
    """make(op, without, …): the cases of an operation but for what a kernel does not take."""
    whole, others = cache(make), lru_cache(OTHERS)(make)

    @wraps(make)
    def found(op: str, without: frozenset[Any] = frozenset(), *rest: Any, **named: Any) -> Any:
        return (others if without else whole)(op, without, *rest, **named)

    return cast(Make, found)
