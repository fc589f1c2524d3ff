"""Each operand is asked for all its bits, but those of a decay; and a state is float32 beside any operands."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from compiler.runtime.selective_scan import selective_scan
from conformance.cases import OPERATIONS, cases
from conformance.faults.catalogue import kernel as right
from conformance.faults.delta import faulty
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from tests.conformance.pages import CASES, in_one_line

DECAYS = {"A", "g"}  # exp of them is exact only as 0 and 1, whatever bits they have
STEP = ("x", "dt", "B", "C", "D", "z", "dt_bias")


def operands(op: str) -> list[str]:
    """All that hold floats in some case, but decays."""
    given = {name: m for case in cases(op) for name, m in case.inputs.items() if m.is_floating_point()}
    return sorted(given.keys() - DECAYS)


def of_eleven_bits(number: Tensor) -> Tensor:
    """As TF32 and half have them."""
    mantissa, exponent = torch.frexp(number.float())
    return torch.ldexp((mantissa * 2**11).round() / 2**11, exponent).to(number.dtype)


def rounds(tested: Kernel, operand: str) -> Kernel:
    def call(*state, **given):
        if given.get(operand) is not None:
            given |= {operand: of_eleven_bits(given[operand])}
        return tested.call(*state, **given)

    return replace(tested, call=call)


def wrong(tested: Kernel) -> set[str]:
    asked = [case for op in tested.operations() for case in cases(op) if case.stage == "precision"]
    return {case.name for case in asked if judged(tested, case).status == "failed"}


EACH = [(op, name) for op in OPERATIONS for name in operands(op)] + [("step", name) for name in STEP]


@pytest.mark.parametrize(("op", "operand"), EACH)
def test_an_operand_that_is_rounded_to_eleven_bits_is_found(op: str, operand: str) -> None:
    tested = faulty() if op == "delta_rule" else right(op)
    assert wrong(tested) == set()
    assert wrong(rounds(tested, operand))


def test_the_page_names_what_is_not_asked_for_its_bits() -> None:
    assert "every operand but a decay (A, and g of the delta rule" in in_one_line(CASES)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half])
def test_a_state_in_the_dtype_of_the_operands_is_wrong(dtype: torch.dtype) -> None:
    """Also where it holds the same numbers."""

    def scan(u, delta, A, B, C, D=None, return_last_state=False):
        y, state = selective_scan(u, delta, A, B, C, D, return_last_state=True)
        return (y, state.to(u.dtype)) if return_last_state else y

    case = next(c for c in cases("selective_scan") if c.inputs["u"].dtype == dtype and "last_state" in c.expected)
    nothing = lambda tensors: {name: 0 * m for name, m in tensors.items()}
    exact = replace(case, inputs=nothing(case.inputs), expected=nothing(case.expected))
    told = f"last_state is {dtype}, but a state must be float32, whatever the operands are."
    assert judged(kernel(scan), exact).says == told
    assert judged(kernel(selective_scan), exact).status == "passed"
