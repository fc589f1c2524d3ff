"""Levels that a solvable group moves, as levels that are each moved by powers of one permutation.

Let N be a normal subgroup of a level's group G such that r generates G/N. Each element is g = n·r^a, first n: the count
a modulo the order of G/N tells the coset, and n is left. A letter that moves by h makes g·h of it:

    a' = a + log h,    n' = n·(r^a · h · r^(−a')),    where r^h is in N·h for log h.

What stands in brackets is in N, and a tells which: so n is moved by an element of N that the level of a, before the
letter, chooses. The same is done with N, until nothing is left. A group is solvable if and only if every step finds an
N other than G: then counts of cyclic groups, one on the other, follow it. For S_3 these are a count modulo 2 and one
modulo 3, which the first one turns around. The level's value is g(u), for u that stands for an orbit of values; a reset
to v sets the orbit of v, and the counts of some g with g(u) = v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.automata.cascade import HOLD, Action, Cascade, Key, Level, disagreement, shrunk
from compiler.automata.counted import orders_of, powers_of
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import CapMet, images
from compiler.automata.parts import Part, replaced
from compiler.automata.permutations import Permutation, behind, generated, identity, inverse, orbits
from compiler.automata.table import Table
from compiler.automata.turning import turning_of

MOST_ELEMENTS = 1 << 8  # of the group of a level, which a table of the next level goes through
MOST_ENTRIES = 6_000  # of a level's table: ramps of one number, whose sums float32 must hold (5,760 fit, 7,776 did not)


@dataclass(frozen=True)
class _Factor:
    """A cyclic group G/N. powers: r^0, r^1, …; logs: of each element of G the a with g = n·r^a."""

    powers: tuple[Permutation, ...]
    logs: dict[Permutation, int]

    def left(self, a: int, move: Permutation) -> tuple[int, Permutation]:
        """(a', r^a · move · r^(−a')): where a move takes a, and what it does to the rest."""
        after = (a + self.logs[move]) % len(self.powers)
        return after, behind(behind(self.powers[a], move), inverse(self.powers[after]))


def counting_cascade(table: Table) -> Cascade | None:
    """A cascade for a minimal table, of resets and of levels that are each moved by powers of one permutation.

    None where a level is moved by a group that is not solvable, or by one of more than MOST_ELEMENTS elements that
    `splitting.py` does not take apart, or where a table has more than MOST_ENTRIES. CapMet where there is no cascade.
    """
    cascade = cascade_of(images(table), table.outputs, turning=True)
    moved = {i: level for i, level in enumerate(cascade.levels) if level.moves and powers_of(level.moves) is None}
    series = {i: _series(level) for i, level in moved.items()}
    if [] in series.values():
        return None
    try:
        turning = turning_of(table)
        if orders_of(turning) is not None:
            return turning
    except CapMet:
        pass  # of levels that swaps would move
    for i in sorted(series, reverse=True):  # from the last: the places of those before stay
        factors = series[i]
        if factors is None:
            return None
        cascade = _with_counts(cascade, i, factors)
    cascade = shrunk(cascade)
    if any(len(level.sets) > MOST_ENTRIES for level in cascade.levels):
        return None
    wrong = disagreement(cascade, table, table.outputs)
    assert wrong is None, f"the cascade parts from its automaton {wrong}"
    return cascade


def _series(level: Level) -> list[_Factor] | None:
    """The cyclic groups of which a level's group is made, its own quotient first; none where it is not solvable, None
    where it has more than MOST_ELEMENTS elements.
    """
    group = generated(level.moves, level.size, MOST_ELEMENTS)
    if group is None:
        return None
    factors = []
    while len(group) > 1:
        found = _factor(group)
        if found is None:
            return []
        factor, group = found
        factors.append(factor)
    return factors


def _factor(group: list[Permutation]) -> tuple[_Factor, list[Permutation]] | None:
    """The largest cyclic quotient G/N, and N; None where the commutators are the whole group."""
    commutators = {behind(inverse(behind(h, g)), behind(g, h)) for g in group for h in group}
    normal = _generated([], commutators)
    if len(normal) == len(group):
        return None
    powers = max((_powers(g, normal) for g in group), key=len)
    for g in group:  # as large as may be without a power of r: of an abelian group that leaves the powers alone
        if g not in normal:
            more = _generated(normal, [g])
            if not any(power in more for power in powers[1:]):
                normal = more
    logs = {behind(n, power): a for a, power in enumerate(powers) for n in normal}
    assert len(logs) == len(group), "powers of the largest order have a complement"
    return _Factor(powers, logs), list(normal)


def _generated(subgroup: Sequence[Permutation] | dict, more: Sequence[Permutation] | set) -> dict[Permutation, None]:
    generators = list(dict.fromkeys((*subgroup, *sorted(more))))
    found = generated(generators, len(generators[0]), MOST_ELEMENTS)
    assert found is not None, "a subgroup has no more elements than the group"
    return dict.fromkeys(found)


def _powers(g: Permutation, normal: dict[Permutation, None]) -> tuple[Permutation, ...]:
    """g^0, g^1, … before the first that is in the normal subgroup again."""
    powers = [identity(len(g))]
    while (longer := behind(powers[-1], g)) not in normal:
        powers.append(longer)
    return tuple(powers)


def _with_counts(cascade: Cascade, i: int, factors: Sequence[_Factor]) -> Cascade:
    """Level i as a level for its orbit, where there are several, and one for each factor."""
    level = cascade.levels[i]
    kinds = orbits(level.moves, level.size, level.start)
    group = list(factors[0].logs)
    told: dict[int, list[Key]] = {}
    for g in group:
        for kind, places in enumerate(kinds):
            told.setdefault(g[places[0]], []).append((kind, *_counts_of(factors, g)))
    first = {value: min(keys) for value, keys in told.items()}  # of the level's start: no count

    def kind_of(action: Action, before: Key) -> Action:
        return HOLD if isinstance(action, tuple) or action == HOLD else first[action][0]

    def count(k: int, action: Action, before: Key) -> Action:
        if isinstance(action, int):
            return action if action == HOLD else first[action][k + 1]
        for factor, a in zip(factors, before, strict=False):
            _, action = factor.left(a, action)
        order, by = len(factors[k].powers), factors[k].logs[action]
        return tuple((a + by) % order for a in range(order)) if by else HOLD

    several = len(kinds) > 1
    parts = [Part(len(kinds), 0, (), kind_of)] if several else []
    for k, factor in enumerate(factors):
        reads = tuple(j + several for j in range(k))
        parts.append(Part(len(factor.powers), 0, reads, lambda action, before, k=k: count(k, action, before)))  # type: ignore[misc]
    return replaced(cascade, i, parts, {v: [key[not several :] for key in keys] for v, keys in told.items()})


def _counts_of(factors: Sequence[_Factor], g: Permutation) -> Key:
    """a_1, a_2, … of an element."""
    counts = []
    for factor in factors:
        a = factor.logs[g]
        g = behind(g, inverse(factor.powers[a]))
        counts.append(a)
    return tuple(counts)
