"""The heaviest walk: how much a flag can collect between two resets, along any walk of the input language.

best(node) is the largest count that a walk of at most n steps can bring to a node. It starts at 0 in the start node and
nowhere else, and each round lets every step add what its flag may be, or start again at 0 where its reset is certain.
After max_length rounds, or as soon as a round changes nothing, it bounds every count of every sequence. The sum over
all edges of the language, which the masses of domains take, forgets that a walk cannot be everywhere, and resets.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis.walks import DomainOf, Step, TooManyWalks, walks
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream, constant

_MOST_WORK = 1 << 22  # steps looked at, over all rounds
_FEW = 32  # steps that cost as much as the round itself


def heaviest_walk(
    language: InputLanguage | None, domain_of: DomainOf, max_length: int, when: Stream, reset: Stream | None = None
) -> float:
    """A bound on the sum of `when` (one lane, never negative) since `reset` last held; infinity where none is found."""
    if language is None:
        return np.inf
    try:
        steps = [
            s for leaving in walks(language, domain_of, (when, _NEVER if reset is None else reset)) for s in leaving
        ]
    except TooManyWalks:
        return np.inf
    return _heaviest(steps, max_length)


_NEVER = constant(0)


def _heaviest(steps: list[Step], max_length: int) -> float:
    if not steps:
        return 0.0
    source, target = (np.array([getattr(s, end) for s in steps]) for end in ("source", "target"))
    weight = np.array([float(s.values[0][0][1]) for s in steps])
    if not np.isfinite(weight).all():
        return np.inf
    again = np.array([s.values[1][0][0] >= 1 for s in steps])
    best = np.full(1 + max(source.max(), target.max()), -np.inf)
    best[0] = 0.0
    rounds = min(max_length, _MOST_WORK // (len(steps) + _FEW))
    for _ in range(rounds):
        brought = np.where(again, np.where(best[source] >= 0, 0.0, -np.inf), best[source] + weight)
        better = best.copy()
        np.maximum.at(better, target, brought)
        if (better == best).all():
            return float(best.max())
        best = better
    return float(best.max()) if rounds == max_length else np.inf
