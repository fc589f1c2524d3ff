"""The largest sizes with all options at once: elsewhere they stand with few of them, or over few positions.

A kernel may have another path for layers that are wider than those of the crossing, and forget there what it does
elsewhere. For each of these sizes every option that a kernel takes stands in an exact case over more than a chunk of
128, and in one of ordinary numbers, of which softplus is no relu.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.cases.factors import LENGTHS, factors_of
from conformance.cases.kept import kept
from conformance.cases.layers import rendered
from conformance.cases.meeting import meets, rows_without
from conformance.cases.options import Option, option_of
from conformance.cases.rendered import render
from conformance.loader import Case

POSITIONS = {**dict.fromkeys(("selective_scan", "ssd", "conv", "delta_rule"), 130), "norm": 140}
"""Beyond a chunk of 128, and as many as other cases have, so that what is said of a wrong one is its size."""
GROUPS = 8  # where there are as many heads or channels
SIZES: Mapping[str, Sequence[Any]] = {
    "selective_scan": [(512, 4, 1), (4, 1, 256)],
    "ssd": [(512, 4, 1), (4, 2, 256), (2, 160, 2)],
    "conv": [2048],
    "norm": [3072, 4096],
    "delta_rule": [(66, 4, 2), (2, 256, 2), (2, 4, 160)],
}
_ONE = ("dtype", "views", "batch", "length", "sizes", "chunk", "taps")  # of which the first value stands
_BEGINS = (("state and documents",), ("documents", "state"), ("state",), ("nothing",))
"""How the state begins: with all of it in one case, or in two where no case has both."""


@kept
def large_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The cases of an operation; without: options not to be taken."""
    cases = [case for row in large_rows(op, without, lengths) for case in (render(op, row), *rendered(op, row))]
    return tuple(replace(case, name=f"large: {case.name}") for case in cases)


def large_rows(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> Iterator[dict[str, Any]]:
    """A row of each size, or two where two options exclude each other."""
    kept = {name: _taken(name, values, without) for name, values in factors_of(op).items()}
    if not all(kept.values()):
        return
    row: dict[str, Any] = {name: values[0 if name in _ONE else -1] for name, values in kept.items()}
    row["length"] = min(POSITIONS[op], max(lengths))  # of a kernel that takes one at a time, few
    for i, sizes in enumerate(SIZES[op]):
        heads = sizes if isinstance(sizes, int) else sizes[0]
        for more in _beside(op, kept, i):
            found = row | {"sizes": sizes} | more
            if found.get("groups", 1) > 1:
                found["groups"] = GROUPS if heads > GROUPS else 2
            if not meets({**found, "op": op}):  # of a convolution no last state is asked for beside documents
                found["last state"] = False
            yield found


def _taken(name: str, values: Sequence[Any], without: frozenset[Option]) -> list[Any]:
    if name == "chunk":
        return [row["chunk"] for row in rows_without({"chunk": values}, without, 1)]
    return [value for value in values if option_of(name, value) not in without]


def _beside(op: str, kept: Mapping[str, Sequence[Any]], i: int) -> Iterator[dict[str, Any]]:
    """How the state begins; of a norm each side of a gate that it takes, and several groups in every other case."""
    if op == "norm":
        for k, side in enumerate(kept["gate"]):
            yield {"gate": side, "groups": kept["groups"][(i + k) % 2 * (len(kept["groups"]) - 1)]}
        return
    together = _BEGINS if op != "conv" else _BEGINS[1:]
    yield from ({"start": start} for start in next(some for some in together if {*some} <= {*kept["start"]}))
