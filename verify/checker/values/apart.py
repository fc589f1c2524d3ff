"""States that nothing tells apart (lemma of moved states)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def told_apart(outputs: Sequence[Hashable], moves: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(for each state its class, a state of each class): of one class are states whose outputs are equal, after any
    moves. Classes are numbered by their first states.
    """
    which = _numbers(outputs)
    while True:
        finer = _numbers([(which[s], *(which[move[s]] for move in moves)) for s in range(len(outputs))])
        if finer == which:
            return which, [which.index(k) for k in range(max(which) + 1)]
        which = finer


def _numbers(keys: Sequence) -> list[int]:
    found: dict = {}
    return [found.setdefault(key, len(found)) for key in keys]
