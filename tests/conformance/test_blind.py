"""By one who had not seen a case: 21 faults, all found, and five right kernels, none called wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch

from conformance.cases import cases
from conformance.cases.factors import factors_of, wide_factors_of
from conformance.cases.finer import finer
from conformance.cases.meeting import rows_without
from conformance.cases.rendered import _scan, called
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.loader import Case
from tests.conformance import blind_right
from tests.conformance.blind import FAULTS, SCAN, SSD
from tests.conformance.pages import FOUND

RIGHT = {
    SCAN: [blind_right.double_precision, blind_right.doubling, blind_right.column_by_column],
    SSD: [blind_right.head_by_head, blind_right.one_square],
}


@cache
def of_name(op: str) -> dict[str, Case]:
    return {case.name: case for case in cases(op) if case.stage != "crossing"}


@cache
def rows_of_crossing(op: str) -> dict[str, dict[str, Any]]:
    """As the kit asks them: the rows behind these, of layers, change none of them."""
    rows = [row for each in (factors_of(op), wide_factors_of(op)) for row in rows_without(each, frozenset())]
    return {called(row): row for row in finer(op, rows)}


def case_named(op: str, name: str) -> Case:
    return of_name(op)[name] if name in of_name(op) else _scan(op, rows_of_crossing(op)[name])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found(fault: Callable[..., Any]) -> None:
    op, name, _ = FAULTS[fault]
    wrong = Kernel(fault.__name__, op, lambda **given: fault(FUNCTIONS[op], given), ours(op).accepts)
    case = case_named(op, name)
    assert judged(wrong, case).status == "failed"
    assert judged(ours(op), case).status == "passed"


def some_cases(op: str) -> Iterator[Case]:
    """All that are not crossed, and of the crossed ones some of each kind, those with a softplus among them."""
    yield from of_name(op).values()
    rows = list(rows_of_crossing(op).values())
    yield from (_scan(op, row) for row in rows[::24] if row["length"] < 1000)
    softplus = [row for row in rows if row["softplus"] and 60 < row["length"] < 70]
    yield from (_scan(op, row) for row in softplus[::3])


def test_the_page_has_these_numbers() -> None:
    at_first, now = (sum(map(bool, found)) for found in zip(*((known, name) for _, name, known in FAULTS.values())))
    assert f"| {len(FAULTS)} faults: found | {at_first} | {now} |" in FOUND
    assert f"| {sum(map(len, RIGHT.values()))} right kernels: called wrong | 2 | 0 |" in FOUND


@pytest.mark.parametrize("op", RIGHT)
def test_no_right_kernel_is_called_wrong(op: str) -> None:
    for case in some_cases(op):
        for each in RIGHT[op]:
            found = judged(kernel(each), case)
            assert found.status in ("passed", "skipped"), (each.__name__, case.name, found.says)


def test_what_cancels_in_float64_is_no_error_and_a_small_state_is_one() -> None:
    """softplus(32) is 32 + 1.3e-14 there. Without a softplus an entry must be 0 to the bit."""
    case = next(c for c in some_cases(SCAN) if c.options["delta_softplus"] and (c.expected["y"] == 0).any())
    found = case.expected["y"].clone()
    scale = float(found.abs().max())
    found[found == 0] = scale * 2.0**-41
    assert not case.wrong("y", found).any()
    assert case.wrong("y", torch.where(case.expected["y"] == 0, scale * 2.0**-39, found)).any()
    plain = of_name(SCAN)["erase or keep"]
    assert plain.wrong("y", plain.expected["y"] + 2.0**-60 * (plain.expected["y"] == 0)).any()


def test_a_state_of_nan_is_not_called_overwritten() -> None:
    """A kernel that loses a state hands NaN from piece to piece; it writes into no operand."""

    def loses(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False,
              initial_state=None):  # fmt: skip
        y, last = blind_right.doubling(u, delta, A, B, C, D, z, delta_bias, delta_softplus, True, initial_state)
        return y, last * float("nan")

    found = judged(kernel(loses), of_name(SCAN)["odd cuts"])
    assert found.status == "failed" and "nan" in found.says and "operand" not in found.says
