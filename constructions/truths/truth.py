"""A statement of a paper that fails as printed: the counterexample is run, and so is what holds instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What one run measured.

    against: the numbers of the counterexample; fails: whether the statement fails on them;
    instead: the numbers of what holds; holds: whether it does.
    """

    against: Mapping[str, float]
    fails: bool
    instead: Mapping[str, float]
    holds: bool

    @property
    def good(self) -> bool:
        return self.fails and self.holds


@dataclass(frozen=True)
class Truth:
    """says: the statement as printed; but: why it fails; holds: what does hold; measure: runs both."""

    name: str
    paper: str
    place: str
    says: str
    but: str
    holds: str
    measure: Callable[[], Finding]
