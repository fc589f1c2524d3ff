"""Whether the language asks a task's questions: a proof about what never comes is no proof of an answer.

For each question one sequence is searched for that comes to it: of the language, of its length, no letter twice on a
distinct edge. What the search finds is then held to the task's own definition in plain code, so that a mistake in the
search, or in the patterns that it is given (`questions`), can only reject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.paths import OVER, Asking, Known
from verify.checker.tasks.task_forms import States
from verify.checker.values.language import EVERY_LENGTH, Edge, Language

MOST_STEPS = 1 << 21  # of the search for all questions of a task

Place: TypeAlias = Any
"""Where a walk is: hashable."""
Node = tuple[str, Place, tuple]
"""The state of the language, where the walk is, and how many letters of each class each distinct edge has taken."""


class NeverAsked(Rejected):
    """The task asks nothing, in no sequence of the language."""


class Walk(Protocol):
    """What is remembered of a sequence on the way to a question. told: a number for each letter, equal for letters
    that make no difference to it."""

    @property
    def told(self) -> np.ndarray: ...

    def begin(self) -> Place: ...

    def after(self, place: Place, letter: int) -> Iterable[Place]:
        """Where it may be after one more letter."""
        ...

    def goal(self, place: Place) -> Hashable | None:
        """Which of the goals is reached there."""
        ...

    def right(self, goal: Hashable) -> int | None:
        """The letter that the task must then call right; None for any."""
        ...


class Pattern:
    """Sets of letters in turn, None for all; a set that is `many` stands for any number of its letters."""

    def __init__(self, letters: int, items: Iterable[tuple[np.ndarray | None, bool]], right: int | None):
        self._right, self.told = right, np.zeros(letters, dtype=np.int64)
        self._items: list[tuple[np.ndarray | None, bool]] = []
        masks: dict[bytes, np.ndarray] = {}
        for ids, many in items:
            if ids is None:
                self._items.append((None, many))
                continue
            key = ids.tobytes()
            if key not in masks:
                masks[key] = np.zeros(letters, dtype=bool)
                masks[key][ids] = True
                self.told = 2 * self.told + masks[key]
            self._items.append((masks[key], many))

    def begin(self) -> int:
        return 0

    def after(self, place: int, letter: int) -> list[int]:
        found = []
        while place < len(self._items):
            mask, many = self._items[place]
            if mask is None or mask[letter]:
                found.append(place if many else place + 1)
            if not many:
                break
            place += 1
        return found

    def goal(self, place: int) -> int | None:
        return 0 if place == len(self._items) else None

    def right(self, goal: Hashable) -> int | None:
        return self._right


@dataclass(frozen=True, eq=False)
class Automaton:
    """Each letter that some state of an automaton answers is a goal."""

    machine: States

    @property
    def told(self) -> np.ndarray:
        return self.machine.kinds

    def begin(self) -> int:
        return self.machine.start

    def after(self, place: int, letter: int) -> list[int]:
        state = int(self.machine.following[place, self.machine.kinds[letter]])
        return [] if state < 0 else [state]

    def goal(self, place: int) -> int | None:
        answer = int(self.machine.answers[place])
        return None if answer < 0 else answer

    def right(self, goal: Hashable) -> int | None:
        return goal  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Controlled:
    """A machine over open letters, whichever they are. goals: which one each control is; rights: their letters."""

    machine: Asking
    goals: Callable[[Known], Hashable | None]
    rights: dict[Hashable, int] = field(default_factory=dict)

    @property
    def told(self) -> np.ndarray:
        return self.machine.kinds

    def begin(self) -> Known:
        return self.machine.begin()

    def after(self, place: Known, letter: int) -> list[Known]:
        known = self.machine.step(place, int(self.machine.kinds[letter]), 0)
        return [] if known is OVER else [known]

    def goal(self, place: Known) -> Hashable | None:
        return self.goals(place)

    def right(self, goal: Hashable) -> int | None:
        return self.rights.get(goal)


@dataclass(frozen=True, eq=False)
class Question:
    """says: for each goal how "no sequence …" goes on; ways: walks, tried in turn until each goal is reached.

    anywhere: whether a goal is its right letter, wherever that is right.
    """

    says: Mapping[Any, str]
    ways: Iterable[Walk]
    anywhere: bool = False


class Search:
    """The sequences of a language; all its searches together take a limited number of steps."""

    def __init__(self, language: Language):
        self.language, self.steps = language, 0

    @cached_property
    def alike(self) -> np.ndarray:
        """(V,): one number for letters that stand on the same edges."""
        found = np.zeros(self.language.tokens, dtype=np.int64)
        for letters in self.language.graph.kinds:
            found = np.unique(2 * found + letters, return_inverse=True)[1].reshape(-1)
        return found

    def one_of_each(self, ids: np.ndarray, *told: np.ndarray) -> list[int]:
        """Of letters that the language, and what is told of them, treat alike, one each: what holds of it holds of all
        of them, for exchanging two changes neither the language nor the task."""
        rows = np.stack([self.alike[ids], *(part[ids] for part in told)], axis=1)
        return ids[np.sort(np.unique(rows, axis=0, return_index=True)[1])].tolist()

    def reached(self, walk: Walk, wanted: Collection[Hashable]) -> Iterator[tuple[Hashable, list[int]]]:
        """For each goal of these that can be reached a shortest sequence that does, the longest of them first; none for
        goals that are no longer wanted by then."""
        classes = _Classes(self, walk)
        came: dict[Node, tuple[Node | None, int, int]] = {}  # where nothing has come is no place to come back to
        goals: dict[Hashable, Node] = {}
        begin: Node = (self.language.start, walk.begin(), ())
        here = [begin]
        for _ in range(self.language.length):
            following = []
            for node in here:
                for edge, kind, after in classes.steps(node):
                    self.steps += 1 + len(after[2])  # each letter taken of a distinct edge is looked at again
                    if after not in came:
                        came[after] = None if node is begin else node, edge, kind
                        following.append(after)
                        goal = walk.goal(after[1])
                        if goal in wanted:
                            goals.setdefault(goal, after)
                if self.steps > MOST_STEPS:
                    break
            here = following
            if not here or len(goals) == len(wanted) or self.steps > MOST_STEPS:
                break
        for goal in reversed(goals):
            if goal in wanted:
                yield goal, classes.spelled(_trail(came, goals[goal]))


def _trail(came: dict[Node, tuple[Node | None, int, int]], last: Node) -> list[tuple[int, int]]:
    """The edges and classes of letters on the way to a node."""
    found = []
    node: Node | None = last
    while node is not None:
        node, edge, kind = came[node]
        found.append((edge, kind))
    return found[::-1]


class _Classes:
    """The letters in classes that neither the language nor a walk tells apart."""

    def __init__(self, search: Search, walk: Walk):
        self.walk, self.language, self.edges = walk, search.language, search.language.edges
        kinds, told = np.unique(walk.told, return_inverse=True)
        both = search.alike * len(kinds) + told.reshape(-1)
        _, first, of = np.unique(both, return_index=True, return_inverse=True)
        self.first, self.of = first.tolist(), of.reshape(-1)
        self.sizes = np.bincount(self.of).tolist()
        on: dict[int, list[int]] = {}
        self.leaving: dict[str, list[tuple[int, str, bool, list[int]]]] = {}
        for number, edge in enumerate(self.edges):
            if id(edge.letters) not in on:
                on[id(edge.letters)] = np.flatnonzero(edge.letters[first]).tolist()
            entry = number, edge.target, edge.distinct, on[id(edge.letters)]
            self.leaving.setdefault(edge.source, []).append(entry)
        self._after: dict[tuple[Place, int], list[Place]] = {}

    def steps(self, node: Node) -> Iterable[tuple[int, int, Node]]:
        """(edge, class, where it leads) of each letter that may come next."""
        state, place, used = node
        for edge, target, distinct, kinds in self.leaving.get(state, ()):
            for kind in kinds:
                taken = used
                if distinct:
                    counts = dict(used)
                    counts[edge, kind] = counts.get((edge, kind), 0) + 1
                    if counts[edge, kind] > self.sizes[kind]:
                        continue
                    taken = tuple(sorted(counts.items()))
                for after in self._moved(place, kind):
                    yield edge, kind, (target, after, taken)

    def _moved(self, place: Place, kind: int) -> list[Place]:
        if (place, kind) not in self._after:
            self._after[place, kind] = list(self.walk.after(place, self.first[kind]))
        return self._after[place, kind]

    def spelled(self, trail: list[tuple[int, int]]) -> list[int]:
        """Letters of these classes, on a distinct edge each time another; Rejected where that is no sequence."""
        members: dict[int, list[int]] = {}
        taken: dict[tuple[int, int], int] = {}
        found = []
        for edge, kind in trail:
            own = members.setdefault(kind, []) or np.flatnonzero(self.of == kind).tolist()
            members[kind] = own
            found.append(own[taken.get((edge, kind), 0)])
            if self.edges[edge].distinct:
                taken[edge, kind] = taken.get((edge, kind), 0) + 1
        _check_path(self.language, [self.edges[edge] for edge, _ in trail], found)
        return found


def begun(questions: Iterable[Question]) -> Iterator[Question]:
    """The questions, of which there is one; Rejected at once where a claim names nothing to ask: it would be proved of
    every circuit."""
    own = (question for question in questions if question.says)
    first = next(own, None)
    if first is None:
        raise NeverAsked("the task asks nothing: it names no answer, or nothing to be answered")
    return chain([first], own)


def check_asked(
    search: Search, questions: Iterable[Question], answers: Callable[[list[int]], list[int | None]]
) -> None:
    """Rejected, in one sentence, where no sequence was found that asks one of the questions; answers: the task's
    definition in plain code."""
    for question in questions:
        missing = dict(question.says)
        for walk in question.ways:
            for goal, letters in search.reached(walk, missing):
                right, expected = answers(letters), walk.right(goal)
                if right[-1] is not None and (expected is None or right[-1] == expected):
                    del missing[goal]
                for answer in right if question.anywhere else ():
                    missing.pop(answer, None)
            if not missing:
                break
            if search.steps > MOST_STEPS:
                raise Rejected(f"a search of {MOST_STEPS} steps finds no sequence that {_first(missing)}")
        if missing:
            length = search.language.length
            most = "of the language" if length == EVERY_LENGTH else f"of the language, of at most {length} letters,"
            raise Rejected(f"no sequence {most} {_first(missing)}")


def _first(missing: Mapping[Any, str]) -> str:
    return next(iter(missing.values()))


def _check_path(language: Language, edges: Sequence[Edge], letters: Sequence[int]) -> None:
    """That these edges are a path of the language, and these letters one of its sequences."""
    states = [language.start, *(edge.target for edge in edges)]
    joined = all(edge.source == state for edge, state in zip(edges, states, strict=False))
    held = all(edge.letters[letter] for edge, letter in zip(edges, letters, strict=True))
    once = [(id(edge), letter) for edge, letter in zip(edges, letters, strict=True) if edge.distinct]
    if not (joined and held and len(set(once)) == len(once) and len(letters) <= language.length):
        raise Rejected("what was found to ask the task's question is no sequence of the language")
