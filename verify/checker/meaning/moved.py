"""One name for moved states that are the same function of the sequence (lemma of moved states): what no output tells
apart is one state, and the moves stand in the order of their normal forms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

import numpy as np

from verify.checker.values.apart import told_apart
from verify.checker.values.machines import Move, Moves, numbered
from verify.checker.values.tables import Ramp
from verify.checker.values.together import at_all_moments, moved_in
from verify.checker.values.values import TOKEN, ZERO, Key, Root, Value, World, combine
from verify.checker.values.windows import Letters, TooLarge

ONE = Fraction(1)
Named = Callable[[Value], tuple[str, Value]]
_MOST_APART = 16  # states


def canonical(world: World, root: Root, outputs: Sequence[Hashable], first_named: Named) -> tuple[Root, list[int]]:
    """(the least machine that has these outputs, one for each state of the root; for each of its states one of them).

    first_named: the normal form of a value, in short, and the first value that had it.
    """
    moves, flags = root.parts
    which, some = told_apart(outputs, moves.each)
    does: dict[Move, list[Value]] = {}
    for move, (when,) in zip(moves.each, flags, strict=True):
        does.setdefault(tuple(which[move[state]] for state in some), []).append(when)
    does.pop(tuple(range(len(some))), None)
    told = [(*first_named(combine([(ONE, when) for when in whens])), move) for move, whens in does.items()]
    named = sorted(told, key=lambda entry: (entry[0], entry[2]))
    order, each = numbered([move for *_, move in named])
    facts = (0, len(order) - 1, tuple(range(len(order))))
    found = world.root("moved", facts, (Moves(each), tuple((when,) for _, when, _ in named)))
    return found, [some[state] for state in order]


def of_least(world: World, root: Root, ramp: Ramp, first_named: Named) -> tuple[Root, Ramp]:
    """A function of the state as one of the least machine that has it."""
    least, states = canonical(world, root, [ramp.at(x) for x in range(root.hi + 1)], first_named)
    return least, Ramp(range(len(states)), [ramp.at(s) for s in states], ramp.start)


def as_tables(world: World, value: Value, first_named: Named) -> list[Letters] | None:
    """A function of letters and moved states, as tables over classes of letters and the states of least machines, far
    from the start and at the first positions: the same for the same function. None where it is another, or too large.
    """
    if not moved_in(world, value):
        return None
    try:
        pieces = [case for (case,) in at_all_moments(world, [value])]
    except TooLarge:
        return None
    least: dict[Key, tuple[Root, list[int]]] = {}
    for place in {place for piece in pieces for place in piece.axes if place[0] != TOKEN}:
        root = world.roots[place[0]]
        outputs = [tuple(_slice(piece, place, s) for piece in pieces) for s in range(root.hi + 1)]
        least[place] = canonical(world, root, outputs, first_named)
    return [_over_least(piece, least) for piece in pieces]


def _slice(piece: Letters, place: Key, state: int) -> bytes:
    """What it is where a state is this one."""
    if place not in piece.axes:
        return b""
    at = sorted(piece.axes).index(place)
    return (piece.table.take(piece.axes[place][state], axis=at) + 0.0).tobytes()


def _over_least(piece: Letters, least: dict[Key, tuple[Root, list[int]]]) -> Letters:
    """Over the states of least machines; two places of one machine are in the same state."""
    axes, table, named = {}, piece.table, []
    for at, place in enumerate(sorted(piece.axes)):
        labels = piece.axes[place]
        if place in least:
            root, states = least[place]
            table = table.take(labels[np.array(states)], axis=at)
            place, labels = (root.id, place[1]), np.arange(len(states))
        axes[place] = labels
        named.append(place)
    order = sorted(axes)
    return Letters(axes, np.einsum(table, [order.index(p) for p in named], list(range(len(order)))))


def by_state(ramp: Ramp) -> list[Ramp]:
    """A function of the state that is 0 in the first one, as what each other state adds; whole where they are many."""
    states = range(ramp.xs[0], ramp.xs[-1] + 1)
    if len(states) > _MOST_APART:
        return [ramp]
    values = {s: y for s in states if (y := ramp.at(s))}
    return [Ramp(states, [y if x == s else ZERO for x in states], ramp.start) for s, y in values.items()]
