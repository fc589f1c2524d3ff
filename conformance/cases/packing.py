"""Where a sequence of a crossed row is cut into pieces, and where its documents end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

WIDE_LENGTHS = (1, 4, 19, 33)  # positions, where sizes are beyond a tile
_CHUNKS = (64, 128, 256, 1024)  # where documents end too, of a kernel whose chunks are its own
_INSIDE = (2, 7, 21, 90, 110, 200, 300, 900)  # of documents: 16, 64, 128, 256 and 1,024 are inside of one


def cuts_of(row: Mapping[str, Any]) -> list[int]:
    """Where a sequence is cut: after one position, and around its middle; or after so many, and at its middle."""
    length, unit = row["length"], row.get("unit", 1)
    if unit > 1 and row["start"] == "pieces":
        return sorted({unit, length // 2 // unit * unit} - {0, length})
    return sorted({1, length // 2, length // 2 + 1} - {0, length}) if row["start"] == "pieces" and length > 1 else []


def documents_of(row: Mapping[str, Any]) -> list[list[int]]:
    """The lengths of the documents of each row of a batch: each row has its own. They end inside of chunks, at a
    chunk's end in one row, a position before it in another, and one behind it in both. The first is of one position,
    or two.
    """
    length, found = row["length"], []
    if row.get("unit", 1) > 1 and "documents" in row["start"]:
        return [in_units(length, row["unit"], i) for i in range(row["batch"])]
    chunks = (row["chunk"],) if "chunk" in row else _CHUNKS if length > max(WIDE_LENGTHS) else (16,)
    if "documents" not in row["start"]:
        return []
    for i in range(row["batch"]):
        inside = (1 + i, 5 + 3 * i, 64 - i, 65, 200 + i, length)
        beside = (end for chunk in chunks for end in (chunk - i, chunk + 1))
        ends = sorted({min(length, end) for end in (*inside, *beside)})
        found.append([end - start for start, end in zip([0, *ends], ends, strict=False)])
    return found


def in_units(length: int, unit: int, i: int) -> list[int]:
    """Documents of one unit and of two, in another order in every row, as far as there are positions."""
    sizes: list[int] = []
    left = length
    while left > 0:
        sizes.append(min(left, unit * (1 + (len(sizes) + i) % 2)))
        left -= sizes[-1]
    return sizes


def inside_of_chunks(row: Mapping[str, Any]) -> list[list[int]]:
    """Documents of each row of a batch none of which ends where chunks of 16 and more meet: a state goes on there."""
    if "documents" not in row["start"]:
        return []
    length = row["length"]
    if row.get("unit", 1) > 1:
        return [in_units(length, row["unit"], i) for i in range(row["batch"])]
    ends = [[0, *(end + i for end in _INSIDE if end + i < length), length] for i in range(row["batch"])]
    return [[stop - start for start, stop in pairwise(each)] for each in ends]
