"""How much a search for a proof may do: a count of steps, so that every machine stops at the same place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from verify.checker.formats import Rejected

LEAST_STEPS = 1 << 20
"""Parts of functions that a proof may add up, and what takes as long: some hundred numbers of a table over several
letters. Arithmetic and meaning take them together, once in each of two ways. A step takes 10 to 40 microseconds of
processor time where many are taken: windows, of which the search was slowest, are stopped after half a minute.
"""
STEPS_OF_A_WEIGHT = 8
"""More of them for each weight that is not 0: recall of 1,024 keys in a vocabulary of 50,257 takes 3,200,000."""


@dataclass
class Effort:
    """steps: taken so far. most: how many may be. weights: how many that are not 0 stand beside."""

    most: int
    steps: int = 0
    weights: int = 0

    @property
    def spent(self) -> bool:
        return self.steps > self.most

    def __str__(self) -> str:
        return (
            f"the search for a proof was stopped after {self.most} steps, which is its budget; "
            "fewer cells, values or letters, or a simpler transition, take fewer steps"
        )


_present: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited(weights: int = 0) -> Iterator[Effort]:
    """Within it `spend` counts, and rejects what is above the budget beside so many weights that are not 0."""
    effort = Effort(LEAST_STEPS + STEPS_OF_A_WEIGHT * weights, weights=weights)
    token = _present.set(effort)
    try:
        yield effort
    finally:
        _present.reset(token)


def weights_beside() -> int:
    """How many weights that are not 0 stand beside what is proved; 0 outside of `limited`."""
    effort = _present.get()
    return 0 if effort is None else effort.weights


def spend(steps: int) -> None:
    """Count steps; Rejected above the limit, if there is one, and at every step from there on."""
    effort = _present.get()
    if effort is not None:
        effort.steps += steps
        if effort.spent:
            raise Rejected(str(effort))
