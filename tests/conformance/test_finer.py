"""What is crossed as several rows, groups, heads or documents is many numbers, and each meets every option."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from conformance.cases import OPERATIONS
from conformance.cases.crossed import crossed_cases
from conformance.cases.factors import STRENGTH, factors_of, wide_factors_of
from conformance.cases.finer import DOCUMENTS, GROUPS, ROWS, finer
from conformance.cases.meeting import rows_without
from conformance.cases.packing import SHIFTS
from conformance.loader import ends_of_documents

Row = dict[str, Any]
SCANS = ("selective_scan", "ssd")
OWN = ("batch", "groups", "sizes", "spread", "documents", "shift")
"""Factors that get numbers; length decides how many there may be."""


@cache
def rows(op: str) -> tuple[list[Row], list[Row]]:
    """Those of three options, before and after."""
    each = [wide_factors_of(op), factors_of(op)] if op in SCANS else [factors_of(op)]
    before = [row for factors in each for row in rows_without(factors, frozenset(), STRENGTH)]
    return before, finer(op, before)


def not_met(found: Sequence[Row], name: str, numbers: Sequence[Any]) -> set[tuple[Any, str, Any]]:
    """Each number and the levels of other options that stand beside it in no row, though beside another."""
    beside = {number: levels(row for row in found if row.get(name) == number) for number in numbers}
    every = set().union(*beside.values())
    return {(number, *level) for number in numbers for level in every - beside[number]}


def levels(found: Any) -> set[tuple[str, Any]]:
    return {level for row in found for level in row.items() if level[0] not in (*OWN, "length", "chunk", "unit")}


@pytest.mark.parametrize("op", OPERATIONS)
def test_no_row_is_added_and_no_other_option_changed(op: str) -> None:
    kept: Callable[[Mapping[str, Any]], Row] = lambda row: {key: row[key] for key in row if key not in OWN}
    before, after = rows(op)
    assert [kept(row) for row in before] == [kept(row) for row in after] and before != after


@pytest.mark.parametrize("op", OPERATIONS)
def test_each_number_of_rows_meets_every_option(op: str) -> None:
    found = rows(op)[1]
    few = {(2, "views", "mixed")} if op == "norm" else set()  # 40 rows have no room for more
    assert {row["batch"] for row in found} == {1, *ROWS} and not_met(found, "batch", ROWS) == few


@pytest.mark.parametrize("op", [*SCANS, "conv"])
def test_each_number_of_documents_meets_every_option(op: str) -> None:
    assert not not_met(rows(op)[1], "documents", DOCUMENTS)


@pytest.mark.parametrize("op", [*SCANS, "conv"])
def test_each_row_that_borders_begin_with_meets_every_option(op: str) -> None:
    assert not not_met(rows(op)[1], "shift", SHIFTS)


@pytest.mark.parametrize("op", SCANS)
def test_numbers_of_groups_meet_every_option(op: str) -> None:
    """Seven are of 14 heads, which are crossed for the scan alone, and nine of the 36 heads of a layer."""
    found, beyond = rows(op)[1], {7, 9} if op == "ssd" else {9}
    assert {row["groups"] for row in found} == {1, *GROUPS} - beyond and not not_met(found, "groups", (2, 3, 4))
    assert all(row["sizes"][0] % row["groups"] == 0 for row in found)


@pytest.mark.parametrize("op", OPERATIONS)
def test_so_many_rows_and_documents_are_in_the_operands(op: str) -> None:
    found = crossed_cases(op)
    assert {1, *ROWS} <= {len(next(iter(case.inputs.values()))) for case in found}
    ids = [row for case in found if "seq_idx" in case.inputs for row in case.inputs["seq_idx"]]
    counts = [len(ends_of_documents(row)) for row in ids]
    assert op == "norm" or all(sum(count > most for count in counts) > 9 for most in (8, 20, 40))
