"""The input language: all sequences of at most `length` letters that a path from `start` spells. Edges are numbered in
the order of the file, without those that no such path takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from verify.kernel.floats import Unproved

_EVERY_LENGTH = 1 << 512  # stands for the length where the promise has none (lemma of every length)
_MOST_LENGTH = 1 << 53  # that a promise may say
MOST_LETTERS = 1 << 26  # on all edges, a byte each
_FINITE, _ENDLESS = 1 << 200, 1 << 448


@dataclass(frozen=True, eq=False)
class Edge:
    """From one state to another, by numbers, with any of its letters (mask). distinct: with each of them once at most,
    in one sequence."""

    source: int
    target: int
    letters: np.ndarray
    distinct: bool


@dataclass(frozen=True, eq=False)
class Language:
    """Letters are the ids 0 … tokens − 1, states the numbers 0 … states − 1 in the order in which the file names them,
    the start first."""

    tokens: int
    states: int
    edges: tuple[Edge, ...]
    length: int

    @property
    def endless(self) -> bool:
        return self.length >= _EVERY_LENGTH

    def check_factor(self, number: int) -> None:
        """Of sequences without a last length: a number of the files is smaller than each that grows with the length."""
        if self.endless and abs(number) >= _FINITE:
            raise Unproved("a number of 2^200 and more, of which a promise without a length lets nothing be said")

    def check_end(self, number: int) -> None:
        """An end of an interval is below 2^200, whatever the length, or grows with it, and so is at least 2^448.

        A least end that grows falls, a largest one rises: what is added up does not cancel (Ends.sums_of_least_ends).
        """
        if self.endless and _FINITE <= abs(number) < _ENDLESS:
            raise Unproved("a bound of 2^200 and more, of which a promise without a length lets nothing be said")

    @cached_property
    def leaving(self) -> dict[int, list[Edge]]:
        """The edges that leave a state, of those that leave some; so whoever goes along edges looks at no others."""
        found: dict[int, list[Edge]] = {}
        for edge in self.edges:
            found.setdefault(edge.source, []).append(edge)
        return found

    @cached_property
    def used(self) -> np.ndarray:
        """The letters that a sequence can hold (mask)."""
        return np.any([np.zeros(self.tokens, dtype=bool), *(e.letters for e in self.edges)], axis=0)

    def spelled(self, path: Sequence[tuple[int, int]]) -> list[int]:
        """The letters of a sequence, of which a path says each edge, by its number, and the letter; Unproved where it
        is none."""
        state = 0
        for i, a in path:
            edge = self.edges[i] if i < len(self.edges) else None
            if edge is None or edge.source != state or a >= self.tokens or not edge.letters[a]:
                raise Unproved(f"edge {i} does not lead on from state {state} by letter {a}")
            state = edge.target
        once = [step for step in path if self.edges[step[0]].distinct]
        if not 0 < len(path) <= self.length or len(set(once)) < len(once):
            raise Unproved("a text that is empty, too long, or has a letter twice on an edge of distinct ones")
        return [a for _, a in path]

    def bound_total(
        self, amounts: np.ndarray, cost: Fraction, heights: Sequence[Fraction], charged: Sequence[int]
    ) -> Fraction:
        """A bound on Σ_t amounts[letter_t] over every sequence, for whole amounts ≥ 0.

        Lemma of totals, with a potential (Potential.potential): let φ ≥ 0 be the height of each state, and let
        amounts[a] ≤ cost + φ(source) − φ(target) + w_e(a) for every letter a of every edge e, where w_e = 0 but for
        edges that are `charged` and distinct. The φ add up to φ(start) − φ(end) ≤ φ(start), and each letter of a
        distinct edge is charged once. So the total is at most length·cost + φ(start) + Σ_e Σ_a max(w_e(a), 0).

        Where the promise has no length (`length` is 2^512), this bounds longer sequences too, however small the cost.
        Amounts are whole, and on a cycle of n <= states edges without a charge at most n·cost in sum. If cost is less
        than 1/states, that is 0: without such cycles, which add nothing, a sequence has at most states letters between
        two charges, of which there are fewer than 2^27, so it is no longer than 2^512. If cost is more, the bound is
        above 2^448, as what grows with the length is (`check_end`).
        """
        if len(heights) != self.states or min(heights) < 0 or cost < 0:
            raise Unproved(f"a potential of {len(heights)} heights, expected {self.states} that are not negative")
        total = self.length * cost + heights[0]
        for i, edge in enumerate(self.edges):
            room = cost + heights[edge.source] - heights[edge.target]
            # of whole numbers, what is above the floor of `room` is above it
            over = amounts[edge.letters & (amounts > math.floor(room))].tolist()
            if over and not (edge.distinct and i in charged):
                raise Unproved(f"on edge {i} of the language a letter adds more than the potential falls")
            total += sum(over) - len(over) * room
        return total


def parse(promise: dict) -> Language:
    """The language of a promise; Unproved where it is none."""
    data, length = promise["language"], promise["length"]
    tokens = data["tokens"]
    length = _EVERY_LENGTH if length is None else length
    if promise["length"] is not None and (type(length) is not int or not 1 <= length < _MOST_LENGTH):
        raise Unproved(f"the promise has the length {length!r:.30}, expected one below 2^53, or none")
    if type(tokens) is not int or not 1 <= tokens <= 1 << 20:
        raise Unproved(f"the language has {tokens!r:.30} letters")
    if set(data) != {"tokens", "start", "edges"}:
        raise Unproved("the language has other entries than tokens, start and edges")
    if len(data["edges"]) * tokens > MOST_LETTERS:
        raise Unproved(f"the language has {len(data['edges'])} edges × {tokens} letters, more than {MOST_LETTERS}")
    names: dict[str, int] = {}

    def state(name: object) -> int:
        if type(name) is not str:
            raise Unproved(f"the language has a state {name!r:.30}, whose name is no text")
        return names.setdefault(name, len(names))

    state(data["start"])
    edges = []
    for entry in data["edges"]:
        if set(entry) != {"from", "to", "tokens", "distinct"} or type(entry["distinct"]) is not bool:
            raise Unproved("an edge of the language has other entries than from, to, tokens and distinct")
        source, target = state(entry["from"]), state(entry["to"])
        letters = np.zeros(tokens, dtype=bool)
        for first, last in entry["tokens"]:
            if type(first) is not int or type(last) is not int or not 0 <= first <= last < tokens:
                raise Unproved(f"an edge of the language has the letters {first!r:.20} to {last!r:.20}")
            letters[first : last + 1] = True
        edges.append(Edge(source, target, letters, entry["distinct"]))
    found = _reached(Language(tokens, len(names), tuple(edges), length))
    if not found.used.any():
        raise Unproved("the language holds no letter")
    return found


def _reached(language: Language) -> Language:
    """Its edges that have letters and leave a state to which fewer than `length` letters lead: no sequence takes
    others, and what is said of a letter of theirs would be said of nothing.
    """
    seen, newest, left = {0}, {0}, language.length - 1
    while newest and left:
        newest = {e.target for s in newest for e in language.leaving.get(s, ()) if e.letters.any()} - seen
        seen |= newest
        left -= 1
    return replace(language, edges=tuple(e for e in language.edges if e.source in seen and e.letters.any()))
