"""What the report says of sizes: no case is beyond it, and some case reaches each end; what it calls dense is dense."""

from __future__ import annotations

import re
from typing import Any

import pytest
from torch import Tensor

from conformance.cases import OPERATIONS, cases
from conformance.cases.crossed import crossed_cases
from conformance.faults.catalogue import kernel as ours
from conformance.kernel import Kernel
from conformance.layouts import laid_out
from conformance.report import try_kernel
from conformance.sizes import asked_sizes, frontier

POSITIONS = {"selective_scan": ("u", 2), "ssd": ("x", 1), "conv": ("x", 2), "norm": ("x", 1), "delta_rule": ("v", 1)}
FIRST = {"selective_scan": ("u", 1), "ssd": ("x", 2), "conv": ("x", 1), "norm": ("x", 2), "delta_rule": ("v", 2)}
"""Of the first size that is told: channels, or heads."""
each = pytest.mark.parametrize("op", POSITIONS)


def test_the_frontier_has_what_nothing_exceeds_in_both() -> None:
    assert frontier({(1, 5), (2, 5), (3, 1), (2, 4), (3, 0)}) == [(2, 5), (3, 1)]
    assert frontier({(4, 1)}) == [(4, 1)]


@each
def test_no_case_is_beyond_what_is_told_and_each_end_is_reached(op: str) -> None:
    ran = [*cases(op), *crossed_cases(op)]
    (told,) = asked_sizes(ran)
    first = told.split(";")[0].replace(",", "")
    ends = [(int(most), int(size)) for most, size in re.findall(r"(\d+) with up to (\d+)", first)]
    have = set()
    for case in ran:
        (name, time), (sized, axis) = POSITIONS[op], FIRST[op]
        have.add((case.inputs[name].shape[time], case.inputs[sized].shape[axis]))
    assert set(ends) <= have and len(ends) > 1
    assert all(any(most <= end and size <= large for end, large in ends) for most, size in have)


@each
def test_what_is_called_dense_is_dense_in_every_case(op: str) -> None:
    ran = [*cases(op), *crossed_cases(op)]
    (told,) = asked_sizes(ran)
    always = told.partition("always dense: ")[2].split(", ")
    found: dict[str, bool] = {}
    for case in ran:
        for name, m in laid_out(op, case, case.inputs).items():
            if isinstance(m, Tensor):
                found[name] = found.get(name, True) and m.is_contiguous()
    assert {name for name, dense in found.items() if dense} == set(always)


def test_several_operations_are_told_by_name() -> None:
    told = list(asked_sizes([case for op in OPERATIONS if op in POSITIONS for case in crossed_cases(op)[:3]]))
    assert [line.partition(":")[0] for line in told] == [op for op in OPERATIONS if op in POSITIONS]


def test_a_kernel_is_told_the_sizes_of_the_cases_that_it_ran() -> None:
    """This one takes no more than sixteen channels."""

    def small(**given: Any) -> Any:
        if given["x"].shape[-1] > 16:
            raise NotImplementedError("up to 16 channels")
        return ours("norm").call(**given)

    kernel, _ = try_kernel(Kernel("small", "norm", small, ours("norm").accepts))
    assert kernel.sizes[0].startswith("channels: positions up to 140 with up to 16;")
    assert kernel.to_json()["sizes"] == list(kernel.sizes)
