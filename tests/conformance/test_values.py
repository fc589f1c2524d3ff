"""How large the numbers of the cases are, and that what is clamped among them is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.cases import cases
from conformance.cases.companion import companion_cases
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged, run, trial
from conformance.kernel.kernel import Kernel
from conformance.sizes import asked_sizes
from conformance.values import WRITES, Values, asked_values, shown, values, values_of, writing_steps

FLOAT16 = torch.finfo(torch.half).max
STEPS = {"selective_scan": "delta", "ssd": "dt"}


def clamped(op: str, name: str, **limits: float) -> Kernel:
    def call(**given: Any) -> Any:
        return ours(op).call(**given | {name: given[name].clamp(**limits)})

    return replace(ours(op), call=call)


@pytest.mark.parametrize("op", STEPS)
def test_a_step_beyond_float16_and_a_rate_far_below_are_asked(op: str) -> None:
    """An attacker clamped steps at 60,000, and A at −1,000: every case came out right then."""
    assert values(op)[WRITES].largest > FLOAT16 and values(op)["A"].least < -(2.0**20)
    found = {"step of 2^17": (STEPS[op], {"max": 60000.0}), "erase in a tiny step": ("A", {"min": -1000.0})}
    for case, (name, limits) in found.items():
        tested = clamped(op, name, **limits)
        assert [each.name for each in cases(op) if judged(tested, each).status == "failed"] == [case]


def test_a_step_counts_where_something_is_written() -> None:
    """Behind bias, softplus and limits; a step of 2^24 beside u = 0 only erases."""
    spiked = next(case for case in cases("ssd") if case.name == "a step of 2^24")
    assert float(spiked.inputs["dt"].max()) == 2.0**24 > values("ssd")[WRITES].largest
    limited = next(case for case in cases("ssd") if case.name == "limits")
    assert {*writing_steps(limited).tolist()} == {2.0, 32.0, 64.0}


def test_values_are_those_of_the_entries() -> None:
    found = Values().and_those_of(torch.tensor([0.0, -3.0])).and_those_of(torch.tensor([0.5, 2.0]))
    assert (found.least, found.largest, found.smallest) == (-3.0, 2.0, 0.5)


@pytest.mark.parametrize("op", ["conv", "norm"])
def test_a_kernel_that_takes_all_options_is_asked_nothing_beyond_the_table(op: str) -> None:
    ran = [*trial(ours(op)), *(run(ours(op), case) for case in companion_cases(op))]
    found = values_of((each.case, each.results or ()) for each in ran)
    assert found.keys() == values(op).keys()
    for name, all_of_it in values(op).items():
        assert all_of_it.least <= found[name].least and found[name].largest <= all_of_it.largest, name
        assert all_of_it.smallest <= found[name].smallest, name


def test_values_of_a_step_stand_by_its_own_names() -> None:
    """Beside sizes asked, which have them too."""
    tested = ours("step")
    first = [case for case in cases("selective_scan") if "initial_state" in case.inputs and "delta_bias" in case.inputs]
    some = [*first, *(case for case in cases("selective_scan") if len(case.inputs) == 5)][:9]
    ran = [run(tested, case) for case in some if run(tested, case).finding.status == "passed"]
    (values_said,), (sizes_said,) = asked_values(ran, step=True), asked_sizes(ran, [tested])
    names = {each.split(" ")[0] for each in values_said.split(", ")}
    assert {"x", "dt"} <= names and not names & {"u", "delta", "delta_bias", "initial_state"}
    assert "x" in sizes_said and "delta" not in sizes_said


def test_what_is_small_counts_where_it_shows() -> None:
    """An entry of random numbers, held to 1e-4 of the result, may be taken for 0."""
    named = next(case for case in companion_cases("conv"))
    asked = values_of([(named, named.expected)])
    assert asked["x"].smallest == float("inf") and asked["x"].largest == float(named.inputs["x"].max())


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (-(2.0**24), "−2^24"), (2.0**-7, "2^-7"), (2.0**16, "65,536"), (0.015625, "0.0156")],
)
def test_how_a_value_is_shown(value: float, text: str) -> None:
    assert shown(value) == text
