"""A text at whose end a task asks something (claims of `rules.asked`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from verify.kernel.language import Language
from verify.kernel.machines import Machine

Step = tuple[int, int]  # an edge and one of its letters
Path = list[Step]
_FEW = (2, 16, 256)  # letters of an edge that are tried at first
_MOST_STEPS = 1 << 20


def text_that_asks(language: Language, machine: Machine) -> Path | None:
    """A shortest one of few letters, else of all; None where none is found."""
    own = [] if machine.at is None else [machine.at]
    whole = [np.flatnonzero(e.letters).tolist() for e in language.edges]
    for few in (*_FEW, language.tokens):
        tried: dict[int, list[Step]] = {}
        for i, (edge, letters) in enumerate(zip(language.edges, whole, strict=True)):
            taken = sorted({*letters[:few], *(a for a in own if edge.letters[a])})
            tried.setdefault(edge.source, []).extend((i, a) for a in taken)
        found = _shortest(language, machine, tried)
        if found is not None:
            return found
    return None


def _shortest(language: Language, machine: Machine, tried: Mapping[int, Sequence[Step]]) -> Path | None:
    """Breadth first, over what the language, the machine and edges of distinct letters remember. tried: the steps from
    each state."""
    begin = 0, machine.start, frozenset[Step]()
    came: dict[tuple, tuple[tuple, Step]] = {}  # how each was reached first
    newest, steps = [begin], 0
    for _ in range(language.length):
        todo, newest = newest, []
        for here in todo:
            state, held, used = here
            for step in tried.get(state, ()):
                (i, a), steps = step, steps + 1
                moved, edge = machine.step(held, a), language.edges[i]
                if moved is None or step in used:
                    continue
                if machine.right(moved) is not None:
                    return [*_way(came, begin, here), step]
                after = edge.target, moved, used | {step} if edge.distinct else used
                if after not in came and after != begin:
                    came[after] = here, step
                    newest.append(after)
            if steps > _MOST_STEPS:
                return None
        if not newest:
            return None
    return None


def _way(came: Mapping[tuple, tuple[tuple, Step]], begin: tuple, here: tuple) -> Path:
    """The steps from the beginning to here."""
    found = []
    while here != begin:
        here, step = came[here]
        found.append(step)
    return found[::-1]
