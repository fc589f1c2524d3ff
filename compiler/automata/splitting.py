"""Levels that are moved by permutations, replaced by levels that need fewer exchanges of two places each.

A permutation of m places takes m − circles exchanges, and each exchange of one letter takes a reflection of its own
(`compiler/automata/turning.py`). Three replacements, each exact:

- *blocks*: where all permutations take parts of the places to parts, one level says which part, and the next, which
  reads it, which place of the part. A circle of 4 is two circles of 2.
- *points*: where the group of a level also acts on fewer points (that of A_5's 60 elements on 5), levels that follow a
  few of these points tell all (`compiler/automata/degrees.py`).
- *turned back*: a circle of m ≥ 5. Where one level tells the parity p of the moves so far, and s turns the circle
  around, the level c' with c = s^p(c') is moved by s^p·x·s^(1−p), which turns around, too, with (m − 1)/2 exchanges.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.automata.cascade import HOLD, Action, Cascade, Key, Level
from compiler.automata.degrees import Points, points_of
from compiler.automata.parts import Does, Part, replaced
from compiler.automata.permutations import Permutation, behind, blocks, identity, orbit, swaps


def longest(level: Level) -> int:
    """The most exchanges that one letter takes."""
    return max((len(swaps(move)) for move in level.moves), default=0)


def split(cascade: Cascade) -> Cascade:
    """The cascade with each level replaced wherever that takes fewer exchanges in a row."""
    i = 0
    while i < len(cascade.levels):
        level = cascade.levels[i]
        found = _split(cascade, i) if longest(level) > 1 else None
        if found is None:
            i += 1
        else:
            cascade = found
    return cascade


def _split(cascade: Cascade, i: int) -> Cascade | None:
    level = cascade.levels[i]
    fewer = points_of(level)
    if fewer is not None:
        return _with_points(cascade, i, fewer)
    whole = len(orbit(level.moves, level.start)) == level.size
    parts = blocks(level.moves, level.size) if whole else None
    if parts is not None:
        return _with_blocks(cascade, i, parts)
    back = _around(level)
    return None if back is None else _turned_back(cascade, i, back)


def _held(action: Action) -> Action:
    """HOLD for the permutation that moves nothing."""
    return HOLD if isinstance(action, tuple) and action == identity(len(action)) else action


def _with_points(cascade: Cascade, i: int, points: Points) -> Cascade:
    def follows(at: int, moves: Mapping[Permutation, Permutation]) -> Does:
        def does(action: Action, before: Key) -> Action:
            if isinstance(action, tuple):
                return _held(moves[action]) if moves else HOLD
            return action if action == HOLD else points.told[action][0][at]

        return does

    parts = [Part(point.size, point.start, (), follows(k, point.moves)) for k, point in enumerate(points.points, 1)]
    if points.orbits > 1:
        return replaced(cascade, i, [Part(points.orbits, 0, (), follows(0, {})), *parts], points.told)
    return replaced(cascade, i, parts, {value: [key[1:] for key in keys] for value, keys in points.told.items()})


def _with_blocks(cascade: Cascade, i: int, parts: list[list[int]]) -> Cascade:
    level = cascade.levels[i]
    where = {s: (k, part.index(s)) for k, part in enumerate(parts) for s in part}

    def part_of(action: Action, before: Key) -> Action:
        if isinstance(action, int):
            return action if action == HOLD else where[action][0]
        return _held(tuple(where[action[part[0]]][0] for part in parts))

    def place_of(action: Action, before: Key) -> Action:
        if isinstance(action, int):
            return action if action == HOLD else where[action][1]
        return _held(tuple(where[action[s]][1] for s in parts[before[0]]))

    first, then = where[level.start]
    both = [Part(len(parts), first, (), part_of), Part(len(parts[0]), then, (0,), place_of)]
    return replaced(cascade, i, both, {s: [at] for s, at in where.items()})


def _around(level: Level) -> Permutation | None:
    """What turns the circle of a level around, where all its moves are powers of one circle of all ≥ 5 places."""
    circle = next((move for move in level.moves if len(swaps(move)) == level.size - 1), None)
    if circle is None or level.size < 5:
        return None
    order, s = [], 0
    for _ in range(level.size):
        order.append(s)
        s = circle[s]
    if any(behind(move, circle) != behind(circle, move) for move in level.moves):
        return None
    back = [0] * level.size
    for k, s in enumerate(order):
        back[s] = order[-k % level.size]
    return tuple(back)


def _turned_back(cascade: Cascade, i: int, back: Permutation) -> Cascade:
    level = cascade.levels[i]
    none = identity(level.size)
    turned = lambda value, parity: back[value] if parity else value

    def parity_of(action: Action, before: Key) -> Action:
        return (1, 0) if isinstance(action, tuple) else HOLD

    def place_of(action: Action, before: Key) -> Action:
        (parity,) = before
        if isinstance(action, int):
            return action if action == HOLD else turned(action, parity)
        first, then = (back, none) if parity else (none, back)
        return _held(behind(behind(first, action), then))

    told = {value: [(parity, turned(value, parity)) for parity in (0, 1)] for value in range(level.size)}
    return replaced(cascade, i, [Part(2, 0, (), parity_of), Part(level.size, level.start, (0,), place_of)], told)
