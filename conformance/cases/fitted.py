"""Options at sizes that a kernel takes: one made for a few sizes refuses small cases, and they ask it for no option.

`USUAL` has sizes that such kernels are made for. Options are crossed at one of them: any three meet. Where sequences
are cut, and where documents end, all of them stand once at multiples of 16 and once anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from conformance.cases.factors import factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import OTHERS
from conformance.cases.layers import rendered
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.rendered import render
from conformance.exact import Inexact
from conformance.loader import Case

_LENGTHS = (64, 16, 128, 256, 512, 1024)
_HEADS = (64, 128, 32, 16, 256)
UNIT = 16  # where pieces and documents may end

Size = tuple[Any, int, int]
"""Sizes as rows have them, positions, and positions of a chunk (0 where an operation has no chunks)."""

_SIZES: Mapping[str, Sequence[Any]] = {
    "selective_scan": [*((channels, 1, columns) for columns in (16, 64, 128, 32) for channels in (64, 128, 256))],
    "ssd": [(heads, p, n) for heads in (4, 8) for p, n in product(_HEADS[:4], (128, 64, 16, 32))],
    "conv": [64, 128, 256, 512],
    "norm": [64, 128, 256, 512, 1024, 2048, 4096],
    "delta_rule": [(2, keys, values) for keys, values in product(_HEADS, _HEADS)],
}


def usual(op: str, steps: bool = False) -> Iterator[Size]:
    """Sizes from small to large, each of them over few positions before any over many. steps: over one and four."""
    chunked = op in ("ssd", "delta_rule")
    lengths = (4,) if steps else (16, 64) if op == "norm" else _LENGTHS
    for length in lengths:
        for sizes in _SIZES[op] if length <= 256 else _SIZES[op][:2]:
            yield sizes, length, min(length, 64) if chunked else 0
            if chunked and length in (128, 256):
                yield sizes, length, length


def size_of(case: Case) -> Size:
    """The sizes of a case, as rows have them."""
    m, chunk = case.inputs, case.options.get("chunk_size", 0)
    match case.op:
        case "selective_scan":
            _, channels, length = m["u"].shape
            return (channels, 1, m["A"].shape[1]), length, chunk
        case "ssd":
            _, length, heads, p = m["x"].shape
            return (heads, p, m["B"].shape[-1]), length, chunk
        case "conv":
            return m["x"].shape[1], m["x"].shape[2], chunk
        case "norm":
            return m["x"].shape[2], m["x"].shape[1], chunk
        case _:
            _, length, heads, keys = m["k"].shape
            return (heads, keys, m["v"].shape[-1]), length, chunk


def plain(op: str, size: Size, **levels: Any) -> Case:
    """Ordinary numbers of a size, without options but these levels of the factors."""
    return ordinary_of(op, size, levels)[0]


def ordinary_of(op: str, size: Size, levels: Mapping[str, Any]) -> list[Case]:
    """The same, and beside narrow operands the strict one."""
    return [_called(case) for case in rendered(op, _row(op, size, levels))]


def exact_of(op: str, size: Size, levels: Mapping[str, Any]) -> list[Case]:
    """Exact operands of a size, with these levels of the factors; none where the results are not exact: the delta rule
    divides by the root of the places of a key.
    """
    return [_called(case) for case in _exact(op, _row(op, size, levels))]


def _row(op: str, size: Size, levels: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[0] for name, values in fitted_factors_of(op, size).items()} | dict(levels)


def _exact(op: str, row: Mapping[str, Any]) -> list[Case]:
    try:
        return [render(op, row)]
    except Inexact:
        return []


@lru_cache(OTHERS)
def fitted_cases(op: str, size: Size, without: frozenset[Option] = frozenset()) -> tuple[Case, ...]:
    """Options crossed at a size, with exact and with ordinary numbers; without: options not to be taken."""
    found: dict[str, Case] = {}
    for row in finer(op, _rows(op, size, without), one_size=True):
        found |= {case.name: case for case in rendered_at(op, row)}
    return tuple(found.values())


def rendered_at(op: str, row: Mapping[str, Any]) -> list[Case]:
    """The cases of a row at a size: the exact one, where there is one, and those of ordinary numbers."""
    return [_called(case) for case in (*_exact(op, row), *rendered(op, row))]


def _rows(op: str, size: Size, without: frozenset[Option]) -> list[dict[str, Any]]:
    factors = fitted_factors_of(op, size)
    rows = rows_without(factors, without)
    if "start" in factors and size[1] > UNIT:
        apart = [start for start in factors["start"] if start == "pieces" or "documents" in start]
        kept = {**factors, "start": apart, "unit": [UNIT]}
        rows += rows_without(kept, without) if not {("start", start) for start in apart} <= without else []
    return rows


def fitted_factors_of(op: str, size: Size) -> dict[str, Sequence[Any]]:
    """Those of the crossing, with one size and, of a sequence, one length."""
    sizes, length, chunk = size
    found = dict(factors_of(op)) | {"sizes": [sizes], "length": [length]}
    found |= {"chunk": [chunk]} if "chunk" in found else {}
    if op == "delta_rule":
        found["spread"] = [1, 2]
    if op == "selective_scan":
        found["groups"] = [g for g in (1, 2) if sizes[0] % g == 0]
    return found


def _called(case: Case) -> Case:
    return replace(case, name=f"fitted: {case.name}")
