"""Which cases were run: sorted, merged pairs of the first case and one past the last."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]
"""(first case, one past the last)."""


def merged(ranges: Iterable[Iterable[int]]) -> list[Range]:
    """The same cases, sorted, in as few ranges as there can be."""
    found: list[Range] = []
    for first, last in sorted(map(tuple, ranges)):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def missing(wanted: Range, ranges: Iterable[Iterable[int]]) -> list[Range]:
    """What of one range no other has."""
    found, (at, end) = [], wanted
    for first, last in merged(ranges):
        if at < min(first, end):
            found.append((at, min(first, end)))
        at = max(at, last)
    return found + ([(at, end)] if at < end else [])
