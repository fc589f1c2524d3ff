"""One name for moved states that are the same function of the sequence (lemma of moved states): what no output tells
apart is one state, and the moves stand in the order of their normal forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verify.checker.values.machines import Move, Moves, numbered
from verify.checker.values.tables import Ramp
from verify.checker.values.values import Root, Value, World, combine

ONE = Fraction(1)


def canonical(
    world: World, root: Root, ramp: Ramp, first_named: Callable[[Value], tuple[str, Value]]
) -> tuple[Root, Ramp]:
    """A function of the state of a machine as one of the least machine that has it.

    first_named: the normal form of a value, in short, and the first value that had it.
    """
    moves, flags = root.parts
    which, some = _told_apart([ramp.at(x) for x in range(root.hi + 1)], moves.each)
    does: dict[Move, list[Value]] = {}
    for move, (when,) in zip(moves.each, flags, strict=True):
        does.setdefault(tuple(which[move[state]] for state in some), []).append(when)
    does.pop(tuple(range(len(some))), None)
    told = [(*first_named(combine([(ONE, when) for when in whens])), move) for move, whens in does.items()]
    named = sorted(told, key=lambda entry: (entry[0], entry[2]))
    order, each = numbered([move for *_, move in named])
    facts = (0, len(order) - 1, tuple(range(len(order))))
    found = world.root("moved", facts, (Moves(each), tuple((when,) for _, when, _ in named)))
    return found, Ramp(range(len(order)), [ramp.at(some[state]) for state in order], ramp.start)


def _told_apart(outputs: Sequence[Fraction], moves: Sequence[Move]) -> tuple[list[int], list[int]]:
    """(for each state its class, a state of each class): of one class are states whose outputs are equal, after any
    moves. Classes are numbered by their first states.
    """
    which = _numbers(outputs)
    while True:
        finer = _numbers([(which[s], *(which[move[s]] for move in moves)) for s in range(len(outputs))])
        if finer == which:
            return which, [which.index(k) for k in range(max(which) + 1)]
        which = finer


def _numbers(keys: Sequence) -> list[int]:
    found: dict = {}
    return [found.setdefault(key, len(found)) for key in keys]
