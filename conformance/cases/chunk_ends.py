"""Lengths that end with a chunk, one position before and one behind it, at every usual size of a chunk.

The crossing has each of its lengths with some sizes of a chunk only, and where chunks meet a sequence ends inside of
one. Here a sequence ends with its first chunk, its second or, of ssd, its fourth, or beside that end; and at the sizes
that the crossing leaves out each of its lengths stands as well. Each of these lengths stands at each size in one exact
case, and any two of the options, the size of a chunk and the place of the end among them, meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.cases.factors import CHUNK_SIZES, LAYER_STRENGTH, LENGTHS, Factors, factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.rendered import render
from conformance.loader import Case

CHUNKED = ("ssd", "delta_rule")
COUNTS = {"ssd": (1, 2, 4), "delta_rule": (1, 2)}  # of the delta rule fewer, whose equations take longer
"""Chunks behind which a sequence ends."""
ENDS = (0, -1, 1)
"""How far behind the end of a chunk."""
_NAME = "ends of chunks: "


@kept
def chunk_end_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The cases of an operation; without: options not to be taken."""
    cases = (render(op, row) for row in finer(op, chunk_end_rows(op, without, lengths)))
    return tuple(replace(case, name=f"{_NAME}{case.name}") for case in cases)


def chunk_end_rows(op: str, without: frozenset[Option], lengths: Sequence[int] = LENGTHS) -> list[dict[str, Any]]:
    """Rows in which any two options meet, and rows like these for the lengths that are left."""
    if op not in CHUNKED or max(lengths) < max(LENGTHS):
        return []
    chunks = [size for size in CHUNK_SIZES if ("chunk", size) not in without]
    rows = [*map(_with_length, rows_without(_factors(op, chunks), without, LAYER_STRENGTH))] if chunks else []
    asked = {(row["chunk"], row["length"]) for row in rows}
    beside = {size: [row for row in rows if row["chunk"] == size] for size in chunks}
    for size in chunks:
        left = [length for length in ends_of_chunks(op, size) if (size, length) not in asked]
        rows += [{**beside[size][i % len(beside[size])], "length": length} for i, length in enumerate(left)]
    return rows


def ends_of_chunks(op: str, size: int) -> list[int]:
    """The lengths that stand at a size of a chunk."""
    around = {size * count + end for count in COUNTS[op] for end in ENDS}
    crossed = factors_of(op)
    others = crossed["length"] if size not in crossed["chunk"] else ()
    return sorted({*around, *others})


def _factors(op: str, chunks: Sequence[int]) -> Factors:
    """Those of the crossing, and which chunk a sequence ends with. A kernel cannot tell pieces from a state."""
    found = {**factors_of(op), "chunk": chunks, "count": COUNTS[op], "end": ENDS}
    found["start"] = [start for start in found["start"] if start != "pieces"]
    found["sizes"] = found["sizes"][:1]
    return {name: values for name, values in found.items() if name != "length"}


def _with_length(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the length that it says."""
    length = row["chunk"] * row["count"] + row["end"]
    return {"length": length, **{name: value for name, value in row.items() if name not in ("count", "end")}}
