"""The input language as data: how much of a token function a sequence can add up to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from verify.checker.budget import EDGES, LETTERS, LETTERS_BY_EDGES, LETTERS_ON_EDGES, within
from verify.checker.formats import Rejected, array_exponent
from verify.checker.values.exact import above

_MOST_ROUNDS = 1 << 12
EVERY_LENGTH = 1 << 512  # no check takes a bound into which this number enters (lemma of every length)


@dataclass(frozen=True, eq=False)
class Edge:
    """letters: (V,) bool, the letters that the edge takes; repeats: whether a path can take it twice."""

    source: str
    target: str
    letters: np.ndarray
    distinct: bool
    repeats: bool


@dataclass(frozen=True, eq=False)
class Language:
    """All sequences of at most `length` letters that a path from `start` spells. Letters are the ids 0 … tokens − 1."""

    tokens: int
    start: str
    edges: tuple[Edge, ...]
    length: int

    @cached_property
    def graph(self) -> Graph:
        """Where paths lead."""
        states = sorted({self.start, *(s for e in self.edges for s in (e.source, e.target))})
        place = {state: i for i, state in enumerate(states)}
        ends = np.array([(place[e.source], place[e.target]) for e in self.edges]).reshape(-1, 2)
        kinds = {e.letters.tobytes(): e.letters for e in self.edges}
        at = {key: i for i, key in enumerate(kinds)}
        kind = np.array([at[e.letters.tobytes()] for e in self.edges], dtype=np.int64)
        repeats = np.array([e.repeats for e in self.edges], dtype=bool)
        return Graph(len(states), place[self.start], ends, list(kinds.values()), kind, repeats, self.length)

    @cached_property
    def leaving(self) -> dict[str, list[tuple[int, Edge]]]:
        """The edges from each state, with their places in `edges`."""
        found: dict[str, list[tuple[int, Edge]]] = {}
        for number, edge in enumerate(self.edges):
            found.setdefault(edge.source, []).append((number, edge))
        return found

    @cached_property
    def used(self) -> np.ndarray:
        """The letters that a sequence can hold, as ids."""
        return np.flatnonzero(np.any([np.zeros(self.tokens, dtype=bool), *(e.letters for e in self.edges)], axis=0))

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each letter can stand in a sequence, at most: (V,) float64."""
        found, most = np.zeros(self.tokens), above(self.length)
        for edge in self.edges:
            found[edge.letters] += 1.0 if edge.distinct or not edge.repeats else most
        return np.minimum(found, most)  # where a sum was rounded, one edge alone gives the most

    def total(self, values: np.ndarray) -> Fraction:
        """A bound on the sum of a non-negative letter function over the positions of any sequence.

        The lemma of totals. The positions that an edge takes add up to at most the sum over its letters if it is
        distinct, its
        largest value if it is taken once, and length times that in any case; and the whole to at most length times
        the largest value. `values` are float64 numbers; where their sum is rounded, a share of 2^-20 is added.
        """
        total, largest = Fraction(0), Fraction(0)
        for edge in self.edges:
            taken = values[edge.letters]
            top = Fraction(float(taken.max(initial=0.0)))
            bound = top if not edge.repeats else top * self.length
            if edge.distinct:
                bound = min(bound, _sum_above(taken))
            total, largest = total + bound, max(largest, top)
        return min(total, largest * self.length)


@dataclass(frozen=True, eq=False)
class Graph:
    """The states of a language and its edges, for bounds at each edge: arrays (2, edges) of (least, largest).

    ends: (edges, 2), the states that an edge leads from and to; kinds: the sets of letters, as masks; kind: of each
    edge, which of them; repeats: whether a path can take it twice.
    """

    states: int
    start: int
    ends: np.ndarray
    kinds: list[np.ndarray]
    kind: np.ndarray
    repeats: np.ndarray
    length: int

    @cached_property
    def _order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Edges by where they lead, where each such group begins, and the state it leads to."""
        order = np.argsort(self.ends[:, 1], kind="stable")
        states, first = np.unique(self.ends[order, 1], return_index=True)
        return order, first, states

    def of_letters(self, dense: np.ndarray) -> np.ndarray:
        """Of a function of the letter."""
        found = [(dense[letters].min(), dense[letters].max()) for letters in self.kinds]
        return np.array(found).T[:, self.kind]

    def _arrived(self, here: np.ndarray, known: np.ndarray) -> np.ndarray:
        """At each state, by any edge; known: (2, states), what else may be there."""
        order, first, states = self._order
        found = known.copy()
        found[0, states] = np.minimum(found[0, states], np.minimum.reduceat(here[0, order], first))
        found[1, states] = np.maximum(found[1, states], np.maximum.reduceat(here[1, order], first))
        return found

    def before(self, here: np.ndarray, start: tuple[float, float]) -> np.ndarray:
        """What stood one position back; start: before the first letter."""
        return self._arrived(here, self._only_start(start))[:, self.ends[:, 0]]

    def following(self, sizes: np.ndarray) -> np.ndarray:
        """For each edge the largest of the sizes ≥ 0 of the edges that can come next, 0 if there are none."""
        found = np.zeros(self.states)
        np.maximum.at(found, self.ends[:, 0], sizes)
        return found[self.ends[:, 1]]

    def preceding(self, live: np.ndarray) -> np.ndarray:
        """(edges,): those that a path can take right before one of these."""
        left = np.zeros(self.states, dtype=bool)
        left[self.ends[live, 0]] = True
        return left[self.ends[:, 1]]

    def _only_start(self, start: tuple[float, float]) -> np.ndarray:
        known = np.repeat([[np.inf], [-np.inf]], self.states, axis=1)
        known[:, self.start] = start
        return known

    def followed(self, step: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """What a state that starts at 0 is at each edge, `step` giving it behind an edge from before it (lemma of
        edges).

        None where that is not found in a few rounds, or too large for whole float64 numbers.
        """
        known = self._only_start((0.0, 0.0))
        for positions in range(1, min(self.length, _MOST_ROUNDS) + 1):
            here = step(known[:, self.ends[:, 0]])
            reached = here[0] <= here[1]
            if np.isnan(here).any() or np.abs(here[:, reached]).max(initial=0.0) >= 2.0**52:
                return None  # float64 may round, or an end has no bound
            arrived = self._arrived(here, known)
            if (arrived == known).all() or positions == self.length:
                return np.where(reached, here, 0.0)  # edges that no path reaches: any bounds are true
            known = arrived
        return None

    def added(self, steps: np.ndarray) -> np.ndarray | None:
        """What sums to `steps` at each edge; None where it grows for too long, or one has no bound."""
        if self.length > _MOST_ROUNDS and steps[:, self.repeats].any() or not np.isfinite(steps).all():
            return None
        return self.followed(lambda before: before + steps)


def _sum_above(values: np.ndarray) -> Fraction:
    """The sum, or a little more: whole units add exactly in float64 below 2^53; beyond, 2^-20 covers the rounding."""
    e = array_exponent(values) or 0
    units = float(np.ldexp(values, -e).sum())
    return Fraction(units) * Fraction(2) ** e * (1 if units < 2.0**53 else 1 + Fraction(1, 1 << 20))


def parse(promise: dict) -> Language:
    """The language of a manifest's promise, {"language": {"tokens", "start", "edges"}, "length"}; null is every length.

    Rejected where it is none.
    """
    try:
        data, length = promise["language"], promise["length"]
        tokens, start = data["tokens"], data["start"]
        if type(tokens) is not int or tokens < 1:
            raise Rejected(f"the language has {tokens!r} tokens, expected 1 to {LETTERS}")
        within(tokens, LETTERS, "the language", "tokens")
        length = EVERY_LENGTH if length is None else length
        if type(length) is not int or not (1 <= length <= 1 << 60 or length == EVERY_LENGTH):
            raise Rejected(f"the language's length is {length!r}, expected 1 to 2^60")
        within(len(data["edges"]), EDGES, "the language", "edges")
        raw = [(str(e["from"]), str(e["to"]), e["tokens"], e["distinct"] is True) for e in data["edges"] if e["tokens"]]
    except (KeyError, TypeError) as missing:
        raise Rejected(f"the promise's language is not one: {missing!r}") from missing
    follow: dict[str, set[str]] = {}
    for s, t, _, _ in raw:
        follow.setdefault(s, set()).add(t)
    component, live = _components(follow), _within(follow, str(start), length)
    letters = _Letters(tokens)
    edges = tuple(
        Edge(s, t, letters.of(ranges), distinct, component[s] == component.get(t))
        for s, t, ranges, distinct in raw
        if s in live
    )
    if not edges:
        raise Rejected(f"no letter leads from the language's start {str(start)!r}: it holds nothing to be right on")
    return Language(tokens, str(start), edges, length)


class _Letters:
    """The sets of letters on edges, each made once: a web of edges mostly has few of them."""

    def __init__(self, tokens: int):
        self.tokens, self.taken = tokens, 0
        self.known: dict[tuple, np.ndarray] = {}

    def of(self, ranges: object) -> np.ndarray:
        """(V,) bool, the letters of [first, last] ranges."""
        if not isinstance(ranges, list):
            raise Rejected(f"an edge's token ranges are {ranges!r}, expected a list of [first, last]")
        held = tuple(self._range(entry) for entry in ranges)
        self.taken += sum(last - first + 1 for first, last in held)
        within(self.taken, LETTERS_ON_EDGES, "the language", "letters on its edges")
        if held not in self.known:
            within((len(self.known) + 1) * self.tokens, LETTERS_BY_EDGES, "the language", "letters × sets on its edges")
            self.known[held] = np.zeros(self.tokens, dtype=bool)
            for first, last in held:
                self.known[held][first : last + 1] = True
        return self.known[held]

    def _range(self, entry: object) -> tuple[int, int]:
        if not (isinstance(entry, list) and len(entry) == 2 and all(type(i) is int for i in entry)):
            raise Rejected(f"an edge's token range is {entry!r}, expected [first, last]")
        first, last = entry
        if not 0 <= first <= last < self.tokens:
            raise Rejected(f"an edge's token range is {entry!r}, expected ids from 0 to {self.tokens - 1}")
        return first, last


def _within(follow: dict[str, set[str]], start: str, length: int) -> set[str]:
    """The states from which a path of at most `length` edges can still take one."""
    found, new = {start}, {start}
    for _ in range(length - 1):
        new = {t for s in new for t in follow.get(s, ())} - found
        if not new:
            break
        found |= new
    return found


def _components(follow: dict[str, set[str]]) -> dict[str, int]:
    """The strong component of each state that edges lead from: a path can take an edge twice where both its ends are
    in one. Found by Tarjan's algorithm, in time that grows with the edges, and without recursion.
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    component: dict[str, int] = {}
    for root in follow:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        waiting, path = [root], [(root, iter(follow[root]))]
        while path:
            here, rest = path[-1]
            there = next((t for t in rest if t in follow and t not in component), None)
            if there is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[here])
                if low[here] == order[here]:
                    while here not in component:
                        component[waiting.pop()] = order[here]
            elif there not in order:
                order[there] = low[there] = len(order)
                waiting.append(there)
                path.append((there, iter(follow[there])))
            else:
                low[here] = min(low[here], order[there])
    return component
