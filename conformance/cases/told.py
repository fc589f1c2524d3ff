"""How a kernel is told of documents, and what it is asked for beside them, each with any two of the options.

One document may fill its row, as where nothing is packed: a kernel may have another path for that. One that takes the
numbers of documents and their offsets may be told by either alone, and be asked for y, for the last state, for the
states of documents, or for both: each of these is another call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, islice
from typing import Any

from conformance.cases.factors import LAYER_STRENGTH, LENGTHS, STRENGTH, Factors, factors_of
from conformance.cases.finer import finer
from conformance.cases.fitted import UNIT, Size, fitted_factors_of, rendered_at
from conformance.cases.kept import kept
from conformance.cases.meeting import meets, rows_without
from conformance.cases.options import Option, option_of
from conformance.cases.ordinary import ROUNDED, both, share_of
from conformance.cases.rendered import render
from conformance.loader import Case

Together = frozenset[Option]
"""Options, no two of one factor."""
WAYS: dict[str, Factors] = {
    **dict.fromkeys(
        ("selective_scan", "ssd"),
        {
            "whole": [False, True],
            "told": [None, "numbers", "offsets"],
            "asked": [None, "no states", "no states of documents"],
        },
    ),
    "conv": {"whole": [False, True]},
    "delta_rule": {"whole": [False, True], "asked": [None, "no states"]},
}
"""Whether one document fills its row; by what the kernel is told of documents, where it is not as elsewhere; and which
states it is not asked for."""
WHOLE_LENGTHS = (16, 64, 70, 130, 257)  # positions, of one chunk or several, and beyond
DELTA_WHOLE_LENGTHS = (16, 64, 70, 130)
_NOT_OPTIONS = ("length", "chunk", "sizes", "spread", "unit")
_FEW = 3  # cases in which something is asked that was refused in others
_CHUNKS = {"ssd": [64, 16, 256], "delta_rule": [64, 16]}


@kept
def told_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The cases of an operation: exact ones, and those of ordinary numbers, of the stage `ROUNDED` last."""
    exact = [as_told(render(op, row), row) for row in finer(op, told_rows(op, without, lengths))]
    rows = finer(op, told_rows(op, without, lengths, LAYER_STRENGTH), rounded=True)
    ordinary = [as_told(case, row) for row in rows for case in both(op, row, share_of(op, row))]
    return (*exact, *sorted(ordinary, key=lambda case: case.stage == ROUNDED))


def fitted_told_cases(op: str, size: Size, without: frozenset[Option]) -> Iterator[Case]:
    """The same at a size that a kernel takes, which refuses those of the others: any two meet, and any three of the
    ways and of what documents begin with. Documents end at multiples of 16, where there are as many positions.
    """
    for row in finer(op, _fitted_rows(op, size, without), one_size=True):
        yield from (as_told(case, row) for case in rendered_at(op, row))


def _fitted_rows(op: str, size: Size, without: frozenset[Option]) -> list[dict[str, Any]]:
    if not (kept := _fitted_factors(op, size)):
        return []
    rows = rows_without(kept, without, LAYER_STRENGTH)
    rows += _where_ways_meet(kept, (*WAYS[op], "start"), without, rows)
    return [row for row in rows if any(row.get(name) for name in WAYS[op])]


def _fitted_factors(op: str, size: Size) -> Factors:
    factors = told_factors_of(op)
    more: Factors = {"start": factors["start"], "unit": [min(UNIT, size[1])]} if factors else {}
    return {**factors, **fitted_factors_of(op, size)} | more if factors else {}


def fitted_told_with(op: str, size: Size, some: Together, without: frozenset[Option]) -> Iterator[Case]:
    """Cases of a size with these together and as little else as may be."""
    factors = _fitted_factors(op, size)
    levels = {name: next(v for v in factors[name] if option_of(name, v)[1] == value) for name, value in some}
    kept: Factors = {name: [v for v in values if levels.get(name, v) == v] for name, values in factors.items()}
    rows = [row for row in rows_without(kept, without, 1) if levels.items() <= row.items()]
    plain = {name: values[0] for name, values in kept.items()}
    for row in sorted(rows, key=lambda row: len(row.items() - plain.items()))[:_FEW]:
        yield from (as_told(case, row) for case in rendered_at(op, row))


@cache
def ways_in_rows(op: str, without: frozenset[Option]) -> frozenset[Together]:
    """What meets in the rows above: each way with each option, and any three of the ways and what is before them."""
    rows = told_rows(op, without, strength=LAYER_STRENGTH)
    factors = told_factors_of(op) if rows else {}
    ways: Factors = {name: factors[name] for name in (*WAYS[op], "start") if name in factors}
    rows = [*rows, *(rows_without(ways, without) if len(ways) > STRENGTH - 1 else [])]
    found = ({name: option_of(name, value)[1] for name, value in row.items()} for row in rows)
    return frozenset(some for row in found for some in meeting_ways(op, row))


def meeting_ways(op: str, levels: Mapping[str, Any]) -> set[Together]:
    """Each way with each option, and any three of the ways and what documents begin with."""
    ways = {name: levels.get(name) for name in WAYS[op]}
    beside = {name: value for name, value in levels.items() if name not in (*WAYS[op], *_NOT_OPTIONS)}
    pairs = (frozenset({way, option}) for way in ways.items() if way[1] for option in beside.items())
    three = combinations((ways | {"start": levels["start"]}).items(), 3)
    return {*pairs, *(frozenset(some) for some in three if any(v and name in ways for name, v in some))}


def asked_in_name(case: Case) -> dict[str, Any]:
    """The ways of a case and whether a last state is asked for, by the words of its name: see `rendered.called`."""
    words = case.name.removeprefix("fitted: ").split(", ")
    found: dict[str, Any] = {"whole": "one for a row" in words, "last state": "last state" in words}
    told = (value for value in ("numbers", "offsets") if f"told by {value} alone" in words)
    asked = (value for value in ("no states", "no states of documents") if value in words)
    return found | {"told": next(told, None), "asked": next(asked, None)}


def told_rows(
    op: str, without: frozenset[Option], lengths: Sequence[int] = LENGTHS, strength: int = STRENGTH
) -> list[dict[str, Any]]:
    """Rows in which each way meets so many others, of them and of the options; those with none are asked elsewhere."""
    factors = told_factors_of(op, lengths)
    rows = rows_without(factors, without, strength) if factors else []
    return [row for row in rows if any(row.get(name) for name in WAYS[op])]


def told_factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed: the ways first, then the options, with fewer lengths and sizes; no document is in pieces."""
    if op not in WAYS or max(lengths) < max(WHOLE_LENGTHS):
        return {}
    options = factors_of(op, lengths)
    options |= {"length": DELTA_WHOLE_LENGTHS if op == "delta_rule" else WHOLE_LENGTHS}
    options |= {"sizes": options["sizes"][:1], "start": [start for start in options["start"] if "documents" in start]}
    options |= {"chunk": _CHUNKS[op]} if op in _CHUNKS else {}
    options |= {"spread": [1, 2]} if "spread" in options else {}
    return {**WAYS[op], **options}


def _where_ways_meet(
    factors: Factors, ways: Sequence[str], without: frozenset[Option], rows: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Rows for any three values of these factors that meet in none, each with the options of the first row beside which
    they may stand: several documents, told by offsets, of which no state is asked for, are a call of their own.
    """
    for some in rows_without({name: factors[name] for name in ways if name in factors}, without):
        if not any(some.items() <= row.items() for row in rows):
            yield from islice((full for row in rows if meets(full := row | some)), 1)


def asked_for(op: str, row: Mapping[str, Any]) -> dict[str, str]:
    """What a row without a last state says of what else is asked for: states of documents neither, if it has any."""
    packed = "documents" in row.get("start", "") and row["batch"] == 1 and "asked" in WAYS.get(op, {})
    return {"asked": "no states"} if packed and not row.get("last state", True) else {}


def placed(op: str, size: Size, row: Mapping[str, Any]) -> Iterator[tuple[Size, dict[str, Any]]]:
    """A row at a size, in all of its places: pieces and documents end anywhere, or at multiples of 16, or where another
    sequence of this length begins. None where its options may not stand together.
    """
    sizes, length, chunk = size
    apart = row.get("start") == "pieces" or "documents" in row.get("start", "")
    for positions, unit in ((length, 1), (length, UNIT), (2 * length, length)) if apart else ((length, 1),):
        levels = {**row, "unit": unit} | asked_for(op, row)
        if meets({**levels, "op": op}):
            yield (sizes, positions, chunk), levels


def as_told(case: Case, row: Mapping[str, Any]) -> Case:
    """The case of a row, without the states that nobody asks for."""
    left_out = {"no states": {*case.states}, "no states of documents": {"document_states"}}.get(
        row.get("asked") or "", ()
    )
    expected, near = (
        {name: m for name, m in group.items() if name not in left_out} for group in (case.expected, case.tolerance)
    )
    options = {**case.options} | ({"told": row["told"]} if row.get("told") else {})
    return replace(case, expected=expected, tolerance=near, options=options)
