"""What an attacker's kernels had wrong and no case asked for: channels of a head, large numbers, few sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.cases.factors import STEPS
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.loader import Case

STEP = FUNCTIONS["step"]
NEIGHBOURS = "large numbers that are neighbours"


def step(op: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Kernel:
    return Kernel("step", op, lambda **given: STEP(**given | change(given)), ours("step").accepts)


def first_channel(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Of each head, as where all channels share a number."""

    def change(given: dict[str, Any]) -> dict[str, Any]:
        m, axis = given.get(name), {"dt": 2}.get(name, 1)
        return {name: m.narrow(axis, 0, 1).expand_as(m)} if m is not None and given["state"].dim() == 4 else {}

    return change


def wrong(tested: Kernel, op: str) -> list[str]:
    return [case.name for case in cases(op) if judged(tested, case).status == "failed"]


@pytest.mark.parametrize("name", ["dt", "A", "D", "dt_bias"])
def test_channels_of_a_head_have_steps_and_decays_of_their_own(name: str) -> None:
    """selective_state_update of mamba_ssm takes such, and a step for tied ones alone was right in every case."""
    assert wrong(step("head step", first_channel(name)), "selective_scan")
    groups = [case for case in crossed_cases("selective_scan", lengths=STEPS) if case.inputs["B"].dim() == 4]
    assert "failed" in {judged(step("step", first_channel(name)), case).status for case in groups}
    if name in ("dt", "A"):
        assert {"two groups", "four groups"} & {*wrong(step("step", first_channel(name)), "selective_scan")}


@pytest.mark.parametrize("op", ["step", "head step"])
def test_a_right_step_of_heads_is_right(op: str) -> None:
    heads = [case for case in cases("selective_scan") if op == "head step" or case.inputs["B"].dim() == 4]
    seen: list[int] = []
    tested = step(op, lambda given: seen.append(given["state"].dim()) or {})
    assert {judged(tested, case).status for case in heads} <= {"passed", "skipped"} and {*seen} == {4}


def test_a_step_of_channels_takes_no_heads() -> None:
    case = next(case for case in cases("selective_scan") if case.name == "two groups")
    assert judged(step("channel step", lambda _: {}), case).says == "it takes no groups without heads"


def test_a_step_of_heads_that_gives_back_another_shape_is_told_so() -> None:
    case = next(case for case in cases("selective_scan") if case.name == "two groups")
    tested = Kernel("flat", "step", lambda **given: STEP(**given).flatten(1), ours("step").accepts)
    assert judged(tested, case).says == "y has shape (2, 16), but must have (2, 8, 2)."


def rounded(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda numbers: torch.unique(numbers.to(dtype), return_inverse=True)[1].to(torch.int32)


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "conv"])
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float32], ids=str)
def test_numbers_of_documents_are_compared_as_integers(op: str, dtype: torch.dtype) -> None:
    def call(**given: Any) -> Any:
        numbers = given.get("seq_idx")
        return ours(op).call(**given | ({} if numbers is None else {"seq_idx": rounded(dtype)(numbers)}))

    assert NEIGHBOURS in wrong(Kernel("rounded", op, call, ours(op).accepts), op)


def test_large_numbers_meet_other_options() -> None:
    """Not in one case alone: where there is a gate, or D, too."""

    def call(**given: Any) -> Any:
        numbers = given.get("seq_idx")
        return ours("ssd").call(**given | ({} if numbers is None else {"seq_idx": rounded(torch.float32)(numbers)}))

    asked = [case for case in crossed_cases("ssd") if "seq_idx" in case.inputs and case.inputs["seq_idx"].max() > 2**24]
    tested = Kernel("rounded", "ssd", call, ours("ssd").accepts)
    found = [case for case in asked if judged(tested, case).status == "failed"]
    assert {name for case in found for name in case.inputs} >= {"D", "z", "dt_bias"} and len(found) > 3


def _lost(op: str, loses: Callable[[Any], bool], name: str) -> None:
    def call(**given: Any) -> Any:
        y, last = ours(op).call(**given)
        return (y * torch.tensor(0.0 if loses(given) else 1.0), last)

    assert name in wrong(Kernel("lost", op, call, ours(op).accepts), op)


def test_sizes_that_no_case_had() -> None:
    _lost("ssd", lambda given: given["chunk_size"] == 1, "chunks of 1")
    _lost("ssd", lambda given: given["x"].shape[2] == 12, "12 heads")


def test_right_kernels_are_right_there() -> None:
    for op in ("selective_scan", "ssd", "conv"):
        asked: list[Case] = [case for case in cases(op) if case.name in (NEIGHBOURS, "12 heads", "chunks of 1")]
        assert len(asked) == {"selective_scan": 2, "ssd": 3, "conv": 1}[op]
        assert {judged(ours(op), case).status for case in asked} == {"passed"}
