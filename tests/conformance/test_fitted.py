"""Kernels of a few sizes: they refuse the small cases, and are asked for options at sizes that they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conformance.asked import fitting, never_asked, not_run, takes
from conformance.cases import cases
from conformance.cases.fitted import fitted_cases, plain, size_of, usual
from conformance.cases.options import options_of, varied
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.findings import Ran
from conformance.judge import judged, trial
from conformance.kernel.arguments import SIGNATURES
from conformance.kernel.kernel import Kernel

RIGHT: Mapping[str, Callable[..., Any]] = {**FUNCTIONS, "delta_rule": delta_rule}
Fits = Callable[[Mapping[str, Any]], bool]
ONE_SIZE: Mapping[str, Fits] = {
    "selective_scan": lambda m: m["u"].shape[2] % 16 == 0 and m["A"].shape == (128, 64),
    "ssd": lambda m: m["x"].shape[1] % 64 == 0 and m["x"].shape[3] == 128 and m["B"].shape[3] == 32,
    "conv": lambda m: m["x"].shape[1] % 64 == 0 and m["x"].shape[2] % 16 == 0,
    "norm": lambda m: m["x"].shape[2] == 512,
    "delta_rule": lambda m: m["k"].shape[1] % 16 == 0 and m["k"].shape[3] == m["v"].shape[3] == 64,
    "step": lambda m: m["state"].shape[-1] == 64 and m["state"].shape[-2] % 64 == 0,
}


def one_size(op: str, loses: str = "", error: type[Exception] = ValueError) -> Kernel:
    """A kernel that takes few sizes, and ignores an operand."""

    def call(**given: Any) -> Any:
        if not ONE_SIZE[op](given):
            raise error("no such size")
        given = given if op != "delta_rule" else {name: m for name, m in given.items() if name != "chunk_size"}
        return RIGHT[op](**{name: m for name, m in given.items() if name != loses and "return" not in name})

    accepts = {name.strip() for name in SIGNATURES[op].split(",")} - {"cu_seqlens", "return_varlen_states"}
    accepts -= {"output_final_state"}
    return Kernel("of one size", op, call, frozenset(accepts))


def run(tested: Kernel) -> tuple[list[Ran], tuple[str, ...]]:
    found = list(trial(tested))
    ran = [each.case for each in found if each.finding.status in ("passed", "failed")]
    return found, never_asked(tested, [each.case for each in found], ran)


LOST = {"selective_scan": "z", "ssd": "dt_bias", "conv": "bias", "norm": "z", "delta_rule": "", "step": "D"}


@pytest.mark.parametrize("op", ONE_SIZE)
def test_a_kernel_of_one_size_is_asked_for_its_options(op: str) -> None:
    found, never = run(one_size(op, LOST[op]))
    assert never == (("Δ, A, D and a bias of each channel of a head",) if op == "step" else ())
    wrong = [each.case for each in found if each.finding.status == "failed"]
    assert bool(wrong) == bool(LOST[op])
    names = {LOST[op], LOST[op].replace("dt_bias", "delta_bias")} | ({"dt_bias"} if op == "ssd" else set())
    assert all(names & case.inputs.keys() for case in wrong)


def test_what_it_refuses_there_is_told() -> None:
    """It was asked, and ran no case with it."""

    def refuses(**given: Any) -> Any:
        if given.get("z") is not None:
            raise NotImplementedError("no gate")
        return one_size("selective_scan").call(**given)

    tested = Kernel("refuses", "selective_scan", refuses, one_size("selective_scan").accepts)
    found, never = run(tested)
    assert never == ("z",) and any("z" in each.case.inputs for each in found)


@pytest.mark.parametrize("op", RIGHT)
def test_every_option_that_a_kernel_takes_is_in_a_fitted_case(op: str) -> None:
    if op == "step":
        return
    size = next(usual(op))
    made = fitted_cases(op, size)
    assert {*varied(op)} <= {option for case in made for option in options_of(case)}
    assert {size_of(case)[:2] for case in made} == {size[:2]} and len({case.name for case in made}) == len(made)
    tested = ours(op) if op != "delta_rule" else one_size(op)
    tested = tested if op != "delta_rule" else Kernel(op, op, lambda **given: _delta(given), tested.accepts)
    assert {judged(tested, case).status for case in made} <= {"passed", "skipped"}


def _delta(given: dict[str, Any]) -> Any:
    return delta_rule(**{name: m for name, m in given.items() if name not in ("chunk_size", "output_final_state")})


def test_a_kernel_that_runs_nowhere_has_no_size() -> None:
    tested = Kernel("nowhere", "norm", lambda **_: None, ours("norm").accepts)
    assert fitting(tested, "norm", [], lambda _: False) is None
    assert fitting(tested, "norm", [], lambda case: case.inputs["x"].shape[-1] == 512)[0] == 512
    assert plain("norm", (512, 16, 0)).inputs["x"].shape == (1, 16, 512)


def test_options_by_their_arguments() -> None:
    full, bare = ours("selective_scan"), Kernel("bare", "selective_scan", print, frozenset({"u", "delta", "A"}))
    ran = [case for case in cases("selective_scan") if case.name == "one step"]
    assert ("z", True) in not_run(full, "selective_scan", ran) and not takes(bare, "selective_scan", ("z", True))
    assert takes(bare, "selective_scan", ("dtype", "bfloat16"))
    assert not takes(bare, "selective_scan", ("start", "documents"))
