"""Levels that permutations move, where one swap of two places a letter is all that a state can do.

A letter's permutation is x = f_1·f_2·…·f_k, first f_1, each f a swap or nothing. Let D_j be the product of the first j
factors of all letters so far. Column 1 is moved by f_1 and is D_1. Column j + 1 is moved by

    D_j · f_(j+1) · D_j^(−1)     with D_j behind the letter,

which is again *one* swap: of the places that D_j takes to those of f_(j+1). Call the product of these C_(j+1). Then
D_(j+1) = C_(j+1)·D_j: one more letter makes it C·(D f D^(−1))·D = C·D·f, and D itself is longer by the first j factors.
So k columns, each moved by one swap a letter, follow any group of permutations, and no answer is a letter late. Each
column but the last must be known at all its places. The last is known at the place where the level starts, and where
the level is reset to v, it is put where D_(k−1) takes it to v.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from compiler.automata.cascade import HOLD, Action, Cascade, Key, Level, disagreement, moved
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import CapMet, Images, images
from compiler.automata.permutations import Permutation, Swap, behind, identity, inverse, swapped, swaps
from compiler.automata.splitting import split
from compiler.automata.table import Table

Held = tuple[Permutation, ...]
"""C_1, …, C_k, each at all places."""


@dataclass(frozen=True, eq=False)
class Turning:
    """Levels of a cascade that differ in their start alone.

    size: places of each; reads: levels whose values before the letter choose what is done; members: the levels.
    factors: by (values of those levels, then the letter) the swaps f_1, …, f_k, None for nothing; resets: the value
    that is set instead, for keys where one is.
    """

    size: int
    reads: tuple[int, ...]
    members: tuple[int, ...]
    factors: Mapping[Key, tuple[Swap | None, ...]]
    resets: Mapping[Key, int]

    @property
    def columns(self) -> int:
        """k."""
        return max(map(len, self.factors.values()))

    @cached_property
    def pairs(self) -> list[list[Swap]]:
        """For each column the swaps that move it: those of the table in the first, and one of the last place, so that
        every place is named; all of them in the others.
        """
        last = (0, self.size - 1)
        first = sorted({last, *(factors[0] for factors in self.factors.values() if factors[0] is not None)})
        every = [(i, j) for i in range(self.size) for j in range(i + 1, self.size)]
        return [first, *[every] * (self.columns - 1)]

    @property
    def start(self) -> Held:
        return (identity(self.size),) * self.columns

    def step(self, held: Held, key: Key) -> Held:
        """The columns behind one more letter, each moved by one swap."""
        found, product = [], identity(self.size)
        for column, factor in zip(held, self.factors[key], strict=True):
            if factor is not None:
                back = inverse(product)
                i, j = sorted((back[factor[0]], back[factor[1]]))
                column = behind(column, swapped(self.size, (i, j)))
            found.append(column)
            product = behind(column, product)
        return tuple(found)

    def product(self, held: Held) -> Permutation:
        """D_k."""
        product = identity(self.size)
        for column in held:
            product = behind(column, product)
        return product


MOST_PLACES = 16  # of a level that is moved by more than one swap


def turning_cascade(found: Images, outputs: tuple[Hashable, ...]) -> Cascade:
    """A cascade of resets and permutations that puts out `outputs`, by state, with as few swaps in a row as `split`
    finds. CapMet, in one sentence, where a level is too large.
    """
    cascade = split(cascade_of(found, outputs, turning=True))
    wrong = disagreement(cascade, found.table, outputs)
    assert wrong is None, f"the cascade parts from its automaton {wrong}"
    large = max((turning.size for turning in turnings(cascade) if turning.columns > 1), default=0)
    if large > MOST_PLACES:
        raise CapMet(f"a level of its cascade moves {large} places, and {MOST_PLACES} are the most")
    return cascade


@lru_cache(maxsize=1)
def turning_of(table: Table) -> Cascade:
    """`turning_cascade` of a minimal table, which is asked for counts and again for swaps."""
    return turning_cascade(images(table), table.outputs)


def turnings(cascade: Cascade) -> list[Turning]:
    """The levels of a cascade that permutations move; those that differ in their start alone are one."""
    found: dict[tuple, list[int]] = {}
    for i, level in enumerate(cascade.levels):
        if level.moves:
            found.setdefault((level.size, level.reads, tuple(level.sets.items())), []).append(i)
    return [_turning(cascade.levels[members[0]], tuple(members)) for members in found.values()]


def _turning(level: Level, members: tuple[int, ...]) -> Turning:
    most = max(len(swaps(move)) for move in level.moves)
    factors = {key: _factors(action, most) for key, action in level.sets.items()}
    resets = {key: action for key, action in level.sets.items() if isinstance(action, int) and action != HOLD}
    return Turning(level.size, level.reads, members, factors, resets)


def _factors(action: Action, most: int) -> tuple[Swap | None, ...]:
    found: Sequence[Swap | None] = swaps(action) if isinstance(action, tuple) else []
    return (*found, *[None] * (most - len(found)))


@dataclass(frozen=True)
class State:
    """held: the columns of each turning; places: for each level that turns the place at which the product of its
    turning is its value; values: of all levels.
    """

    held: tuple[Held, ...]
    places: Mapping[int, int]
    values: Key


class Machine:
    """A cascade run with nothing but swaps and resets: what the circuit of `compiler/automata/turned.py` computes."""

    def __init__(self, cascade: Cascade):
        self.cascade, self.turnings = cascade, turnings(cascade)

    @property
    def start(self) -> State:
        places = {i: self.cascade.levels[i].start for turning in self.turnings for i in turning.members}
        return State(tuple(turning.start for turning in self.turnings), places, self.cascade.start)

    def step(self, state: State, letter: int) -> State:
        values = list(state.values)
        for i, level in enumerate(self.cascade.levels):
            if not level.moves:
                values[i] = moved(values[i], level.sets[_key(level.reads, state.values, letter)])
        held, places = [], dict(state.places)
        for turning, columns in zip(self.turnings, state.held, strict=True):
            key = _key(turning.reads, state.values, letter)
            held.append(turning.step(columns, key))
            product = turning.product(held[-1])
            for i in turning.members:
                if key in turning.resets:
                    places[i] = inverse(product)[turning.resets[key]]
                values[i] = product[places[i]]
        return State(tuple(held), places, tuple(values))

    def output(self, state: State) -> Hashable:
        """What the automaton answers there."""
        return self.cascade.outputs[tuple(state.values[j] for j in self.cascade.reads)]


def _key(reads: tuple[int, ...], values: Key, letter: int) -> Key:
    return (*(values[j] for j in reads), letter)
