"""Documents begin at every border that the page lists, in the first row and in others, whatever a kernel takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import pytest

from conformance.cases import crossed
from conformance.cases.beginnings import at_every_border
from conformance.cases.borders import CHUNKS_OF
from conformance.cases.crossed import crossed_cases
from conformance.cases.factors import CHUNK_SIZES
from conformance.cases.kinds import all_of
from conformance.cases.options import PACKED_ROWS, Option
from conformance.cases.packing import documents_of
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged
from tests.conformance.pages import CASES, in_one_line

BORDERS, LONGEST = (64, 128, 192, 256, 512, 1024), 1025
PLACES = {border + beside for border in BORDERS for beside in (-1, 0, 1)} - {LONGEST}
"""On each border, before it and behind it; behind the last there is no position."""
BOTH_WAYS = {(place, first) for place in PLACES for first in (True, False)}

PIECES, STATE = [("start", "pieces")], [("start", "state"), ("start", "pieces"), ("start", "state and documents")]
ARGUMENTS: dict[str, list[tuple[Option, ...]]] = {
    "selective_scan": [((name, True),) for name in ("D", "z", "bias", "softplus")],
    "conv": [(("bias", True),), (("activation", "silu"), ("activation", "swish"))],
}
"""What a kernel without an argument does not take."""


def subsets(op: str) -> Iterator[frozenset[Option]]:
    """What is not taken: by a kernel without some of these arguments, with a state, in pieces too, or without one."""
    some = ARGUMENTS[op]
    for count in range(len(some) + 1):
        for lacking in combinations(some, count):
            yield from (frozenset([*chain(*lacking), *start]) for start in ([], PIECES, STATE))


def begun(documents: Iterable[list[list[int]]]) -> set[tuple[int, bool]]:
    """Where documents begin, and whether in the first row; documents: their lengths, by row, of each case."""
    found = set()
    for rows in documents:
        for i, lengths in enumerate(rows):
            found |= {(sum(lengths[:k]), i == 0) for k in range(1, len(lengths))}
    return found


def lengths_of(case: Any) -> list[list[int]]:
    """The lengths of the documents of each row, read off their numbers."""
    found = []
    for row in case.inputs["seq_idx"].tolist():
        ends = [i for i in range(1, len(row)) if row[i] != row[i - 1]]
        found.append([stop - start for start, stop in zip([0, *ends], [*ends, len(row)], strict=True)])
    return found


@pytest.mark.parametrize("op", ARGUMENTS)
def test_documents_begin_at_every_border_over_all_exact_cases(op: str) -> None:
    """An attacker's convolution missed the border at 1,024 of the first row, where none began."""
    packed = [case for case in all_of(op) if "seq_idx" in case.inputs and not case.tolerance]
    assert begun(map(lengths_of, packed)) >= BOTH_WAYS
    listed = f"{', '.join(map(str, BORDERS[:-1]))} and 1,024 (behind 1,024 there is no position)"
    assert "each of these in the first row and in others" in in_one_line(CASES) and listed in in_one_line(CASES)


@pytest.mark.parametrize("in_one_row", [False, True], ids=["numbers", "offsets"])
@pytest.mark.parametrize("op", ARGUMENTS)
def test_documents_begin_there_whichever_arguments_a_kernel_lacks(
    op: str, in_one_row: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is told by offsets alone has one row."""
    monkeypatch.setattr(crossed, "render", lambda op, row: documents_of(row))
    wanted = {place for place in BOTH_WAYS if place[1] or not in_one_row}
    for lacking in subsets(op):
        without = lacking | {PACKED_ROWS} if in_one_row else lacking
        found = begun(crossed_cases.__wrapped__(op, frozenset(without)))
        assert found >= wanted, (sorted(wanted - found), lacking)


def test_of_ssd_they_begin_at_the_first_border_of_a_chunk_and_the_second() -> None:
    """At each usual size; the page names the one at which some stand in the first row only."""
    begins: dict[int, set[tuple[int, int, bool]]] = {size: set() for size in CHUNKS_OF["ssd"]}
    for case in (case for case in all_of("ssd") if "seq_idx" in case.inputs and not case.tolerance):
        size = case.options["chunk_size"]
        there = begun([lengths_of(case)])
        begins[size] |= {(count, place - count * size, first) for count in (1, 2) for place, first in there}
    every = {(count, beside, first) for count in (1, 2) for beside in (-1, 0, 1) for first in (True, False)}
    for size in CHUNK_SIZES:
        excepted = {(2, beside, False) for beside in (-1, 0, 1)} if size == 128 else set()
        assert every - excepted <= begins[size], size
    assert "at chunks of 128 the second end is asked in the first row alone" in in_one_line(CASES)


@pytest.mark.parametrize("first", [True, False], ids=["first row", "other rows"])
def test_a_border_that_is_missed_in_some_rows_is_found(first: bool) -> None:
    """At 1,024, with an initial state among the arguments and without."""

    def blind(**given: Any) -> Any:
        ids = given.get("seq_idx")
        if ids is not None and ids.shape[1] > 1024:
            ids = ids.clone()
            rows = slice(0, 1) if first else slice(1, None)
            ids[rows, 1024:] = ids[rows, 1023:1024]
            given["seq_idx"] = ids
        return FUNCTIONS["conv"](**given)

    for start in ([], STATE):
        right = ours("conv")
        accepts = right.accepts - ({"initial_states"} if start else set())
        packed = [case for case in crossed_cases("conv", frozenset(start)) if "seq_idx" in case.inputs]
        found = {judged(replace(right, call=blind, accepts=accepts), case).status for case in packed}
        assert found == {"passed", "failed"}


def test_rows_that_have_every_border_stay_as_they_are() -> None:
    row = {"length": LONGEST, "batch": 9, "start": "documents"}
    rows = [{**row, "shift": shift} for shift in (0, 1, 2)]
    assert at_every_border(rows) == rows
    lacking = [rows[0], rows[0], rows[1]]
    assert sum(one != other for one, other in zip(lacking, at_every_border(lacking), strict=True)) == 1
    assert at_every_border(rows[:1]) == rows[:1]  # no change of one row begins at more
