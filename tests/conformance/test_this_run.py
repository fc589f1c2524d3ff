"""What a report says is what its run did: causes, results that were compared, and names of arguments."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.asked import never_asked
from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.small import norm
from conformance.judge import run, why
from conformance.junit import junit
from conformance.kernel.signature import kernel
from conformance.keywords import looked_into
from conformance.report import Tested
from conformance.values import asked_values

SCAN = ours("selective_scan")


def scan_cases(most: int) -> list[Any]:
    """Without documents, whole, of up to so many positions."""
    plain = lambda case: not {"seq_idx", "initial_state"} & case.inputs.keys() and "cuts" not in case.options
    every = [*cases("selective_scan"), *crossed_cases("selective_scan")]
    return [case for case in every if plain(case) and case.inputs["u"].shape[2] <= most]


def losing(places: Any) -> Any:
    """A scan whose state is lost at these places of each call."""

    def call(**given: Any) -> Any:
        positions = torch.arange(given["u"].shape[2])
        numbers = sum(
            ((positions >= place).int() for place in places(len(positions))), torch.zeros_like(positions).int()
        )
        return SCAN.call(**given, seq_idx=numbers.expand(len(given["u"]), -1).contiguous())

    return replace(SCAN, call=call)


@pytest.mark.parametrize(
    ("places", "most", "said"),
    [
        (lambda _: [40], 79, "the state is lost at position 40"),
        (lambda _: [100], 300, "the state is lost at position 100"),
        (lambda length: range(100, length, 100), 300, "the state is lost every 100 steps"),
        (lambda length: range(128, length, 128), 300, "the state is lost every 128 steps"),
        (lambda _: [128], 256, "the state is lost at position 128"),
    ],
)
def test_a_loss_is_called_periodic_where_a_second_one_was_seen(places: Any, most: int, said: str) -> None:
    found = [run(losing(places), case) for case in scan_cases(most)]
    assert why(found).likely == said


def test_of_several_mistakes_each_is_needed() -> None:
    """A loss at 50 explains the cases of one loss, and one every 50 steps these as well."""
    every_50 = losing(lambda length: range(50, length, 50))
    tested = replace(every_50, call=lambda **given: every_50.call(**{**given, "D": None}))
    long = [case for case in scan_cases(300) if case.name in ("chunks of 16", "300")]
    skips = [case for case in scan_cases(20) if "D" in case.inputs and not case.tolerance][:5]
    found = [run(tested, case) for case in (*skips, *long)]
    assert len(found) == 7 and {each.finding.status for each in found} == {"failed"}
    assert why(found).likely == "D u is left out and the state is lost every 50 steps"


def test_a_step_that_does_not_read_its_state_is_named() -> None:
    """It ignores an initial state and loses that of each position: one mistake."""

    def blank(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        state.zero_()
        return FUNCTIONS["step"](state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)

    asked = [case for op in ("selective_scan", "ssd") for case in cases(op) if case.expected["y"].numel() < 500]
    found = [run(kernel(blank), case) for case in asked]
    assert any({"initial_state", "initial_states"} & each.case.inputs.keys() for each in found if each.results)
    assert why(found).likely == "the state before a position is not read"


def in_float64(**given: Any) -> Any:
    """Without D, and y as near as float64 is: no case of it is exact in its last bits."""
    given.pop("D", None)
    y, state = SCAN.call(**given)[:2]
    u = given["u"]
    return (y.double() + 2.0**-42 * y.double().abs().max()).to(
        torch.float64 if u.dtype == torch.float32 else u.dtype
    ), state


def test_a_known_mistake_is_named_where_float64_leaves_something() -> None:
    """A right kernel may leave it as well, beside a softplus or a gate."""
    some = [case for case in cases("selective_scan") if case.options["delta_softplus"] or "z" in case.inputs]
    some = [case for case in some if case.inputs["u"].dtype == torch.float32 and not case.tolerance]
    found = [run(replace(SCAN, call=in_float64), case) for case in some]
    assert "failed" in {each.finding.status for each in found} and why(found).likely == "D u is left out"


@pytest.mark.parametrize(("times", "status"), [(1, "passed"), (2, "failed")])
def test_what_returns_no_last_state_is_judged_on_none(times: int, status: str) -> None:
    """And a test has the same name, whether it is right or wrong."""
    right = ours("conv")
    call = lambda **given: times * right.call(**given)[0]
    tested = replace(right, call=call, accepts=right.accepts - {"return_final_states", "initial_states"})
    with_state = [case for case in crossed_cases("conv") if "last_state" in case.expected and len(case.inputs) < 4]
    found = [run(tested, case) for case in [*with_state[:9], *cases("conv")] if "initial_states" not in case.inputs]
    judged = [each for each in found if each.finding.status == status]
    assert judged and not any("last state" in line for line in asked_values(judged))
    assert not any(each.states for each in judged)
    (suite,) = ET.fromstring(junit([Tested("k", "kernel", [each.finding for each in judged])]))
    names = [case.get("name", "") for case in suite]
    asked = [name for name in names if "last state" in name.split("(")[0]]
    assert asked and all(name.endswith("(y alone, for it returns no last state)") for name in asked)
    right_names = {run(right, case).finding.compared for case in with_state}
    assert right_names == {""}


def test_an_epsilon_and_the_least_number_are_told() -> None:
    some = [case for case in cases("norm") if case.name in ("level", "another epsilon", "a tiny epsilon")]
    (said,) = asked_values([run(ours("norm"), case) for case in some])
    assert said.endswith(", eps 1e-10 and 1e-05 and 0.001") and "x −1,024 … 1,024 (beside 0 from 2^-12)" in said


@pytest.mark.parametrize("name", ["a tiny epsilon", "sixteen groups"])
def test_what_an_attacker_clamped_is_found(name: str) -> None:
    def call(eps: float, x: Any, group_size: int | None = None, **given: Any) -> Any:
        group_size = group_size if group_size and x.shape[-1] // group_size <= 12 else x.shape[-1]
        return ours("norm").call(x=x, eps=max(eps, 1e-6), group_size=group_size, **given)

    failed = {
        case.name for case in cases("norm") if run(replace(ours("norm"), call=call), case).finding.status == "failed"
    }
    assert failed == {"a tiny epsilon", "sixteen groups"} and name in failed


@pytest.mark.parametrize("says", ["unexpected {}", "{}: what is this?", "no"])
def test_what_an_argument_is_refused_by_may_be_said_in_any_words(says: str) -> None:
    def by_name(x, weight, eps, **kw):
        if others := kw.keys() - {"z", "group_size", "norm_before_gate"}:
            raise TypeError(says.format(others))
        return norm(x, weight, eps=eps, **kw)

    found = looked_into(kernel(by_name))
    assert found.keywords == "none" and {"z", "group_size", "norm_before_gate"} <= found.accepts
    assert "no_argument_of_any_kernel" not in found.accepts


def test_a_norm_without_a_gate_is_judged_on_no_side_of_one() -> None:
    def ungated(x, weight, eps, **kw):
        kw.pop("no_argument_of_any_kernel", None)
        return norm(x, weight, None, eps, kw.get("group_size"))

    tested = looked_into(kernel(ungated))
    assert tested.keywords == "any"
    said = {run(tested, case).finding.says for case in cases("norm") if "z" in case.inputs}
    assert said and not any("its gate is judged" in each for each in said) and all("names no" in each for each in said)


def test_numbers_of_d_for_the_channels_of_a_head_are_called_so() -> None:
    def call(**given: Any) -> Any:
        if given.get("D") is not None and given["D"].dim() == 2:
            raise NotImplementedError("one for each head")
        return ours("ssd").call(**given)

    tested = replace(ours("ssd"), call=call)
    some = [case for case in cases("ssd") if "D" in case.inputs]
    ran = [case for case in some if run(tested, case).finding.status == "passed"]
    assert "D of each channel of a head" in never_asked(tested, some, ran)
