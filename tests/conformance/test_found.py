"""What one more attacker had found: results and operands in another dtype, a hint by chance, defaults not asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.asked import never_asked
from conformance.cases import cases
from conformance.entries import described
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.small import conv
from conformance.faults.small import norm as right_norm
from conformance.findings import Finding
from conformance.judge import judge, judged, run
from conformance.kernel.signature import kernel
from conformance.loader import Case

DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def of_dtype(dtype: torch.dtype) -> Case:
    return next(case for case in cases("conv") if case.inputs["x"].dtype == dtype and "seq_idx" not in case.inputs)


@pytest.mark.parametrize("given", DTYPES[:3])
def test_a_result_is_in_the_dtype_of_the_operands_or_in_a_wider_one(given: torch.dtype) -> None:
    case = of_dtype(given)
    right = conv(**case.inputs, activation=case.options["activation"])[0]
    wider = {given, torch.float32, torch.float64}
    for dtype in DTYPES:
        if dtype in wider:
            case.wrong("y", right.to(dtype))
        else:
            with pytest.raises(ValueError, match=f"y is {dtype}, but the operands are {given}"):
                case.wrong("y", right.to(dtype))


CHANGES: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "numbers": (lambda m: m.add_(1), "writes into its operand"),
    "a zero": (lambda m: m.add_(0.0), "writes into its operand"),
    "a dtype": (lambda m: _put(m, m.double()), "puts another dtype in the place of its operand"),
    "other memory": (lambda m: _put(m, m.clone()), "puts other memory in the place of its operand"),
    "other numbers elsewhere": (lambda m: _put(m, m + 1), "puts other memory in the place of its operand"),
    "a shape": (lambda m: m.unsqueeze_(0), "gives another shape to its operand"),
    "strides": (lambda m: m.as_strided_(m.shape, m.stride()[::-1]), "gives other strides to its operand"),
}


def _put(m: Tensor, other: Tensor) -> None:
    m.data = other


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_done_to_an_operand_is_said(change: str) -> None:
    """Where its numbers and memory stay, nothing was written into it."""

    def scan(u, delta, A, B, C):
        y = FUNCTIONS["selective_scan"](u, delta, A, B, C)[0]
        CHANGES[change][0](A)
        return y

    inputs = {name: torch.ones(1, 2, 4) for name in ("u", "delta", "B", "C")} | {
        "A": torch.tensor([[-0.0, -1], [0, -2]])
    }
    case = Case("selective_scan", "recurrence", "square", "", inputs, {}, {"y": torch.ones(1, 2, 4).double()})
    assert judged(kernel(scan), case).says == f"it {CHANGES[change][1]} A"


def test_what_was_done_to_an_operand_of_the_call_before_is_said() -> None:
    kept: list[Tensor] = []

    def late(x, weight, eps):
        for m in kept:
            _put(m, m.double())
        kept[:] = [x]
        return right_norm(x, weight, None, eps)

    tested = kernel(late)
    first, second = (judged(tested, cases("norm")[0]) for _ in range(2))
    assert first.status == "passed"
    assert second.says == "it puts another dtype in the place of an operand of the call before, x"


def said_of(change: Callable[[Tensor], None], right: Tensor) -> str:
    case = Case("selective_scan", "crossing", "few integers", "", {"u": right}, {}, {"y": right.double()})
    change(y := right.clone())
    return described(case, {"y": case.wrong("y", y)}, {"y": y})


def test_a_multiple_is_not_called_another_channel() -> None:
    """Channel 1 is −channel 0, as small integers may be by chance."""
    right = torch.tensor([[[1.0, 2, 3, 5], [-1, -2, -3, -5], [4, 6, 7, 9]]])
    assert said_of(lambda y: y[:, 0].mul_(-1), right) == "y: only in channel 0; they are -1 times what is right"


@pytest.mark.parametrize(("differing", "told"), [(3, False), (4, True)])
def test_another_channel_is_told_where_enough_entries_say_so(differing: int, told: bool) -> None:
    """Of three channels four differing entries are enough, and three are not."""
    right = torch.tensor([[[9.0, 9, 9, 9, 9], [1, 2, 3, 1, 1], [5, 6, 7, 8, 8]]])
    right[:, 1, 3:] = 4 if differing == 4 else 3
    says = said_of(lambda y: y[:, 0].copy_(right[:, 1]), right)
    assert ("channel 0 has that of channel 1" in says) == told


def norm(x, weight, z=None, eps=1e-6, group_size=None, norm_before_gate=True):
    return right_norm(x, weight, z, eps, group_size, norm_before_gate)


def required(x, weight, z, eps, group_size, norm_before_gate):
    return right_norm(x, weight, z, eps, group_size, norm_before_gate)


def reads_pairs(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=False):
    return right_norm(x, weight, z, eps, group_size or 2, norm_before_gate)


def never(function: Any) -> tuple[str, ...]:
    of = cases("norm")
    tested = kernel(function)
    found: list[Finding] = [run(tested, case).finding for case in of]
    assert {each.status for each in found} == {"passed"}
    return never_asked(tested, of, of)


def test_a_default_that_no_case_gave_is_named() -> None:
    assert never(norm) == ("eps left out (1e-06)",) and never(required) == ()


def test_one_group_by_default_that_was_always_refused_is_named() -> None:
    def numbers(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
        if group_size is None:
            raise NotImplementedError("the size of a group")
        return right_norm(x, weight, z, eps, group_size, norm_before_gate)

    of = cases("norm")
    ran = [case for case in of if run(kernel(numbers), case).finding.status == "passed"]
    assert 10 < len(ran) < len(of) and "group_size left out (None)" in never_asked(kernel(numbers), of, ran)


def test_a_default_of_group_size_is_asked_for() -> None:
    assert "failed" in {each.status for each in judge(kernel(reads_pairs), cases("norm"))}
