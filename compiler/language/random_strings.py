"""Random strings of a given length of an input language, which do not end where another path would have gone on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx
import numpy as np

from compiler.language.edge import Edge

_MOST_GIVEN_UP = 1 << 18  # tokens of one string that led nowhere
_MOST_FOLLOWED = 1 << 22  # edges, in the search for a period
Configuration = tuple[str, int, tuple[int, ...]]  # (state, tokens left, how often each distinct edge ahead was taken)


class RandomStrings:
    """Strings of exactly this length: at each step an edge, then one of its tokens, uniformly among those that go on.

    An edge goes on where some path behind it reaches the length. The tokens of an edge differ in nothing else, so that
    depends on its configuration alone. A path that cannot go on is gone back, and no such configuration entered again.
    leaving: of each state the edges with tokens that leave it, by their numbers, each with its tokens in order.
    """

    def __init__(
        self, start: str, edges: Sequence[Edge], leaving: Mapping[str, list[tuple[int, Edge, list[int]]]], length: int
    ):
        self.start, self.edges, self.leaving, self.length = start, edges, leaving, length
        self._spent_from = {edge.source for edge in edges if edge.distinct}
        self._dead: set[Configuration] = set()
        self._ahead: _Ahead | None = None  # most languages never need it

    def draw(self, rng: np.random.Generator) -> list[int]:
        """One string; ValueError where the language has none of this length, or none is found."""
        state, given_up = self.start, 0
        path: list[tuple[str, int, int]] = []  # (state, edge, token)
        used: dict[int, set[int]] = {i: set() for i, edge in enumerate(self.edges) if edge.distinct}
        while len(path) < self.length:
            step = self._step(rng, state, self.length - len(path), used)
            if step is not None:
                edge, token = step
                path.append((state, edge, token))
                if edge in used:
                    used[edge].add(token)
                state = self.edges[edge].target
                continue
            self._ahead = self._ahead or _Ahead(self.start, self.edges)
            self._dead.add(self._configuration(state, self.length - len(path), used))
            given_up += 1
            if not path or not self._ahead.may_follow(self.start, self.length):
                raise ValueError(f"no sequence of length {self.length} is in the input language")
            if given_up > _MOST_GIVEN_UP:
                raise ValueError(
                    f"no sequence of length {self.length} was found in {_MOST_GIVEN_UP} steps back; whether the input "
                    "language has one is not known"
                )
            state, edge, token = path.pop()
            if edge in used:
                used[edge].remove(token)
        return [token for _, _, token in path]

    def _step(
        self, rng: np.random.Generator, state: str, left: int, used: dict[int, set[int]]
    ) -> tuple[int, int] | None:
        """A random (edge, token) behind which the rest may follow, for all that is known."""
        options = self.leaving.get(state, [])
        if state in self._spent_from:
            fresh = ((i, e, [t for t in ids if t not in used[i]] if e.distinct else ids) for i, e, ids in options)
            options = [option for option in fresh if option[2]]
        while options:
            at = int(rng.integers(len(options)))
            i, edge, tokens = options[at]
            if self._goes_on(i, edge, left - 1, used):
                return i, tokens[rng.integers(len(tokens))]
            options = options[:at] + options[at + 1 :]
        return None

    def _goes_on(self, i: int, edge: Edge, left: int, used: dict[int, set[int]]) -> bool:
        if self._ahead is None:
            return True
        behind = self._configuration(edge.target, left, used, i)
        return self._ahead.may_follow(edge.target, left) and behind not in self._dead

    def _configuration(self, state: str, left: int, used: dict[int, set[int]], taken: int = -1) -> Configuration:
        """taken: an edge that is taken once more."""
        assert self._ahead is not None
        return state, left, tuple(len(used[i]) + (i == taken) for i in self._ahead.distinct[state])


class _Ahead:
    """Behind which states so many tokens may follow, for all that paths tell which may spend a token twice."""

    def __init__(self, start: str, edges: Sequence[Edge]):
        self._edges = [edge for edge in edges if edge.tokens]
        graph = nx.DiGraph((edge.source, edge.target) for edge in self._edges)
        graph.add_node(start)
        ahead = {state: {state} | nx.descendants(graph, state) for state in graph}
        self.distinct = {
            state: tuple(i for i, e in enumerate(edges) if e.tokens and e.distinct and e.source in ahead[state])
            for state in graph
        }
        self._most = {state: self._bound(ahead[state]) for state in graph}
        self._sets = [frozenset(graph)]  # the states behind which 0, 1, … tokens may follow
        self._first: dict[frozenset[str], int] = {self._sets[0]: 0}
        self._period: int | None = None  # 0 where none is found

    def may_follow(self, state: str, left: int) -> bool:
        """False only where no `left` tokens follow."""
        most = self._most[state]
        if most is not None and left > most:
            return False
        while self._period is None and len(self._sets) <= left:
            self._one_more()
        if left < len(self._sets):
            return state in self._sets[left]
        if not self._period:
            return True
        start = len(self._sets) - self._period
        return state in self._sets[start + (left - start) % self._period]

    def _one_more(self) -> None:
        found = frozenset(edge.source for edge in self._edges if edge.target in self._sets[-1])
        if found in self._first:
            self._period = len(self._sets) - self._first[found]
        elif len(self._sets) * len(self._edges) > _MOST_FOLLOWED:
            self._period = 0
        else:
            self._first[found] = len(self._sets)
            self._sets.append(found)

    def _bound(self, states: set[str]) -> int | None:
        """How many tokens may follow at most; None where a cycle spends none.

        Between two tokens that are spent, and before and behind them, lies a path without a cycle.
        """
        inside = [edge for edge in self._edges if edge.source in states]
        free = nx.DiGraph((edge.source, edge.target) for edge in inside if not edge.distinct)
        if not nx.is_directed_acyclic_graph(free):
            return None
        spent = sum(len(edge.tokens) for edge in inside if edge.distinct)
        return spent + (spent + 1) * nx.dag_longest_path_length(free)
