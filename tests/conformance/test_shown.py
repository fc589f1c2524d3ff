"""Where any three options meet, a mistake shows: no operand hides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.cases.covering import tuples
from conformance.cases.meeting import meets
from conformance.cases.ordinary import ROUNDED, ordinary_cases, ordinary_factors_of, ordinary_rows
from tests.conformance.mistakes import MISTAKES, Needs, far, results, shows
from tests.spread import some

FEW = 4
UP_TO_128 = lambda length: 1 < length <= 128
ALL = [(op, mistake) for op, mistakes in MISTAKES.items() for mistake in mistakes]


def meant(levels: Mapping[str, Any], needs: Needs) -> bool:
    """Whether a mistake can show where these options meet: all that it needs is among them, but a few positions."""
    listed = {name: values for name, values in needs.items() if not callable(values)}
    long = needs.get("length", lambda length: True)
    return long(levels.get("length", FEW)) and all(levels.get(name) in values for name, values in listed.items())


def hidden(op: str, mistake: str, needs: Needs, rounded: bool = False) -> list[frozenset]:
    """The options, three together, that may meet, where no case shows a mistake."""
    cases = [case for case in ordinary_cases(op) if (case.stage == ROUNDED) == rounded]
    rows = [row for row in ordinary_rows(op) if not rounded or row["dtype"] != "float32"]
    showing = [{*row.items()} for row, case in zip(rows, cases, strict=True) if shows(case, mistake)]
    asked = (t for t in tuples(ordinary_factors_of(op), 3) if meets({**dict(t), "op": op}) and meant(dict(t), needs))
    return [t for t in asked if not any(t <= row for row in showing)]


@pytest.mark.parametrize(("op", "mistake"), ALL, ids=[f"{op}: {mistake}" for op, mistake in ALL])
def test_no_operand_hides_a_mistake_where_three_options_meet(op: str, mistake: str) -> None:
    assert hidden(op, mistake, MISTAKES[op][mistake]) == []


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_an_exp_in_float16_shows_beside_any_two_options_and_float16(op: str) -> None:
    """It is as near as definitions in use round, so it is found by what may round nothing but y."""
    assert hidden(op, "exp in half", {"dtype": ["float16"], "length": UP_TO_128}, rounded=True) == []


def test_an_operand_that_hides_is_told() -> None:
    """D that is the same in all channels hides that they are exchanged."""
    op, mistake = "selective_scan", "D of another channel"
    case = next(case for case in ordinary_cases(op) if "D" in case.inputs)
    assert shows(case, mistake)
    same = replace(case, inputs=case.inputs | {"D": torch.ones_like(case.inputs["D"])})
    expected = results(same, "")
    assert not shows(replace(same, expected={name: m.double() for name, m in expected.items()}), mistake)


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "conv", "delta_rule"])
def test_a_function_that_is_another_is_far_outside_of_the_tolerance(op: str) -> None:
    """Where it shows at all: in nine of ten cases four times as far off as allowed."""
    for mistake in ("exp is 0 or 1", "softplus is a relu", "silu is a relu"):
        if mistake in MISTAKES[op]:
            off = sorted(d for case in some(ordinary_cases(op), 0.01, 60) if (d := far(case, mistake)) > 1)
            assert len(off) > 8 and off[len(off) // 10] > 4, mistake


@pytest.mark.parametrize("op", MISTAKES)
def test_without_a_mistake_nothing_is_wrong(op: str) -> None:
    assert not [case.name for case in ordinary_cases(op) if shows(case, "")]
