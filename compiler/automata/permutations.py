"""Permutations as tuples: p takes place s to p[s], and `behind(p, q)` is first p, then q."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Permutation = tuple[int, ...]
Swap = tuple[int, int]
"""Two places that are exchanged, the smaller first."""


def identity(places: int) -> Permutation:
    return tuple(range(places))


def behind(first: Permutation, then: Permutation) -> Permutation:
    """First one, then the other."""
    return tuple(then[s] for s in first)


def inverse(p: Permutation) -> Permutation:
    back = [0] * len(p)
    for s, to in enumerate(p):
        back[to] = s
    return tuple(back)


def circles(p: Permutation) -> list[list[int]]:
    """The places in the order in which p moves them, one list for each circle of two or more."""
    found, seen = [], set()
    for s in range(len(p)):
        circle = []
        while s not in seen:
            seen.add(s)
            circle.append(s)
            s = p[s]
        if len(circle) > 1:
            found.append(circle)
    return found


def swaps(p: Permutation) -> list[Swap]:
    """The fewest exchanges of two places that make p, the first one first: places − circles of them."""
    found = []
    for circle in circles(p):
        # s_0 → s_1 → … → s_0 is (s_0 s_1) (s_0 s_2) … , applied from the left
        found += [(min(circle[0], s), max(circle[0], s)) for s in circle[1:]]
    return found


def swapped(places: int, swap: Swap) -> Permutation:
    """The permutation that exchanges two places."""
    i, j = swap
    return tuple(j if s == i else i if s == j else s for s in range(places))


def generated(generators: Iterable[Permutation], places: int, most: int) -> list[Permutation] | None:
    """All elements of the group, {1} first; None where they are more than `most`."""
    generators = list(generators)
    found = {identity(places): None}
    waiting = list(found)
    for element in waiting:
        for g in generators:
            longer = behind(element, g)
            if longer not in found:
                found[longer] = None
                waiting.append(longer)
        if len(found) > most:
            return None
    return waiting


def blocks(generators: Sequence[Permutation], places: int) -> list[list[int]] | None:
    """The smallest parts, of two or more places each but not all, that every generator takes to parts; None without.

    The places must be one orbit, so that all parts have the same size.
    """
    best = None
    for other in range(1, places):
        parts = _joined(generators, places, other)
        if len(parts) > 1 and (best is None or len(parts) > len(best)):
            best = parts
    return best


def _joined(generators: Sequence[Permutation], places: int, other: int) -> list[list[int]]:
    """The finest such parts that have 0 and `other` in one (Atkinson 1975)."""
    part = list(range(places))

    def of(s: int) -> int:
        while part[s] != s:
            s = part[s]
        return s

    waiting = [(0, other)]
    while waiting:
        s, t = map(of, waiting.pop())
        if s != t:
            part[max(s, t)] = min(s, t)
            waiting += [(g[s], g[t]) for g in generators]
    found: dict[int, list[int]] = {}
    for s in range(places):
        found.setdefault(of(s), []).append(s)
    return list(found.values())


def orbit(generators: Iterable[Permutation], place: int) -> list[int]:
    """All places that words of the generators move a place to, sorted."""
    generators = list(generators)
    found = {place}
    waiting = [place]
    while waiting:
        s = waiting.pop()
        for g in generators:
            if g[s] not in found:
                found.add(g[s])
                waiting.append(g[s])
    return sorted(found)


def orbits(generators: Sequence[Permutation], places: int, start: int) -> list[list[int]]:
    """The orbits of all places; `start` is the first place of the first."""
    found: list[list[int]] = []
    for s in (start, *range(places)):
        if not any(s in one for one in found):
            found.append([s, *(t for t in orbit(generators, s) if t != s)])
    return found
