"""Sizes of which several are equal: whatever is read or handed back transposed there, and only there, is found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import pytest
from torch import Tensor

from conformance.cases import OPERATIONS
from conformance.cases.crossed import crossed_cases, equal_rows
from conformance.cases.equal import EQUAL
from conformance.cases.factors import STEPS, factors_of
from conformance.cases.kinds import all_of
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import faulty
from conformance.features import apart, sizes
from conformance.judge import judged, trial
from conformance.kernel.kernel import Kernel
from conformance.loader import Case
from tests.conformance.pages import CASES, in_one_line
from tests.conformance.test_crossing import is_asked, met

RESULTS = ("y", "last_state")
STATE_TURNED, INITIAL_TURNED, A_TURNED = ("last_state", 1, 2), ("initial_state", 1, 2), ("A", 0, 1)


def axes(op: str, sizes: Mapping[str, Any]) -> dict[str, int]:
    """How long each axis of an operation is, and how many chunks there are and how many positions each has."""
    found = {"rows": sizes["batch"], "positions": sizes["length"]}
    if "chunk" in sizes:
        found |= {"a chunk": sizes["chunk"], "chunks": -(-sizes["length"] // sizes["chunk"])}
    match op, sizes["sizes"]:
        case "selective_scan", (heads, channels, columns):
            found |= {"channels": heads * channels, "columns": columns, "groups": sizes["groups"]}
        case "ssd", (heads, channels, columns):
            found |= {"heads": heads, "channels": channels, "columns": columns, "groups": sizes["groups"]}
        case "delta_rule", (heads, keys, values):
            found |= {"heads of k": heads, "heads": heads * sizes["spread"], "keys": keys, "channels": values}
        case "conv", channels:
            found |= {"channels": channels, "taps": sizes["taps"]}
        case "norm", channels:
            found |= {"channels": channels, "groups": sizes["groups"], "a group": channels // sizes["groups"]}
    return found


NEVER = {("a chunk", "chunks"), ("positions", "chunks")}
NEVER |= {("rows", "a chunk"), ("a chunk", "heads"), ("a chunk", "heads of k")}  # of the delta rule alone: 16 of each
"""Chunks are of the inside of a kernel alone; with as many of them as one has positions a case is long."""


@pytest.mark.parametrize("op", OPERATIONS)
def test_any_two_axes_are_equal_in_some_case(op: str) -> None:
    found = [axes(op, sizes) for sizes in EQUAL[op]]
    pairs = combinations(found[0], 2)
    lacking = {pair for pair in pairs if not any(each[pair[0]] == each[pair[1]] > 1 for each in found)}
    assert lacking <= NEVER and (op == "delta_rule" or len(lacking) < 3), lacking


UNEQUAL = {"delta_rule": {("rows", "a chunk"), ("a chunk", "heads of k"), ("positions", "chunks")}}
"""Of an operation the pairs that are as many in none of its exact cases: the page names them."""


def counts(case: Case) -> dict[str, int]:
    """How many of each thing that the page lists a case has."""
    found = sizes(case)
    if case.op == "delta_rule":
        found["heads of k"] = case.inputs["k"].shape[2]
    if "chunk_size" in case.options:
        found["a chunk"] = case.options["chunk_size"]
        found["chunks"] = math.ceil(found["positions"] / found["a chunk"])
    return found


@pytest.mark.parametrize("op", OPERATIONS)
def test_which_two_are_as_many_in_no_case_is_told(op: str) -> None:
    found = [counts(case) for case in all_of(op) if not case.tolerance]
    equal = lambda one, other: any(1 < each.get(one, 0) == each.get(other, 0) for each in found)
    names = sorted({name for each in found for name in each})
    pairs = {frozenset(pair) for pair in combinations(names, 2) if not equal(*pair)}
    assert pairs == {frozenset(pair) for pair in UNEQUAL.get(op, ())}
    never = "no case has as many rows or heads of k as a chunk positions, nor as many chunks as positions"
    assert f"(of the delta rule {never})." in in_one_line(CASES)


@pytest.mark.parametrize("op", OPERATIONS)
def test_any_two_options_meet_at_each_of_these_sizes(op: str) -> None:
    own = EQUAL[op][0].keys()
    rows = [{**row, "equal": str({name: row[name] for name in own})} for row in equal_rows(op)]
    factors = {name: values for name, values in factors_of(op).items() if name not in own}
    assert met(rows, factors | {"equal": sorted({row["equal"] for row in rows})}, 2, partial(is_asked, op))
    assert len({row["equal"] for row in rows}) == len(EQUAL[op])


@cache
def equal_cases(op: str) -> list[Case]:
    return crossed_cases(op)[-len([*equal_rows(op)]) :]


def right(op: str) -> Kernel:
    return faulty() if op == "delta_rule" else ours(op)


def turned(op: str, name: str, one: int, other: int) -> Kernel:
    """A right kernel, but that it reads an operand, or hands a result back, with two axes exchanged if both are as
    long.
    """

    def exchanged(m: Tensor) -> Tensor:
        there = m.dim() > max(one, other) and m.shape[one] == m.shape[other]
        return m.transpose(one, other).contiguous() if there else m

    def call(**given: Any) -> Any:
        if given.get(name) is not None:
            given[name] = exchanged(given[name])
        found = right(op).call(**given)
        if name not in RESULTS:
            return found
        found, at = list(found) if isinstance(found, tuple) else [found], RESULTS.index(name)
        if at < len(found) and found[at] is not None:
            found[at] = exchanged(found[at])
        return tuple(found) if len(found) > 1 else found[0]

    return replace(right(op), call=call)


def square(op: str) -> Iterator[tuple[str, int, int]]:
    """Every operand and result, with two axes of it that are as long in some of these cases."""
    found: dict[tuple[str, int, int], None] = {}
    for case in equal_cases(op):
        for name, m in (*case.inputs.items(), *case.expected.items()):
            for one, other in combinations(range(m.dim()), 2):
                if m.shape[one] == m.shape[other] > 1 and name not in ("seq_idx", "document_states"):
                    found[name, one, other] = None
    yield from found


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operand_and_result_that_is_transposed_where_it_is_square_is_found(op: str) -> None:
    faults = [*square(op)]
    for name, m in equal_cases(op)[0].inputs.items():
        assert m.dim() < 2 or name in {fault[0] for fault in faults}, f"{name} is never square"
    missed = [fault for fault in faults if not any(judged(turned(op, *fault), c).wrong for c in equal_cases(op))]
    assert missed == []


@pytest.mark.parametrize("op", OPERATIONS)
def test_our_functions_are_right_there(op: str) -> None:
    assert {judged(right(op), case).status for case in equal_cases(op)} == {"passed"}


@pytest.mark.parametrize("fault", [STATE_TURNED, INITIAL_TURNED, A_TURNED], ids=lambda fault: fault[0])
def test_a_scan_that_takes_as_many_columns_as_channels_the_wrong_way_round(fault: tuple[str, int, int]) -> None:
    """An attacker wrote these three when one case had such sizes, of 1,000, and asked for no state."""
    found = [*trial(turned("selective_scan", *fault))]
    wrong = [each.case for each in found if each.finding.status == "failed"]
    others = [each.case for each in found if each.finding.status == "passed"]
    assert {case.stage for case in wrong} == {"crossing"} and len(wrong) > 9
    if fault == INITIAL_TURNED:
        assert apart(wrong, others) == ["initial state and as many channels as state columns"]


def test_a_step_meets_as_many_columns_as_channels_too() -> None:
    rows = [*equal_rows("selective_scan", frozenset(), STEPS)]
    assert {row["length"] for row in rows} == {4}
    assert any(row["sizes"] == (5, 1, 5) and row["batch"] == 1 for row in rows)


def test_what_a_kernel_does_not_take_is_in_no_row() -> None:
    without = frozenset({("groups", 2), ("batch", 2), ("start", "documents")})
    rows = [*equal_rows("ssd", without)]
    assert rows and {(row["groups"], row["batch"]) for row in rows} == {(1, 1)}
    assert "documents" not in {row["start"] for row in rows}
