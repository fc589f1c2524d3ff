"""Exact cases in which any three options of an operation meet: what works alone may fail together.

Rows come from `covering`, four times: with lengths around every usual size of a chunk and few channels; with sizes
beyond a tile and few positions; and, any two of the other options together, with sizes as layers have them over more
than a chunk, and with sizes of which several are equal. Options that a kernel does not take are left out of its rows,
which then cover what is left. Every term of a result is a multiple of one power of two, so that bfloat16 and half hold
it without rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.cases.beginnings import at_every_border
from conformance.cases.equal import equal_sizes
from conformance.cases.factors import LAYER_STRENGTH, LENGTHS, STRENGTH, factors_of, layer_factors_of, wide_factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.rendered import render
from conformance.loader import Case


@kept
def crossed_cases(op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS) -> list[Case]:
    """The crossed cases of an operation; without: values that its factors do not take."""
    crossed = (
        (factors_of(op, lengths), STRENGTH),
        (wide_factors_of(op, lengths), STRENGTH),
        (layer_factors_of(op, lengths), LAYER_STRENGTH),
    )
    rows = [row for factors, strength in crossed for row in rows_without(factors, without, strength)]
    return [render(op, row) for row in (*at_every_border(finer(op, rows)), *equal_rows(op, without, lengths))]


def equal_rows(
    op: str, without: frozenset[Option] = frozenset(), lengths: Sequence[int] = LENGTHS
) -> Iterator[dict[str, Any]]:
    """Rows of sizes of which several are equal, each with any two of the options; positions: no more than `lengths`."""
    sizes = equal_sizes(op, max(lengths), without)
    options = {name: values for name, values in factors_of(op, lengths).items() if sizes and name not in sizes[0]}
    for row in rows_without(options | {"equal": range(len(sizes))}, without, LAYER_STRENGTH) if sizes else ():
        found = {**{k: v for k, v in row.items() if k != "equal"}, **sizes[row["equal"]]}
        if ("chunk", found.get("chunk")) in without:
            found["chunk"] = rows_without({"chunk": [found["chunk"]]}, without, 1)[0]["chunk"]
        yield found
