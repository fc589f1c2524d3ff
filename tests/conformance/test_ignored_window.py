"""A window that is ignored has its name, a coroutine leaves no warning behind, and one case is no "all cases"."""

from __future__ import annotations

import warnings

from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.faults.small import conv
from conformance.findings import Finding
from conformance.judge import judged, run, why
from conformance.kernel import kernel
from conformance.report import Tested
from constructions.command.conformance import _verdict


def test_a_window_that_is_ignored_is_named() -> None:
    """Also where the last piece is shorter than the window that it hands back."""

    def ignores(x, weight, bias=None, seq_idx=None, initial_states=None, activation=None):
        return conv(x, weight, bias, seq_idx, None, activation)

    short = [case for case in crossed_cases("conv") if case.inputs["x"].shape[2] < 65]
    found = [run(kernel(ignores, op="conv"), case) for case in (*cases("conv"), *short)]
    assert why(found).likely == "the initial state is ignored"


def test_a_coroutine_is_closed() -> None:
    async def norm(x, weight, z=None, eps=1e-5):
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "coroutine" in judged(kernel(norm), cases("norm")[0]).says


def test_one_case_is_told_as_one() -> None:
    of = lambda *statuses: [Tested("k", "kernel", [Finding("step", str(i), each) for i, each in enumerate(statuses)])]
    assert _verdict(of("passed", "failed to run")) == "1 failed to run; right: the one case that was run"
    assert _verdict(of("failed")) == "wrong: the one case that was run"
    assert _verdict(of("passed", "passed")) == "right: all 2 cases that were run"
