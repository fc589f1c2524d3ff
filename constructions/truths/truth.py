"""A statement of a paper, what is the matter with it, and a counterexample that is run, with what holds instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from inspect import signature
from typing import Any


class Kind(Enum):
    """What is the matter with a statement. A limit of our own construction is none of these: its page tells it."""

    FAILS = "fails as printed"
    UNSAID = "a condition left unsaid"
    FLOATS = "true on paper, not on floats"


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
        return bool(self.fails and self.holds)


@dataclass(frozen=True)
class Truth:
    """says: the statement, quoted; but: what is the matter; holds: what does hold; measure: runs both.

    The parameters of `measure` are the constants of the counterexample, and their defaults the ones on the page. No
    number on the page comes from elsewhere: another constant gives other numbers (tests/constructions/test_truths.py).
    """

    name: str
    kind: Kind
    paper: str
    place: str
    says: str
    but: str
    holds: str
    measure: Callable[..., Finding]

    @property
    def constants(self) -> dict[str, Any]:
        """The constants of the counterexample by name."""
        return {name: constant.default for name, constant in signature(self.measure).parameters.items()}
