"""Documents begin at every border of a chunk, before it and behind it, in the first row and in another.

Where the documents of a row end depends on how many rows further on the first one begins (see `packing`), and of long
sequences there are few rows. Where a border would be left out, a row that is there gets another such number, or more
rows. No case is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from conformance.cases.packing import BESIDE, CHUNKS, SHIFTS, documents_of

Row = dict[str, Any]
Place = tuple[int, bool]
"""Where a document begins, and whether in the first row."""

_MANY = (3, 5)
"""Rows: the second and third begin in two of three ways, the second to the fourth in all."""


def at_every_border(rows: Sequence[Row]) -> list[Row]:
    """The rows of an operation whose chunks are its own, some with another shift or more rows; others as they are."""
    found = [*rows]
    packed = [i for i, row in enumerate(found) if "documents" in row.get("start", "") and "chunk" not in row]
    begun = Counter(place for i in packed for place in _begun(found[i]))
    wanted = {*_wanted([found[i] for i in packed])}
    while missing := {place for place in wanted if not begun[place]}:
        changes = [(i, row) for i in packed if found[i]["length"] > min(missing)[0] for row in _others(found[i])]
        left = [_left(wanted, begun, found[i], row) for i, row in changes]
        if not changes or min(left) >= len(missing):
            return found
        i, row = changes[left.index(min(left))]
        begun.subtract(_begun(found[i]))
        begun.update(_begun(row))
        found[i] = row
    return found


def _wanted(rows: Sequence[Row]) -> Iterator[Place]:
    """All places that the longest of the rows have, in the first row and, if there are several somewhere, in others."""
    length = max((row["length"] for row in rows), default=0)
    kinds = {True} | {False for row in rows if row["batch"] > 1}
    borders = (border + beside for border in CHUNKS for beside in BESIDE)
    yield from ((border, kind) for border in borders if border < length for kind in kinds)


def _begun(row: Mapping[str, Any]) -> set[Place]:
    """Where documents begin; the first of a row is none of these."""
    return {(place, i == 0) for i, sizes in enumerate(documents_of(row)) for place in [*accumulate(sizes)][:-1]}


def _others(row: Row) -> Iterator[Row]:
    """The row with other shifts, and, where it has several, with more rows."""
    more = [count for count in _MANY if count > row["batch"] > 1]
    yield from ({**row, "shift": shift, "batch": batch} for batch in (row["batch"], *more) for shift in SHIFTS)


def _left(wanted: set[Place], begun: Counter[Place], row: Row, other: Row) -> int:
    """How many places are begun nowhere with another row in the place of one."""
    after = begun.copy()
    after.subtract(_begun(row))
    after.update(_begun(other))
    return sum(not after[place] for place in wanted)
