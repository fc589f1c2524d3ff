"""A text at whose end a task asks something (claims of `rules.asked`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verify.kernel.language import Language
from verify.kernel.machines import Machine

Path = tuple[tuple[int, int], ...]
_FEW = (2, 16, 256)  # letters of an edge that are tried at first
_MOST_STEPS = 1 << 20


def text_that_asks(language: Language, machine: Machine) -> Path | None:
    """A shortest one of few letters, else of all; None where none is found."""
    own = [] if machine.at is None else [machine.at]
    whole = [np.flatnonzero(e.letters).tolist() for e in language.edges]
    for few in (*_FEW, language.tokens):
        tried = [
            sorted({*letters[:few], *(a for a in own if e.letters[a])}) for e, letters in zip(language.edges, whole)
        ]
        found = _shortest(language, machine, tried)
        if found is not None:
            return found
    return None


def _shortest(language: Language, machine: Machine, letters: Sequence[Sequence[int]]) -> Path | None:
    """Breadth first, over what the language, the machine and edges of distinct letters remember."""
    newest = {(0, machine.start, frozenset[tuple[int, int]]()): Path()}
    seen, steps = set(newest), 0
    for _ in range(language.length):
        todo, newest = newest, {}
        for (state, held, used), path in todo.items():
            for i, edge in enumerate(language.edges):
                for a in letters[i] if edge.source == state else ():
                    moved, steps = machine.step(held, a), steps + 1
                    if moved is None or (i, a) in used:
                        continue
                    if machine.right(moved) is not None:
                        return (*path, (i, a))
                    at = edge.target, moved, used | {(i, a)} if edge.distinct else used
                    if at not in seen:
                        seen.add(at)
                        newest[at] = (*path, (i, a))
            if steps > _MOST_STEPS:
                return None
        if not newest:
            return None
    return None
