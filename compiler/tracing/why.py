"""Why a model answers what it answers: the terms of the winning score, and of its lead over the next.

A score is a sum over lanes, weight · number. The terms are these products, added up over the lanes of each stream of
the circuit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compiler.compiled import Compiled


@dataclass(frozen=True)
class Term:
    """What a stream adds to the winning score, and to its lead over the next; source: its line of the circuit."""

    name: str
    source: str
    score: float
    lead: float


@dataclass(frozen=True)
class Why:
    """answer: the letter with the highest score (or the number of the output); over: the next; lead: by how much.

    terms: what adds to the lead, the largest share first; they sum to it.
    """

    answer: str
    score: float
    over: str | None
    lead: float
    terms: tuple[Term, ...]

    @property
    def rule(self) -> str:
        """The stream that adds most to the lead."""
        return self.terms[0].name if self.terms else ""

    def __str__(self) -> str:
        head = f"{self.answer} scores {self.score:g}"
        if self.over is not None:
            head += f", {self.lead:g} over {self.over}"
        lines = [f"  {t.lead:+g} by {t.name}" + (f" ({t.source})" if t.source else "") for t in self.terms]
        return "\n".join([head, *lines])


def why(compiled: Compiled, lanes: np.ndarray) -> Why:
    """lanes: what the head reads at a position, (lanes,)."""
    head = compiled.head.toarray()
    scores = head @ lanes
    order = np.argsort(-scores, kind="stable")
    best = int(order[0])
    second = int(order[1]) if len(order) > 1 else None
    row = head[best] * lanes
    lead = row - head[second] * lanes if second is not None else row
    found: dict[str, list] = {}
    for i in np.flatnonzero((row != 0) | (lead != 0)):
        place = compiled.lanes.coordinates[i]
        name = place.name if place.stream is None else place.stream.as_written.label
        entry = found.setdefault(name, [place.source, 0.0, 0.0])
        entry[1] += row[i]
        entry[2] += lead[i]
    terms = [Term(name, source, score, part) for name, (source, score, part) in found.items()]
    terms.sort(key=lambda term: -term.lead)
    answer = _names(compiled)
    over = None if second is None else answer(second)
    return Why(answer(best), float(scores[best]), over, float(lead.sum()), tuple(terms))


def _names(compiled: Compiled) -> Callable[[int], str]:
    alphabet, output = compiled.source.alphabet, compiled.core.output
    if alphabet is not None and alphabet.size == output.width:
        return lambda i: alphabet.tokens[i]
    return lambda i: f"output[{i}]" if output.width > 1 else "output"
