"""Every injected bug is caught, at the stage that names it; the same functions without a bug pass everything."""

from __future__ import annotations

import pytest
import torch

from conformance.cases import cases, drawn
from conformance.cases.companion import companion_cases
from conformance.faults.catalogue import FUNCTIONS, Fault, faults, kernel
from conformance.faults.runtime import MODEL_BUGS, FaultyRuntime
from conformance.faults.table import caught, caught_by_models, small_models
from conformance.judge import judge
from conformance.models.judge import judge_model
from tests.spread import some

FAULTS = list(faults())


def test_there_are_as_many_bugs_as_the_page_says() -> None:
    assert len({fault.bug for fault in FAULTS} | set(MODEL_BUGS)) >= 55
    assert len(FAULTS) == len({(fault.op, fault.bug) for fault in FAULTS})


@pytest.mark.parametrize("op", FUNCTIONS)
def test_nothing_is_said_of_what_is_right(op: str) -> None:
    tested = kernel(op)
    found = [f for each in tested.operations() for f in judge(tested, [*cases(each), *companion_cases(each)])]
    assert {finding.status for finding in found} <= {"passed", "skipped"}
    assert sum(finding.status == "passed" for finding in found) >= 15


@pytest.mark.parametrize("op", FUNCTIONS)
def test_every_bug_of_a_kernel_is_caught_at_its_stage(op: str) -> None:
    tried = some([fault for fault in FAULTS if fault.op == op], 0.15)
    wrong = {fault: stage for fault in tried if (stage := caught(fault)) != fault.stage}
    assert not wrong
    for each in kernel(op).operations():  # the cases are kept: no bug has written into them
        for kept, anew in zip(cases(each), drawn(each), strict=True):
            assert all(torch.equal(tensor, anew.inputs[name]) for name, tensor in kept.inputs.items()), kept.name
            assert all(torch.equal(tensor, anew.expected[name]) for name, tensor in kept.expected.items()), kept.name


@pytest.fixture(scope="module")
def models():
    return small_models()


def test_a_right_runtime_passes(models) -> None:
    found = [finding for case in models for finding in judge_model(FaultyRuntime(), case)]
    assert {finding.status for finding in found} == {"passed"}


@pytest.mark.parametrize("bug, mode", MODEL_BUGS.items())
def test_every_bug_of_a_runtime_is_caught_in_its_mode(bug: str, mode: str, models) -> None:
    assert caught_by_models(bug, models) == mode


def test_a_bug_that_is_no_bug_is_not_caught() -> None:
    assert caught(Fault("norm", "no such bug", "recurrence")) == ""
