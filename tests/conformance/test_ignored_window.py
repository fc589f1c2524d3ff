"""A window that is ignored has its name, a coroutine leaves no warning behind, and one case is no "all cases"."""

from __future__ import annotations

import inspect

import torch

from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.faults.catalogue import kernel as ours
from conformance.faults.small import conv
from conformance.findings import Finding
from conformance.judge import judged, run, why
from conformance.kernel.signature import kernel
from conformance.report import Tested
from conformance.values import asked_values, shown
from constructions.command.conformance_shown import verdict_of


def test_a_window_that_is_ignored_is_named() -> None:
    """Also where the last piece is shorter than the window that it hands back."""

    def ignores(x, weight, bias=None, seq_idx=None, initial_states=None, activation=None):
        return conv(x, weight, bias, seq_idx, None, activation)

    short = [case for case in crossed_cases("conv") if case.inputs["x"].shape[2] < 65]
    found = [run(kernel(ignores, op="conv"), case) for case in (*cases("conv"), *short)]
    assert why(found).likely == "the initial state is ignored"


def test_a_coroutine_is_closed() -> None:
    made = []

    async def later(x):
        return x

    def norm(x, weight, z=None, eps=1e-5):
        made.append(later(x))
        return made[-1]

    assert "coroutine" in judged(kernel(norm), cases("norm")[0]).says
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_the_report_says_between_which_values_was_asked() -> None:
    of = [case for case in cases("conv") if case.inputs["x"].dtype == torch.float32][:5]
    (said,) = asked_values([run(ours("conv"), case) for case in of])
    largest = max(float(case.expected["y"].max()) for case in of)
    assert said.startswith("x ") and f"… {shown(largest)} (beside 0" in said and " y " in said
    both = [run(ours("conv"), of[0]), run(ours("norm"), cases("norm")[0])]
    assert [words.partition(":")[0] for words in asked_values(both)] == ["conv", "norm"]


def test_one_case_is_told_as_one() -> None:
    of = lambda *statuses: [Tested("k", "kernel", [Finding("step", str(i), each) for i, each in enumerate(statuses)])]
    assert verdict_of(of("passed", "failed to run")) == "1 failed to run; right: the one case that was run"
    assert verdict_of(of("failed")) == "wrong: the one case that was run"
    assert verdict_of(of("passed", "passed")) == "right: all 2 cases that were run"
