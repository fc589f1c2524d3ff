"""States of finitely many values that flags move (lemma of moved states)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from verify.checker.formats import Rejected
from verify.checker.values.bent import relu
from verify.checker.values.tables import Ramp
from verify.checker.values.together import on_together
from verify.checker.values.values import ZERO, Root, Value, World, combine, constant, normal

ONE = Fraction(1)
MOST_STATES, MOST_STEPS = 1 << 10, 1 << 16
Step = Callable[[Any, frozenset[int]], Hashable]
Move = tuple[int, ...]  # for each state the next one


@dataclass(frozen=True)
class Moves:
    """What the flags of a machine do, one by one; where none of them is 1, the state stays. States are numbered from
    the first one on, in the order in which these moves, one after the other, reach them.
    """

    each: tuple[Move, ...]


def machine(world: World, flags: Sequence[Value], start: Hashable, step: Step, what: str) -> tuple[Root, list]:
    """(the number of the state, the states) of a machine that begins at `start`, before the first position, and takes a
    step for the flags that are 1. Only states that are reached are numbered.
    """
    sets = sorted(on_together(world, flags, what), key=sorted)
    states, following = _closed(start, sets, step, what)
    does: dict[Move, list[frozenset[int]]] = {}
    for i, flags_on in enumerate(sets):
        does.setdefault(tuple(row[i] for row in following), []).append(flags_on)
    does.pop(tuple(range(len(states))), None)
    told = {move: _where(world, flags, group, sets) for move, group in does.items()}
    root, order = moved(world, [(when, move) for move, when in told.items()])
    return root, [states[i] for i in order]


def moved(world: World, moves: Sequence[tuple[Value, Move]]) -> tuple[Root, list[int]]:
    """(the number of the state, which state each number was) of a machine whose moves are told by flags that exclude
    each other, from state 0 on: numbered anew, the same for the same machine.
    """
    live = sorted(((when, move) for when, move in moves if not when.zero), key=lambda entry: entry[0].key)
    order, each = numbered([move for _, move in live])
    facts = (0, len(order) - 1, tuple(range(len(order))))
    return world.root("moved", facts, (Moves(each), tuple((when,) for when, _ in live))), order


def numbered(moves: Sequence[Move]) -> tuple[list[int], tuple[Move, ...]]:
    """(the states in the order in which the moves reach them from state 0, the moves in these numbers)."""
    order, at = [0], {0: 0}
    for state in order:
        for move in moves:
            if move[state] not in at:
                at[move[state]] = len(order)
                order.append(move[state])
    return order, tuple(tuple(at[move[state]] for state in order) for move in moves)


def of_states(root: Root, values: Sequence[Fraction]) -> Value:
    """A function of the state."""
    return normal({(root.id, 0): Ramp(range(len(values)), values)}, ZERO)


def _closed(start: Hashable, sets: Sequence[frozenset[int]], step: Step, what: str) -> tuple[list, list[list[int]]]:
    """(all states, for each of them the number of the next one by each set of flags)."""
    states, at, following = [start], {start: 0}, []
    for state in states:
        row = []
        for flags_on in sets:
            after = step(state, flags_on)
            if after not in at:
                at[after] = len(states)
                states.append(after)
            row.append(at[after])
        following.append(row)
        if len(states) > MOST_STATES or len(following) * len(sets) > MOST_STEPS:
            raise Rejected(
                f"{what} has more than {MOST_STATES} states, or takes more than {MOST_STEPS} steps to go through"
            )
    return states, following


def _where(world: World, flags: Sequence[Value], group: list[frozenset[int]], sets: list[frozenset[int]]) -> Value:
    """[the flags that are 1 are one of a group of sets]: a flag, or a bent sum of a few, wherever that is the same."""
    chosen = set(group)
    has = {i: {s for s in sets if i in s} for i in range(len(flags))}
    for i, own in has.items():
        if own == chosen:
            return flags[i]
        if set(sets) - own == chosen:
            return combine([(-ONE, flags[i])], ONE)
    for i, j in combinations(has, 2):
        if has[i] & has[j] == chosen:
            return relu(world, combine([(ONE, flags[i]), (ONE, flags[j])], -ONE))
        for a, b in ((i, j), (j, i)):
            if has[a] - has[b] == chosen:
                return relu(world, combine([(ONE, flags[a]), (-ONE, flags[b])]))
    parts = []
    for here in group:
        signs = [(ONE if i in here else -ONE, flag) for i, flag in enumerate(flags)]
        parts.append((ONE, relu(world, combine(signs, Fraction(1 - len(here))))))
    return combine(parts) if parts else constant(0)
