"""The heaviest path: how much a flag can collect between two resets, along any path of the input language.

best(node) is the largest count that a path of at most n steps can bring to a node. It starts at 0 in the start node and
nowhere else, and each round lets every step add what its flag may be, or start again at 0 where its reset is certain.
After max_length rounds, or as soon as a round changes nothing, it bounds every count of every sequence. The sum over
all edges of the language, which the totals of domains take, forgets that a path cannot be everywhere, and resets.

A round is a matrix over (max, +), if each node has a second entry that is 0 once a path comes there and from which the
resets start. Where a language is small and its sequences are long, the rounds are counted by squares of that matrix.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis.paths import DomainOf, Step, TooManyPaths, Work, paths
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream, constant

_MOST_WORK = 1 << 22  # steps looked at, over all rounds
_FEW = 32  # steps that cost as much as the round itself
_MOST_SQUARED = 1 << 26  # sums formed by squares


def heaviest_path(
    language: InputLanguage | None,
    domain_of: DomainOf,
    max_length: int,
    when: Stream,
    reset: Stream | None = None,
    work: Work | None = None,
) -> float:
    """A bound on the sum of `when` (one lane, never negative) since `reset` last held; infinity where none is found."""
    if language is None:
        return np.inf
    try:
        found = paths(language, domain_of, (when, _NEVER if reset is None else reset), work=work)
    except TooManyPaths:
        return np.inf
    return _heaviest([step for leaving in found for step in leaving], max_length)


_NEVER = constant(0)


def _heaviest(steps: list[Step], max_length: int) -> float:
    if not steps:
        return 0.0
    source, target = (np.array([getattr(s, end) for s in steps]) for end in ("source", "target"))
    weight = np.array([float(s.values[0][0][1]) for s in steps])
    if not np.isfinite(weight).all():
        return np.inf
    again = np.array([s.values[1][0][0] >= 1 for s in steps])
    nodes = 1 + int(max(source.max(), target.max()))
    if max_length > nodes**2 and (2 * nodes) ** 3 * max_length.bit_length() <= _MOST_SQUARED:
        return _by_squares(_round(source, target, weight, again, nodes), max_length)
    best = np.full(nodes, -np.inf)
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


def _round(source: np.ndarray, target: np.ndarray, weight: np.ndarray, again: np.ndarray, nodes: int) -> np.ndarray:
    """What a round adds from an entry to an entry: nodes, then whether a path comes there; −∞ where there is no way."""
    matrix = np.where(np.eye(2 * nodes, dtype=bool), 0.0, -np.inf)
    np.maximum.at(matrix, (np.where(again, nodes + source, source), target), np.where(again, 0.0, weight))
    np.maximum.at(matrix, (nodes + source, nodes + target), 0.0)
    return matrix


def _by_squares(matrix: np.ndarray, rounds: int) -> float:
    """The largest entry of a node after so many rounds from the start."""
    nodes = len(matrix) // 2
    best = np.full(len(matrix), -np.inf)
    best[[0, nodes]] = 0.0
    while rounds:
        if rounds & 1:
            best = (best[:, None] + matrix).max(axis=0)
        rounds >>= 1
        if rounds:
            matrix = np.array([(row[:, None] + matrix).max(axis=0) for row in matrix])
    return float(best[:nodes].max())
