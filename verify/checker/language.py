"""The input language as data: how much of a token function a sequence can add up to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from verify.checker.formats import Rejected, array_exponent


@dataclass(frozen=True, eq=False)
class Edge:
    """letters: (V,) bool, the letters that the edge takes; repeats: whether a walk can take it twice."""

    source: str
    target: str
    letters: np.ndarray
    distinct: bool
    repeats: bool


@dataclass(frozen=True, eq=False)
class Language:
    """All sequences of at most `length` letters that a walk from `start` spells. Letters are the ids 0 … tokens − 1."""

    tokens: int
    start: str
    edges: tuple[Edge, ...]
    length: int

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each letter can stand in a sequence, at most: (V,) float64."""
        found = np.zeros(self.tokens)
        for edge in self.edges:
            found[edge.letters] += 1.0 if edge.distinct or not edge.repeats else float(self.length)
        return np.minimum(found, float(self.length))

    def mass(self, values: np.ndarray) -> Fraction:
        """A bound on the sum of a non-negative letter function over the positions of any sequence.

        Lemma M. The positions that an edge takes add up to at most the sum over its letters if it is distinct, its
        largest value if it is taken once, and length times that in any case; and the whole to at most length times
        the largest value. `values` must be float64 numbers whose sums are exact or rounded up by no more than 2^-20.
        """
        total, largest = Fraction(0), Fraction(0)
        for edge in self.edges:
            taken = values[edge.letters]
            top = Fraction(float(taken.max(initial=0.0)))
            if not top:
                continue
            bound = top if not edge.repeats else top * self.length
            if edge.distinct:
                bound = min(bound, _sum_above(taken))
            total, largest = total + bound, max(largest, top)
        return min(total, largest * self.length)


def _sum_above(values: np.ndarray) -> Fraction:
    """The sum, or a little more: whole units add exactly in float64 below 2^53; beyond, 2^-20 covers the rounding."""
    e = array_exponent(values) or 0
    units = float(np.ldexp(values, -e).sum())
    return Fraction(units) * Fraction(2) ** e * (1 if units < 2.0**53 else 1 + Fraction(1, 1 << 20))


def parse(promise: dict) -> Language:
    """The language of a manifest's promise, {"language": {"tokens", "start", "edges"}, "length"}.

    Rejected where it is none.
    """
    try:
        data, length = promise["language"], promise["length"]
        tokens, start = data["tokens"], data["start"]
        if type(tokens) is not int or not 1 <= tokens <= 1 << 24:
            raise Rejected(f"the language has {tokens!r} tokens, expected 1 to {1 << 24}")
        if type(length) is not int or not 1 <= length <= 1 << 60:
            raise Rejected(f"the language's length is {length!r}, expected 1 to 2^60")
        raw = [(str(e["from"]), str(e["to"]), e["tokens"], e["distinct"] is True) for e in data["edges"]]
    except (KeyError, TypeError) as missing:
        raise Rejected(f"the promise's language is not one: {missing!r}") from missing
    reach = _reachable([(s, t) for s, t, _, _ in raw])
    edges = tuple(
        Edge(s, t, _letters(ranges, tokens), distinct, s in reach.get(t, set()) or s == t)
        for s, t, ranges, distinct in raw
    )
    return Language(tokens, str(start), edges, length)


def _letters(ranges: list, tokens: int) -> np.ndarray:
    held = np.zeros(tokens, dtype=bool)
    for entry in ranges:
        if not (isinstance(entry, list) and len(entry) == 2 and all(type(i) is int for i in entry)):
            raise Rejected(f"an edge's token range is {entry!r}, expected [first, last]")
        first, last = entry
        if not 0 <= first <= last < tokens:
            raise Rejected(f"an edge's token range is {entry!r}, expected ids from 0 to {tokens - 1}")
        held[first : last + 1] = True
    return held


def _reachable(pairs: list[tuple[str, str]]) -> dict[str, set[str]]:
    """For each state the states that a walk of at least one edge leads to."""
    follow: dict[str, set[str]] = {}
    for source, target in pairs:
        follow.setdefault(source, set()).add(target)
    reach = {}
    for state in follow:
        seen, pending = set(), list(follow[state])
        while pending:
            here = pending.pop()
            if here not in seen:
                seen.add(here)
                pending += follow.get(here, ())
        reach[state] = seen
    return reach
