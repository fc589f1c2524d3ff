"""What is crossed as "several" has many numbers: rows 2, 3, 5 or 9, groups 2 to 9, dozens of documents, odd heads.

That any three options meet takes hundreds of rows, whatever number of rows, groups or documents stands behind one of
them. So each row takes the number that has met its other options least. Any one number then meets every option, and
no case is added: a kernel that loses a fourth row, a third group or a twentieth document beside one option is found.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.cases.packing import SHIFTS

Row = dict[str, Any]
Levels = Mapping[str, Any]

ROWS = (2, 3, 5, 9)
GROUPS = (2, 3, 4, 5, 7, 8, 9)
DOCUMENTS = (0, 20, 40)
"""How many more there are than where each ends somewhere else: see `packing`."""
_MOST = 5 * 2**14  # numbers of u, x or v, beyond which there are no more than three rows
_HEADS = {(4, 2, 2): [(16, 1, 2), (3, 2, 2)], (6, 1, 3): [(5, 1, 3), (9, 1, 3), (15, 1, 3)]}
_OTHERS: Mapping[str, Mapping[Any, Sequence[Any]]] = {
    "selective_scan": _HEADS,
    "ssd": _HEADS,
    "conv": {8: [5], 12: [7]},
}
"""Of sizes that are crossed: others of about as many numbers."""
_SPREADS = {2: (2, 4), 3: (3, 8)}
_SHORT = 16  # positions, in which dozens of documents have no room
_NO_BORDER = 4  # positions, in which no chunk of those that are crossed ends


def finer(op: str, rows: Sequence[Levels], one_size: bool = False, rounded: bool = False) -> list[Row]:
    """Rows with a number in the place of each "several"; one_size: sizes and groups stay. rounded: whether
    results in a narrow dtype may be rounded in between; of many rows the worst entry is off by more.
    """
    found: list[Row] = [{**row} for row in rows]
    few = lambda op, row: iter(()) if rounded and row["dtype"] != "float32" else _batches(op, row)
    shifts = lambda op, row: iter(()) if rounded else _shifts(op, row)
    kinds: list[Callable[[str, Levels], Iterator[Row]]] = [few, _documents, shifts]
    for choices in kinds if one_size else [few, _shapes, _spreads, _documents, shifts]:
        found = _spread(found, [[*choices(op, row)] for row in found])
    return found


def _spread(rows: Sequence[Row], choices: Sequence[Sequence[Row]]) -> list[Row]:
    """Each row with that one of its choices whose levels have met the other levels of the row least."""
    met: Counter[Any] = Counter()
    found = []
    for i, (row, levels) in enumerate(zip(rows, choices, strict=True)):
        pairs = [_pairs(row | each, each) for each in levels]
        worth = [(sum(0.5 ** met[pair] for pair in own), zlib.crc32(f"{i} {own}".encode())) for own in pairs]
        if not levels:
            found.append(row)
            continue
        best = max(range(len(levels)), key=worth.__getitem__)
        met.update(pairs[best])
        found.append(row | levels[best])
    return found


def _pairs(row: Row, new: Row) -> list[Any]:
    return [(level, other) for level in new.items() for other in row.items() if other[0] not in new]


def _batches(op: str, row: Levels) -> Iterator[Row]:
    if row.get("batch", 1) > 1:
        yield from ({"batch": batch} for batch in ROWS if batch <= 3 or batch * _numbers(row) <= _MOST)


def _numbers(row: Levels) -> int:
    """Of one row of u, x or v; of the delta rule, of k."""
    sizes = row["sizes"]
    return row["length"] * (sizes if isinstance(sizes, int) else sizes[0] * sizes[1])


def _shapes(op: str, row: Levels) -> Iterator[Row]:
    """Of the scans a group has whole heads, of a norm a power of two of channels."""
    groups, sizes = row.get("groups", 1), row["sizes"]
    if op == "norm":
        yield from ({"groups": count} for count in (2, 4, 8) if groups > 1)
        return
    for each in (sizes, *_OTHERS.get(op, {}).get(sizes, ())):
        if groups == 1:
            yield {"sizes": each}
        elif each == sizes or each[0] > 3:
            yield from ({"sizes": each, "groups": count} for count in _groups_of(each[0]))


def _groups_of(heads: int) -> Iterator[int]:
    """Several groups, of several heads each where there are as many: else no order of theirs is another."""
    yield from (count for count in GROUPS if heads % count == 0 and (count < heads or heads <= 3))


def _spreads(op: str, row: Levels) -> Iterator[Row]:
    if row.get("spread", 1) > 1 and row["sizes"][0] <= 2:
        yield from ({"spread": spread} for spread in _SPREADS[row["spread"]])


def _documents(op: str, row: Levels) -> Iterator[Row]:
    if _packs(row) and row["length"] > _SHORT and row.get("unit", 1) == 1:
        yield from ({"documents": count} for count in DOCUMENTS if not row.get("wide states"))


def _packs(row: Levels) -> bool:
    """Whether several documents stand in a row."""
    return "documents" in row.get("start", "") and not row.get("whole")


def _shifts(op: str, row: Levels) -> Iterator[Row]:
    """Which row's documents are those of the first: at a chunk's border, or before it."""
    whole = row.get("unit", 1) == 1 and not row.get("wide states")
    if _packs(row) and whole and row["length"] > _NO_BORDER:
        yield from ({"shift": shift} for shift in SHIFTS)
