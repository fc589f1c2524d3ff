"""Where a sequence of a crossed row is cut into pieces, and where its documents end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count, islice, pairwise
from typing import Any

WIDE_LENGTHS = (1, 4, 19, 33)  # positions, where sizes are beyond a tile
CHUNKS = (64, 128, 192, 256, 512, 1024)  # where documents end too, of a kernel whose chunks are its own
BESIDE = (-1, 0, 1)  # how far behind such a border they begin
_INSIDE = (2, 7, 21, 90, 110, 200, 300, 900)  # where documents end: 16, 64, 128, 256 and 1,024 are inside of one
_CHUNK = 16  # positions: where larger chunks meet, these meet too
_SHORT = {True: (22, 62), False: (8, 64)}  # where dozens of documents stand, by whether a row is as long
_WHOLE = 8  # of no chunk of so many positions they end where it meets the next


def cuts_of(row: Mapping[str, Any]) -> list[int]:
    """Where a sequence is cut: after one position, and around its middle; or after so many, and at its middle."""
    length, unit = row["length"], row.get("unit", 1)
    if unit > 1 and row["start"] == "pieces":
        return sorted({unit, length // 2 // unit * unit} - {0, length})
    return sorted({1, length // 2, length // 2 + 1} - {0, length}) if row["start"] == "pieces" and length > 1 else []


SHIFTS = (0, 1, 2)
"""How many rows further on the first row begins: so each row has each way to end at a border."""


def documents_of(row: Mapping[str, Any]) -> list[list[int]]:
    """The lengths of the documents of each row of a batch: each row has its own. They end inside of chunks; and at a
    chunk's end, a position before it or two, each in another row and, at the next border, in another one, and a
    position behind it in all. The first is of one position, or two. `shift` says with which row that begins.
    """
    if "chunk" in row:
        chunks = [64, row["chunk"], 2 * row["chunk"]]
    else:
        chunks = [*CHUNKS] if row["length"] > max(WIDE_LENGTHS) else [16, 32]

    def ends(i: int) -> list[int]:
        inside = (1 + i, 5 + 3 * i, 200 + i)
        borders = enumerate(sorted({*chunks}), start=i + row.get("shift", 0))
        return [*inside, *(end for way, border in borders for end in (border - way % len(SHIFTS), border + 1))]

    return _documents(row, ends)


def inside_of_chunks(row: Mapping[str, Any]) -> list[list[int]]:
    """Documents of each row of a batch none of which ends where chunks of 16 and more meet, or those of the row's own
    size: a state goes on there. Each row ends them one such place further on than the row before.
    """
    behind = lambda end, i: next(islice((place for place in count(end) if _is_inside(place, row)), i, None))
    return _documents(row, lambda i: [behind(end, i) for end in _INSIDE])


def _is_inside(place: int, row: Mapping[str, Any]) -> bool:
    """Whether no chunks meet there, of 16 positions or as long as a kernel is told; those of one meet everywhere."""
    own = row.get("chunk") or 1
    return place % _CHUNK != 0 and (own == 1 or place % own != 0)


def _documents(row: Mapping[str, Any], ends: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """In units where the row has them. ends: where documents end, of each row of the batch; beyond the length nothing
    does, and the last one ends there.
    """
    length, unit = row["length"], row.get("unit", 1)
    if "documents" not in row["start"]:
        return []
    if row.get("whole"):
        return [[length]] * row["batch"]
    if unit > 1:
        return [in_units(length, unit, i) for i in range(row["batch"])]
    dozens = _dozens(row)
    places = [[0, *sorted({min(length, end) for end in (*ends(i), *dozens, length)})] for i in range(row["batch"])]
    return [[stop - start for start, stop in pairwise(each)] for each in places]


def _dozens(row: Mapping[str, Any]) -> list[int]:
    """Where so many more documents end, or as many as there is room for: behind each other, of one to three positions.
    What stands before and behind them stays, so that a state goes on over the border of a chunk.
    """
    length, more = row["length"], row.get("documents", 0)
    first, last = _SHORT[length > _SHORT[True][1]]
    places = [end for end in range(first, min(last, length)) if end % _WHOLE and _is_inside(end, row)]
    return places[:: max(1, len(places) // more)][:more] if more else []


def in_units(length: int, unit: int, i: int) -> list[int]:
    """Documents of one unit and of two, in another order in every row, as far as there are positions."""
    sizes: list[int] = []
    left = length
    while left > 0:
        sizes.append(min(left, unit * (1 + (len(sizes) + i) % 2)))
        left -= sizes[-1]
    return sizes
