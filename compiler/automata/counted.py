"""A level that powers of one permutation move, where no state turns: a count modulo its order, to a bounded length.

Let g be of order m, and g^k what a letter does. With P the sum of the k of all letters so far, modulo m, the value is
g^P(y): y is where the level starts, and a reset to v latches g^(−P)(v). So resets leave the count alone, and a
remainder takes a threshold for each of its multiples: the length is bounded. Levels above may choose the power, and the
reset; C_2 beside resets is a count modulo 2 and a latch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compiler.automata.cascade import HOLD, Action, Cascade
from compiler.automata.permutations import Permutation, behind, identity
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.language.words import latch

MOST_ORDER = 64
MOST_THRESHOLDS = 1 << 10  # of one remainder: each is two ramps


@dataclass(frozen=True)
class Powers:
    """powers: g^0, g^1, … g^(m − 1), all different."""

    powers: tuple[Permutation, ...]

    @property
    def order(self) -> int:
        return len(self.powers)

    def exponent(self, action: Action) -> int:
        """k of g^k; 0 of what is no permutation."""
        return self.powers.index(action) if isinstance(action, tuple) else 0


def powers_of(moves: Iterable[Permutation]) -> Powers | None:
    """The powers of one permutation that are all of these and no more than they make; None where there is none."""
    moves = list(moves)
    found: dict[Permutation, None] = {identity(len(moves[0])): None}
    waiting = list(found)
    for element in waiting:
        for move in moves:
            if (longer := behind(element, move)) not in found:
                found[longer] = None
                waiting.append(longer)
        if len(found) > MOST_ORDER:
            return None
    every = (_powers(element) for element in found)
    return next((Powers(powers) for powers in every if len(powers) == len(found)), None)


def _powers(element: Permutation) -> tuple[Permutation, ...]:
    powers = [identity(len(element))]
    while (longer := behind(powers[-1], element)) != powers[0]:
        powers.append(longer)
    return tuple(powers)


def orders_of(cascade: Cascade) -> tuple[int, ...] | None:
    """The orders of what moves the levels of a cascade; None where it has a level that no one permutation moves."""
    found = [powers_of(level.moves) for level in cascade.levels if level.moves]
    return None if None in found else tuple(one.order for one in found if one is not None)


def longest_counted(orders: Sequence[int]) -> int:
    """To how many letters counts follow them: each has its multiples as thresholds, and a letter adds order − 1."""
    return min(MOST_THRESHOLDS * order // (order - 1) for order in orders)


def counted(
    places: int, actions: Mapping[int, Action], size: int, number: Stream, starts: Mapping[int, int], name: str
) -> dict[int, Stream]:
    """For each level, by its start, its number behind the letter.

    places: values of the level; actions: what is done, by the number that `number` has; size: how many numbers there
    are.
    """
    powers = powers_of(action for action in actions.values() if isinstance(action, tuple))
    assert powers is not None, "a level that is counted is moved by powers of one permutation"
    exponents = [powers.exponent(actions.get(i, HOLD)) for i in range(size)]
    turned = (number.lookup(exponents).cumsum().named(f"{name}.turns") % powers.order).named(f"{name}.remainder")
    return {i: _level(places, powers, actions, size, number, turned, start, name) for i, start in starts.items()}


def _level(
    places: int,
    powers: Powers,
    actions: Mapping[int, Action],
    size: int,
    number: Stream,
    turned: Stream,
    start: int,
    name: str,
) -> Stream:
    told = lambda place: start if place == 0 else 0 if place == start else place
    at = [[told(power[told(y)]) for y in range(places)] for power in powers.powers]
    sets = [actions.get(i, HOLD) for i in range(size)]
    sets = [HOLD if isinstance(action, tuple) else action for action in sets]
    if all(action == HOLD for action in sets):
        return turned.lookup([row[0] for row in at]).named(f"level[{start}]")
    back = [row.index(v) for row in at for v in range(places)]
    what = number.lookup([0 if action == HOLD else told(action) for action in sets])
    whether = number.lookup([int(action != HOLD) for action in sets]).retyped(Bool()).named(f"{name}.sets")
    held = latch((what + places * turned).lookup(back).named(f"{name}.put"), whether).named(f"{name}.held")
    return (held + places * turned).lookup([v for row in at for v in row])
