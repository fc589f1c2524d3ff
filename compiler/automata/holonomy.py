"""A cascade of resets, and of permutations where the automaton has groups (Krohn and Rhodes 1965, by holonomy).

The automaton is somewhere in a chain of sets Q = C_1 ⊃ C_2 ⊃ … ⊃ {q}, each a *tile* (a largest set of the family
inside) of the one before. The family holds the images of Q and each state alone. A letter a makes a new chain D:
D_1 = Q, and C_i·a lies in D_i throughout.

- D_i is too small for level i: the level has nothing to say.
- C_i·a = D_i: both belong to one class, and a maps the tiles of C_i onto those of D_i. Where there are no groups, the
  tile has the same number in both: *hold*. Else the numbers are *moved* by a permutation.
- C_i·a is less than D_i: the level is *set* to the first tile of D_i that holds C_i·a.

So level i reads the levels above it and the letter, and holds, is moved or is set. A set's level is its height: the
most steps by which sets, and what words make of them, get smaller down to a single state.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from compiler.automata.cascade import HOLD, Action, Cascade, Key, Level, disagreement, moved, shrunk
from compiler.automata.images import CapMet, Images

MOST_PAIRS = 1 << 22  # of sets that are compared
MOST_STEPS = 1 << 18  # states of a cascade × levels × letters


def cascade_of(images: Images, outputs: tuple[Hashable, ...], turning: bool = False) -> Cascade:
    """The smaller of two cascades that put out `outputs`, by state; ValueError where the automaton has a group.

    A level that has nothing to say holds in one, and goes back to its first value in the other. turning: whether
    levels may be moved by permutations; then every automaton has one. Its output is a function of the levels behind
    the letter.
    """
    if images.permutations and not turning:
        raise ValueError("the automaton has a group, and only one without is a cascade of resets")
    found = []
    chains = _Chains(images)
    for idle in (HOLD, 0):
        cascade = shrunk(_unrolled(chains, outputs, idle, turning))
        wrong = disagreement(cascade, images.table, outputs)
        assert wrong is None, f"the cascade parts from its automaton {wrong}"
        found.append(cascade)
    return min(found, key=_entries)


def _entries(cascade: Cascade) -> int:
    return sum(len(level.sets) for level in cascade.levels) + len(cascade.outputs)


class _Chains:
    """The sets of an automaton as chains of tiles, and how letters move them."""

    def __init__(self, images: Images):
        self.images, self.table = images, images.table
        self.sets = [frozenset(s) for s in images.sets]
        if len(self.sets) ** 2 > MOST_PAIRS:
            raise CapMet(f"words lead to {len(self.sets)} sets of its states, and {int(MOST_PAIRS**0.5)} are the most")
        self.place = {s: i for i, s in enumerate(self.sets)}

    @cached_property
    def _inside(self) -> list[list[int]]:
        """For each set the sets of the family strictly inside it, the largest first."""
        bits = [sum(1 << s for s in held) for held in self.sets]
        order = sorted(range(len(bits)), key=lambda i: -len(self.sets[i]))
        return [[j for j in order if bits[j] & ~mine == 0 and bits[j] != mine] for mine in bits]

    @cached_property
    def height(self) -> list[int]:
        """For each set how many levels lie below it: the same for all sets of a class."""
        known: dict[int, int] = {}
        images = self.images

        def below(kind: int) -> set[int]:
            found = set()
            for number in images.members[kind]:
                found |= {images.kind[j] for j in (*self._inside[number], *images.moves[number])}
            return found - {kind}

        for first in images.members:
            waiting = [first]
            while waiting:
                kind = waiting[-1]
                if kind in known:
                    waiting.pop()
                    continue
                if len(self.sets[images.members[kind][0]]) == 1:
                    known[kind] = 0
                    continue
                missing = [other for other in below(kind) if other not in known]
                if missing:
                    waiting += missing
                else:
                    known[kind] = 1 + max(known[other] for other in below(kind))
        return [known[kind] for kind in images.kind]

    @cached_property
    def levels(self) -> int:
        return self.height[0]

    def level(self, number: int) -> int:
        """At which level a set is taken apart, from 0 at the top."""
        return self.levels - self.height[number]

    @cached_property
    def tiles(self) -> list[tuple[int, ...]]:
        """The tiles of each set, numbered alike for all sets of a class."""
        found: list[tuple[int, ...]] = [()] * len(self.sets)
        for sets in self.images.members.values():
            first = sets[0]
            largest: list[int] = []
            for j in self._inside[first]:
                if not any(self.sets[j] < self.sets[tile] for tile in largest):
                    largest.append(j)
            order = self.images.order
            for number in sets:
                to = dict(zip(order[first], order[number], strict=True))
                found[number] = tuple(self.place[frozenset(to[s] for s in self.sets[tile])] for tile in largest)
        return found

    def moved(self, number: int, letter: int) -> int:
        return self.images.moves[number][letter]

    def idles(self, letter: int) -> bool:
        """Whether a letter leaves every state as it is."""
        return all(row[letter] == s for s, row in enumerate(self.table.following))

    def chain(self, held: Key) -> list[int]:
        """C_1 … and the last, {q}: which set each level takes apart."""
        chain = [0]
        for i, value in enumerate(held):
            here = chain[-1]
            chain.append(self.tiles[here][value] if self.level(here) == i else here)
        return chain

    def first_tile(self, number: int, inside: int) -> int:
        """The first tile of a set that holds another one."""
        return next(k for k, tile in enumerate(self.tiles[number]) if self.sets[inside] <= self.sets[tile])

    def start(self) -> Key:
        """Where each level begins: a chain that holds the start."""
        held: Key = ()
        for i in range(self.levels):
            here = self.chain(held)[-1]
            alone = self.place[frozenset([self.table.start])]
            held = (*held, self.first_tile(here, alone) if self.level(here) == i else 0)
        return held

    def turned(self, number: int, letter: int) -> Action:
        """How a letter that permutes a class moves the numbers of a set's tiles; HOLD where it leaves them."""
        to = {tile: k for k, tile in enumerate(self.tiles[self.moved(number, letter)])}
        found = tuple(to[self.moved(tile, letter)] for tile in self.tiles[number])
        return HOLD if found == tuple(range(len(found))) else found

    def step(self, held: Key, letter: int, idle: Key) -> tuple[Action, ...]:
        """What each level does at a letter. idle: for those with nothing to say."""
        before = self.chain(held)
        found: list[Action] = []
        here = 0
        for i, own in enumerate(held):
            to = self.moved(before[i], letter)
            if self.level(here) > i:
                found.append(idle[i])
            elif to == here:
                found.append(self.turned(before[i], letter))
                here = self.tiles[here][moved(own, found[-1])]
            else:
                first = self.first_tile(here, to)
                found.append(first)
                here = self.tiles[here][first]
        return tuple(found)


def _unrolled(chains: _Chains, outputs: tuple[Hashable, ...], idle: int, after: bool) -> Cascade:
    """All that the levels can hold, from the start on, as tables; value 0 is where each level begins."""
    start = chains.start()
    rest = start if idle != HOLD else (HOLD,) * len(start)
    swapped = lambda key: tuple(_swapped(v, first) for v, first in zip(key, start, strict=True))
    waiting, seen = [start], {start}
    sets: list[dict[Key, Action]] = [{} for _ in start]
    answers: dict[Key, Hashable] = {}
    for held in waiting:
        (state,) = chains.sets[chains.chain(held)[-1]]
        key = swapped(held)
        if after:
            answers[key] = outputs[state]
        for letter in range(len(chains.table.letters)):
            if not after:
                answers[(*key, letter)] = outputs[chains.table.following[state][letter]]
            done: tuple[Action, ...] = (HOLD,) * len(held) if chains.idles(letter) else chains.step(held, letter, rest)
            for i, action in enumerate(done):
                sets[i][(*key[:i], letter)] = action
            to = tuple(map(moved, held, done))
            if to not in seen:
                seen.add(to)
                waiting.append(to)
        if len(seen) * len(start) * len(chains.table.letters) > MOST_STEPS:
            raise CapMet(f"its {len(start)} levels together have more than {len(seen) - 1:,} states")
    levels = tuple(_level(i, by, 1 + max(key[i] for key in answers), start[i]) for i, by in enumerate(sets))
    return Cascade(levels, tuple(range(len(start))), answers, after)


def _level(i: int, by: dict[Key, Action], size: int, first: int) -> Level:
    """Level i with so many values, and one for each tile that a permutation moves; `first` and 0 are exchanged.

    The number of tiles depends on the levels above: behind some of their values it can be `first` or less. So a
    permutation moves all values of the level before any are exchanged.
    """
    permutations = [action for action in by.values() if isinstance(action, tuple)]
    size = max([size, *(max(len(action), 1 + first) for action in permutations)])

    def whole(action: Action) -> Action:
        if not isinstance(action, tuple):
            return _swapped(action, first)
        action = (*action, *range(len(action), size))
        return tuple(_swapped(action[_swapped(value, first)], first) for value in range(size))

    return Level(size, tuple(range(i)), {key: whole(action) for key, action in by.items()})


def _swapped(value: int, first: int) -> int:
    """The values with `first` and 0 exchanged."""
    return first if value == 0 else 0 if value == first else value
