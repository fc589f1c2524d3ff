"""Letters that nothing tells apart are taken as one letter (lemma of classes of letters): fifty thousand letters are
few classes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verify.checker.values.tables import Table
from verify.checker.values.values import Component, Key, Value, World, kept


@kept
def quotient(world: World, value: Value) -> tuple[World, Value]:
    """The value over classes of letters, each seen as its first letter, in a world of its own.

    No table in the value, and no edge of the language, tells letters of a class apart. A class on a distinct edge can
    come back, so the language of classes holds more paths than those that sequences of letters take.
    """
    roots = roots_of(world, value)
    tables = _tables_of(world, value)
    first = np.unique(classes(world, value), return_index=True)[1]
    edges = tuple(replace(e, letters=e.letters[first], distinct=False) for e in world.language.edges)
    small = World(replace(world.language, tokens=len(first), edges=edges), world.format, together=world.together)
    known = {key: Table(t.at(first), t.start) for key, t in tables.items()}
    at: dict[int, int] = {-1: -1}

    def moved(part):
        if isinstance(part, tuple):
            return tuple(map(moved, part))
        if not isinstance(part, Value):
            return part
        terms: dict[Key, Component] = {
            (at[root], lag): known[c.key] if isinstance(c, Table) else c for (root, lag), c in part.terms.items()
        }
        return Value(part.const, terms, part.upto)

    for i in roots:
        root = world.roots[i]
        facts = root.lo, root.hi, root.values
        at[i] = small.root(root.kind, facts, tuple(map(moved, root.parts)), root.exact, root.along).id
    for (i, _), ((total, _), zero) in world.zeros.items():
        if i in at:
            small.zeros[at[i], 0] = (at[total], 0), moved(zero)
    return small, moved(value)


def _values_in(parts: tuple) -> list[Value]:
    """The values that a root is made of."""
    found = [p for p in parts if isinstance(p, Value)]
    return found + [v for p in parts if isinstance(p, tuple) for column in p for v in column]


def roots_of(world: World, value: Value) -> list[int]:
    """The roots that a value is made of, those before others that are made of them."""
    found: set[int] = set()
    pending = [value]
    while pending:
        for root, _ in pending.pop().ramps:
            if root not in found:
                found.add(root)
                pending += _values_in(world.roots[root].parts)
                pending += [world.zeros[root, 0][1]] if (root, 0) in world.zeros else []
    return sorted(found)


def _tables_of(world: World, value: Value) -> dict[tuple, Table]:
    """The functions of a letter that a value is made of, by their keys."""
    roots = roots_of(world, value)
    held = [v for root in roots for v in _values_in(world.roots[root].parts)]
    held += [value, *(world.zeros[root, 0][1] for root in roots if (root, 0) in world.zeros)]
    return {t.key: t for v in held for t in v.tables.values()}


def classes(world: World, value: Value) -> np.ndarray:
    """(V,): for each letter the first that is like it in every table of the value and on every edge."""
    label, count = np.zeros(world.language.tokens, dtype=np.int64), 1
    parts: list[tuple[np.ndarray, np.ndarray]] = [(t.ids, t.vals) for t in _tables_of(world, value).values()]
    parts += [(np.flatnonzero(e.letters), np.ones(int(e.letters.sum()))) for e in world.language.edges]
    for ids, vals in parts:
        kind = np.unique(vals, return_inverse=True)[1].reshape(-1)
        if len(ids):
            old, new = np.unique(label[ids] * (int(kind.max()) + 1) + kind, return_inverse=True)
            label[ids] = count + new.reshape(-1)
            count += len(old)
    _, first, which = np.unique(label, return_index=True, return_inverse=True)
    return first[which.reshape(-1)]
