"""A level that permutations move, as a few points of smaller sets that its group acts on.

A value of the level is v = u·g: u stands for the orbit of v, g is an element of the group. Points b_1, b_2, … are taken
such that their images b_i·g tell u·g of each u. So the orbit and the images tell v; a move takes the images along, and
a reset to v sets them to those of some g with u·g = v.

Such a set are the cosets H·g of a subgroup H: g' takes H·g to H·g·g'. All sets on which the group acts as one orbit
are of this form. Subgroups are looked for among those that one or two elements generate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from compiler.automata.cascade import Key, Level
from compiler.automata.permutations import Permutation, generated, orbits, swaps

MOST_ELEMENTS = 1 << 10  # of a group whose subgroups are looked for
MOST_PRODUCTS = 1 << 26  # numbers of the table of its products
MOST_PAIRS = 1 << 12  # of elements that generate one
MOST_SETS = 3  # that are taken together
_SMALLEST = 12  # sets of each core that are compared


@dataclass(frozen=True)
class Point:
    """A point of a set: how many there are, which it is before the first letter, and how each move takes them."""

    size: int
    start: int
    moves: Mapping[Permutation, Permutation]


@dataclass(frozen=True)
class Points:
    """orbits: of the level's values; told: for each value its orbit, then the points, in all ways that may be.

    The orbit of the level's start is 0, and the first way of the start is where all points start.
    """

    orbits: int
    points: tuple[Point, ...]
    told: Mapping[int, Sequence[Key]]


def points_of(level: Level) -> Points | None:
    """Points that tell the level with fewer exchanges for a letter; None where none are found."""
    elements = generated(level.moves, level.size, MOST_ELEMENTS)
    if elements is None or len(elements) ** 2 * level.size > MOST_PRODUCTS:
        return None
    group = _Group(elements, level)
    best = group.best()
    most = max(len(swaps(move)) for move in level.moves)
    if best is None or max(action.exchanges for action in best) >= most:
        return None
    return group.points(best)


@dataclass(frozen=True)
class _Action:
    """A set that the group acts on. cosets: (elements,) the coset of each element; core: the elements that move none;
    exchanges: the most that a letter takes.
    """

    cosets: np.ndarray
    core: frozenset[int]
    exchanges: int

    @property
    def size(self) -> int:
        return int(self.cosets.max()) + 1


class _Group:
    """The elements of a level's group, {1} first, and its products as a table."""

    def __init__(self, elements: list[Permutation], level: Level):
        self.level, self.elements = level, np.array(elements)
        numbers = {element: k for k, element in enumerate(elements)}
        self.letters = [numbers[move] for move in level.moves]
        # products[g, h] = first g, then h
        products = np.take_along_axis(self.elements[None], self.elements[:, None], axis=2)
        keys = {element.tobytes(): k for k, element in enumerate(self.elements)}
        self.table = np.array([[keys[np.ascontiguousarray(p).tobytes()] for p in row] for row in products])

    def best(self) -> tuple[_Action, ...] | None:
        """Sets that together tell the element apart from what moves the level: few exchanges, then few points."""
        by_core: dict[frozenset[int], list[_Action]] = {}
        for subgroup in self._subgroups():
            action = self._action(subgroup)
            by_core.setdefault(action.core, []).append(action)
        cost = lambda action: (action.exchanges, action.size)
        first = sorted((min(actions, key=cost) for actions in by_core.values()), key=cost)[:_SMALLEST]
        found = None
        for count in range(1, MOST_SETS + 1):
            for chosen in combinations(first, count):
                if frozenset.intersection(*(action.core for action in chosen)) == {0}:
                    total = (max(action.exchanges for action in chosen), sum(action.size for action in chosen))
                    if found is None or total < found[0]:
                        found = (total, chosen)
        return None if found is None else found[1]

    def _subgroups(self) -> Iterator[tuple[int, ...]]:
        """Subgroups by the elements that they hold, each once."""
        count = len(self.elements)
        pairs = [(g, h) for h in range(count) for g in range(h + 1)]
        step = -(-len(pairs) // MOST_PAIRS)
        seen = set()
        for pair in pairs[::step]:
            subgroup = self._closed(pair)
            if len(subgroup) < count and subgroup not in seen:
                seen.add(subgroup)
                yield subgroup

    def _closed(self, generators: tuple[int, ...]) -> tuple[int, ...]:
        found, waiting = {0}, [0]
        for g in waiting:
            for h in generators:
                to = int(self.table[g, h])
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        return tuple(sorted(found))

    def _action(self, subgroup: tuple[int, ...]) -> _Action:
        cosets = np.full(len(self.elements), -1)
        count = 0
        for g in range(len(self.elements)):
            if cosets[g] < 0:
                cosets[self.table[list(subgroup), g]] = count
                count += 1
        rows = self._moves(cosets)
        core = frozenset(np.flatnonzero((rows == np.arange(count)).all(axis=1)).tolist())
        return _Action(cosets, core, max(len(swaps(tuple(rows[g].tolist()))) for g in self.letters))

    def _moves(self, cosets: np.ndarray) -> np.ndarray:
        """(elements, points): where each element takes each point."""
        first = np.unique(cosets, return_index=True)[1]
        return cosets[self.table[first]].T

    def points(self, actions: tuple[_Action, ...]) -> Points:
        """The fewest points of these sets, greedily, that tell the level."""
        kinds = orbits(self.level.moves, self.level.size, self.level.start)
        values = self.elements[:, [places[0] for places in kinds]]
        moved = [(action, self._moves(action.cosets)) for action in actions]
        every = [(k, point) for k, action in enumerate(actions) for point in range(action.size)]
        chosen: list[tuple[int, int]] = []
        seen = lambda more: np.stack([moved[k][1][:, point] for k, point in more], axis=1)
        while not chosen or not _tells(seen(chosen), values):
            chosen.append(max(every, key=lambda point: len(np.unique(seen([*chosen, point]), axis=0))))
        chosen.sort()
        told: dict[int, dict[Key, None]] = {}
        for row, key in zip(values.tolist(), seen(chosen).tolist(), strict=True):
            for kind, value in enumerate(row):
                told.setdefault(value, {})[(kind, *key)] = None
        letters = {tuple(self.elements[g].tolist()): g for g in self.letters}
        points = []
        for k, point in chosen:
            moves = {move: tuple(moved[k][1][g].tolist()) for move, g in letters.items()}
            points.append(Point(actions[k].size, point, moves))
        return Points(len(kinds), tuple(points), {value: list(keys) for value, keys in told.items()})


def _tells(seen: np.ndarray, values: np.ndarray) -> bool:
    """Whether equal rows have equal values."""
    both = np.concatenate([seen, values], axis=1)
    return len(np.unique(both, axis=0)) == len(np.unique(seen, axis=0))
