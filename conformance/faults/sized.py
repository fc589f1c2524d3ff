"""Bugs at some sizes only, and with every option: a matrix unit or a fast path that small operands do not take.

Either products round there, or a function of one number is another. An author who had seen no case wrote some sixty of
this kind; these are a few of the kind, in our own words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.faults.unforeseen import Given, Right


def from_size(bug: str, **least: int) -> Callable[[Right, Given], Any]:
    """A bug where each of these sizes is at least as large: channels (of a head, where there are heads) and columns."""

    def at_some_sizes(right: Right, given: Given) -> Any:
        here = sizes(given)
        return right(**given, bug=bug if all(here[name] >= size for name, size in least.items()) else "")

    return at_some_sizes


def sizes(given: Given) -> dict[str, int]:
    """What the operands of a call show of its sizes."""
    if "state" in given:
        return dict(zip(("channels", "columns"), given["state"].shape[-2:], strict=True))
    if "u" in given:
        return dict(zip(("channels", "columns"), given["A"].shape, strict=True))
    if "B" in given:
        return {"channels": given["x"].shape[-1], "columns": given["B"].shape[-1]}
    return {"channels": given["x"].shape[1 if given["weight"].dim() == 2 else -1]}
