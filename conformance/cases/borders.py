"""What is handed on where chunks meet, at every size of a chunk: states that float16 does not hold, ordinary numbers.

The crossing has states of 11 bits, which float16 holds, and what float32 may add up to over 257 positions of ordinary
numbers hides its rounding. Here a state has up to 22 bits and every result is exact, so a state that is narrower where
two chunks meet shows, whatever the size of a chunk and whichever option it hangs on. No document ends at a border.

The sizes of a chunk at which the crossing asks for no ordinary numbers are asked here: any two of the options, these
sizes among them, meet; and at each size that few kernels take each option stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.cases.factors import CHUNK_SIZES, LAYER_STRENGTH, LENGTHS, Factors, factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.ordinary import ROUNDED, both, ordinary_factors_of, share_of
from conformance.cases.rendered import render
from conformance.loader import Case

RARE_SIZES = (37, 4, 1)
"""Of a chunk, that some case has and few kernels take."""
BORDER_LENGTHS = (1025, 515, 259, 131, 67)  # of a kernel whose chunks are its own
CHUNKS_OF = {"ssd": (*CHUNK_SIZES, *RARE_SIZES), "delta_rule": CHUNK_SIZES}
"""The sizes of a chunk at which options meet."""
_RECURRENT, _CHUNKED = ("selective_scan", "ssd", "delta_rule"), ("ssd", "delta_rule")


@kept
def border_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The cases of an operation, those of the stage `ROUNDED` last; without: options not to be taken."""
    exact = [render(op, row) for row in finer(op, wide_rows(op, without, lengths))]
    rows = finer(op, chunk_rows(op, without, lengths), rounded=True)
    ordinary = [case for row in rows for case in both(op, row, share_of(op, row))]
    return (*exact, *sorted(ordinary, key=lambda case: case.stage == ROUNDED))


def wide_rows(op: str, without: frozenset[Option], lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    """Rows in float32 of wide states, in which any two of the options meet, each with every border."""
    if op not in _RECURRENT or max(lengths) < min(BORDER_LENGTHS) or ("dtype", "float32") in without:
        return []
    factors = _whole(factors_of(op, lengths)) | {"dtype": ["float32"], "wide states": [True]}
    if op == "selective_scan":
        return rows_without(factors | {"length": BORDER_LENGTHS}, without, LAYER_STRENGTH)
    return _of_chunks(op, factors, CHUNK_SIZES, without, lengths)


def chunk_rows(op: str, without: frozenset[Option], lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    """Rows of ordinary numbers at the sizes of a chunk that are crossed nowhere else with them."""
    if op not in _CHUNKED or max(lengths) < min(BORDER_LENGTHS):
        return []
    factors = ordinary_factors_of(op, lengths)
    others = [size for size in CHUNK_SIZES if size not in factors["chunk"]]
    return _of_chunks(op, _whole(factors), others, without, lengths)


def _whole(factors: Factors) -> Factors:
    """Without pieces: a kernel cannot tell them from a state, and each would have fewer borders."""
    return {**factors, "start": [start for start in factors["start"] if start != "pieces"]}


def _of_chunks(
    op: str, factors: Factors, usual: Sequence[int], without: frozenset[Option], lengths: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Over two chunks and a part of a third: any two options, the usual sizes among them, and each at those that are
    rare.
    """
    found = []
    for chunks, strength in ((usual, LAYER_STRENGTH), *(((size,), 1) for size in RARE_SIZES if op == "ssd")):
        taken = [size for size in chunks if ("chunk", size) not in without]
        if taken:
            kept = {name: values for name, values in factors.items() if name != "length"} | {"chunk": taken}
            found += rows_without(kept, without, strength)
    return [{"length": min(2 * row["chunk"] + 3, max(lengths)), **row} for row in found]
