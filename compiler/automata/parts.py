"""A level of a cascade replaced by several that tell the same together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from compiler.automata.cascade import Action, Cascade, Key, Level

Does = Callable[[Action, Key], Action]
"""What a part does where the level does an action and the parts that it reads hold these values."""


@dataclass(frozen=True, eq=False)
class Part:
    """size, start: of the part, as of a level; reads: which of the parts before it its table reads."""

    size: int
    start: int
    reads: tuple[int, ...]
    does: Does


def replaced(cascade: Cascade, i: int, parts: Sequence[Part], told: Mapping[int, Sequence[Key]]) -> Cascade:
    """The cascade with parts in the place of level i. told: for each of its values all that the parts hold then."""
    mine, more = cascade.levels[i], len(parts) - 1
    place = lambda j: j + more * (j > i)

    def read(reads: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(p for j in reads for p in (range(i, i + more + 1) if j == i else (place(j),)))

    def keys(reads: tuple[int, ...], by: Mapping[Key, Hashable]) -> dict:
        if i not in reads:
            return dict(by)
        at = reads.index(i)
        return {
            (*key[:at], *held, *key[at + 1 :]): value for key, value in by.items() for held in told.get(key[at], ())
        }

    own = [_level(mine, i, part, parts, told) for part in parts]
    later = cascade.levels[i + 1 :]
    behind = [replace(level, reads=read(level.reads), sets=keys(level.reads, level.sets)) for level in later]
    levels = (*cascade.levels[:i], *own, *behind)
    return replace(cascade, levels=levels, reads=read(cascade.reads), outputs=keys(cascade.reads, cascade.outputs))


def _level(mine: Level, i: int, part: Part, parts: Sequence[Part], told: Mapping[int, Sequence[Key]]) -> Level:
    held = {tuple(key[j] for j in part.reads) for keys in told.values() for key in keys}
    sets = {
        (*key[:-1], *before, key[-1]): part.does(action, before)
        for (key, action), before in product(mine.sets.items(), sorted(held))
    }
    return Level(part.size, (*mine.reads, *(i + j for j in part.reads)), sets, part.start)
