"""A cascade as data: each level keeps a small number until the letter, and what stands above, change it.

Level i keeps c_i. At a letter it reads c_j of levels j < i as they were before the letter, and either holds c_i, or
sets it to a value, or moves it by a permutation. A cascade *of resets* has no permutations: latches can do it. The
automaton's output behind the letter is a function of all c_i before it and the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

from compiler.automata.permutations import Permutation
from compiler.automata.table import Table

Key = tuple[int, ...]
Action = int | Permutation
"""HOLD, a value that is set, or a permutation of all values of the level that moves the one that is held."""
HOLD = -1


def moved(own: int, action: Action) -> int:
    """The value of a level behind an action."""
    if isinstance(action, tuple):
        return action[own]
    return own if action == HOLD else action


@dataclass(frozen=True, eq=False)
class Level:
    """size: c is one of 0 … size − 1; reads: the earlier levels that its table reads.

    sets: (values of those levels, then the letter) → what is done; nothing for what never occurs.
    start: c before the first letter.
    """

    size: int
    reads: tuple[int, ...]
    sets: Mapping[Key, Action]
    start: int = 0

    @property
    def moves(self) -> list[Permutation]:
        """The permutations that occur, each once; none of a reset."""
        return list(dict.fromkeys(action for action in self.sets.values() if isinstance(action, tuple)))

    @property
    def resets(self) -> bool:
        """Whether a value is ever set."""
        return any(isinstance(action, int) and action != HOLD for action in self.sets.values())


@dataclass(frozen=True, eq=False)
class Cascade:
    """levels: from the top; reads: the levels that the output is a function of; outputs: by their values before a
    letter, then the letter: the output behind it. With `after`, by their values behind the letter alone.
    """

    levels: tuple[Level, ...]
    reads: tuple[int, ...]
    outputs: Mapping[Key, Hashable]
    after: bool = False

    @property
    def start(self) -> Key:
        return tuple(level.start for level in self.levels)

    @property
    def turns(self) -> bool:
        """Whether a level is moved by permutations, which takes a mixer that can turn its state."""
        return any(level.moves for level in self.levels)

    def step(self, held: Key, letter: int) -> Key:
        """All c behind one more letter."""
        following = []
        for own, level in zip(held, self.levels, strict=True):
            following.append(moved(own, level.sets[(*(held[j] for j in level.reads), letter)]))
        return tuple(following)

    def behind(self, letters: int) -> Cascade:
        """The same where each letter's index is larger by so many."""
        later = lambda by: {(*key[:-1], key[-1] + letters): value for key, value in by.items()}
        levels = tuple(replace(level, sets=later(level.sets)) for level in self.levels)
        return replace(self, levels=levels, outputs=self.outputs if self.after else later(self.outputs))

    def among_others(self) -> Cascade:
        """The same with a letter 0 before its own, which leaves every level as it is: a token that is none of these.

        A level that permutations move has no entry for it: what is not told moves nothing.
        """
        shifted = self.behind(1)
        kept = lambda level: {} if level.moves else {(*key[:-1], 0): HOLD for key in level.sets}
        levels = tuple(replace(level, sets={**kept(level), **level.sets}) for level in shifted.levels)
        return replace(shifted, levels=levels)

    def output(self, held: Key, letter: int) -> Hashable:
        """The output behind one more letter."""
        if self.after:
            held = self.step(held, letter)
            return self.outputs[tuple(held[j] for j in self.reads)]
        return self.outputs[(*(held[j] for j in self.reads), letter)]


def disagreement(cascade: Cascade, table: Table, answers: tuple[Hashable, ...]) -> str | None:
    """Where a cascade and a table part, over all that can be reached: the word, or None where they never do.

    answers: for each state of the table what the cascade must put out there. It shares nothing with what built it.
    """
    start = (cascade.start, table.start)
    words: dict[tuple[Key, int], str] = {start: ""}
    waiting = [start]
    for held, state in waiting:
        for letter, name in enumerate(table.letters):
            word = words[held, state] + name
            try:
                to = (cascade.step(held, letter), table.following[state][letter])
                answer = cascade.output(held, letter)
            except KeyError:
                return f"behind {word!r}, where a table has no entry"
            if answer != answers[to[1]]:
                return f"behind {word!r}"
            if to not in words:
                words[to] = word
                waiting.append(to)
    return None


# Smaller ------------------------------------------------------------------------------------------------------------


def shrunk(cascade: Cascade) -> Cascade:
    """An equal cascade without levels that nobody reads, values that nothing tells apart and reads in vain."""
    while True:
        smaller = _without_reads(cascade)
        smaller = _without_levels(_with_values_joined(smaller))
        if _extent(smaller) == _extent(cascade):
            return smaller
        cascade = smaller


def _extent(cascade: Cascade) -> tuple:
    return (
        tuple((level.size, level.reads) for level in cascade.levels),
        cascade.reads,
    )


def _without_reads(cascade: Cascade) -> Cascade:
    levels = []
    for level in cascade.levels:
        reads, sets = _fewest_reads(cascade, level.reads, level.sets)
        levels.append(replace(level, reads=reads, sets=sets))
    reads, outputs = _fewest_reads(cascade, cascade.reads, cascade.outputs)
    return replace(cascade, levels=tuple(levels), reads=reads, outputs=outputs)


def _fewest_reads(cascade: Cascade, reads: tuple[int, ...], by: Mapping) -> tuple[tuple[int, ...], Mapping]:
    """The table without the levels that it does not depend on; large ones are dropped first."""
    for j in sorted(reads, key=lambda j: (-cascade.levels[j].size, -j)):
        at = reads.index(j)
        less = _joined(by, lambda key: (*key[:at], *key[at + 1 :]))  # noqa: B023
        if less is not None:
            reads, by = (*reads[:at], *reads[at + 1 :]), less
    return reads, by


def _joined(by: Mapping, renamed: Callable[[Key], Key]) -> dict | None:
    """The table by new keys; None where two entries of one new key differ."""
    found: dict = {}
    for key, value in by.items():
        if found.setdefault(renamed(key), value) != value:
            return None
    return found


def _with_values_joined(cascade: Cascade) -> Cascade:
    for j in range(len(cascade.levels)):
        u = 0
        while u < cascade.levels[j].size:
            for v in range(cascade.levels[j].size - 1, u, -1):
                cascade = _value_joined(cascade, j, u, v) or cascade
            u += 1
    return cascade


def _value_joined(cascade: Cascade, j: int, u: int, v: int) -> Cascade | None:
    """The cascade in which level j has u for v, and later values one less; None where something tells them apart."""
    new = lambda value: u if value == v else value - (value > v)

    def renamed(reads: tuple[int, ...], by: Mapping) -> Mapping | None:
        if j not in reads:
            return by
        at = reads.index(j)
        return _joined(by, lambda key: (*key[:at], new(key[at]), *key[at + 1 :]))

    levels = []
    for i, level in enumerate(cascade.levels):
        sets = renamed(level.reads, level.sets)
        if sets is None:
            return None
        if i == j:
            actions = {key: _action_joined(action, u, v, new) for key, action in sets.items()}
            if None in actions.values():
                return None
            level = replace(level, size=level.size - 1, start=new(level.start))
            sets = {key: action for key, action in actions.items() if action is not None}
        levels.append(replace(level, sets=sets))
    outputs = renamed(cascade.reads, cascade.outputs)
    return None if outputs is None else replace(cascade, levels=tuple(levels), outputs=outputs)


def _action_joined(action: Action, u: int, v: int, new: Callable[[int], int]) -> Action | None:
    """The action on values that are one less; None for a permutation that takes u and v apart."""
    if isinstance(action, int):
        return action if action == HOLD else new(action)
    if {action[u], action[v]} != {u, v}:
        return None
    joined = tuple(new(to) for value, to in enumerate(action) if value != v)
    return HOLD if joined == tuple(range(len(joined))) else joined


def _without_levels(cascade: Cascade) -> Cascade:
    """Without levels of one value, and those that neither the output nor a level that is kept reads."""
    needed, waiting = set(), list(cascade.reads)
    while waiting:
        j = waiting.pop()
        if j not in needed:
            needed.add(j)
            waiting += cascade.levels[j].reads
    place = {j: i for i, j in enumerate(sorted(needed))}
    renumbered = lambda reads: tuple(place[j] for j in reads)
    levels = tuple(
        replace(level, reads=renumbered(level.reads)) for j, level in enumerate(cascade.levels) if j in place
    )
    return replace(cascade, levels=levels, reads=renumbered(cascade.reads))
