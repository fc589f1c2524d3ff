"""What is said of operands that are parts of wider tensors is said of the calls, and not of the names of cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

from conformance.asked import never_asked, told_apart
from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.faults.catalogue import kernel as ours
from conformance.findings import Ran
from conformance.judge import run
from conformance.kernel.kernel import Kernel
from conformance.kernel.layouts import laid_out, viewed
from conformance.sizes import asked_sizes
from conformance.together import never_met

ANY = "operands that are parts of wider tensors"
ALL = "all operands as parts of wider tensors at once"
Refuses = Callable[[dict[str, Any]], bool]


def refusing(op: str, refuses: Refuses) -> tuple[Kernel, list[Ran]]:
    """A right kernel that does not take some calls, on the cases without and with other layouts."""

    def call(**given: Any) -> Any:
        if refuses(given):
            raise NotImplementedError("dense alone")
        return ours(op).call(**given)

    made = replace(ours(op), call=call)
    return made, [run(made, case) for case in (*cases(op)[:20], *crossed_cases(op))]


def said(made: Kernel, found: list[Ran]) -> list[str]:
    ran = [each for each in found if each.finding.status == "passed"]
    strided = any(each.strided for each in ran)
    one = never_asked(made, [each.case for each in found], [each.case for each in ran], strided)
    return [*one, *never_met(made, found)]


def dense(m: Any) -> bool:
    return not isinstance(m, Tensor) or m.is_contiguous()


def test_one_operand_that_is_no_view_does_not_make_the_others_dense() -> None:
    """The others were parts of wider tensors beside it, with every option."""
    made, found = refusing("selective_scan", lambda given: not dense(given["B"]))
    told = said(made, found)
    assert any(ALL in each for each in told) and not any(ANY in each for each in told)


def test_where_every_view_is_refused_all_operands_are_called_dense() -> None:
    """And a case of mixed layouts that are all dense counts for none."""
    made, found = refusing("conv", lambda given: not all(map(dense, given.values())))
    ran = [each for each in found if each.finding.status == "passed"]
    mixed = [each for each in ran if each.case.options.get("views") == "mixed"]
    assert mixed and not any(each.strided for each in ran)
    told = said(made, found)
    assert ANY in told and "views mixed" in told and not any("with views mixed" in each for each in told)
    assert any("always dense: every operand" in each for each in asked_sizes(ran))


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "conv", "norm", "delta_rule"])
def test_views_count_where_an_operand_is_one(op: str) -> None:
    for case in crossed_cases(op)[::3]:
        views = [value for name, value in told_apart(case) if name == "views"]
        given = laid_out(op, case, case.inputs)
        strided = [name for name in viewed(case) if name in given and not given[name].is_contiguous()]
        long = [name for name in strided if sum(size > 1 for size in given[name].shape) > 1]
        assert bool(views and views[0]) == bool(case.options.get("views") and long), case.name
