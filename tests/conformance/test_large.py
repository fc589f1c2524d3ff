"""The largest sizes with all options: what is forgotten beyond a size is found, and what is refused is not asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.cases.crossed import crossed_cases
from conformance.cases.large import POSITIONS, SIZES, large_cases, large_rows
from conformance.cases.options import option_of
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel

WIDE = {"selective_scan": ("u", 1, 256), "ssd": ("x", 2, 128), "conv": ("x", 1, 300), "norm": ("x", -1, 2048)}
"""An operand, its axis of channels or heads, and how many the crossing has at most, or an occupancy case."""
FORGOTTEN = {
    "selective_scan": ("D", "z", "delta_bias", "delta_softplus", "initial_state", "seq_idx"),
    "ssd": ("D", "z", "dt_bias", "dt_softplus", "initial_states", "seq_idx", "dt_limit"),
    "conv": ("bias", "activation", "initial_states", "seq_idx"),
    "norm": ("z", "group_size"),
}


def of(op: str) -> Kernel:
    return kernel(delta_rule) if op == "delta_rule" else ours(op)


@pytest.mark.parametrize("op", SIZES)
def test_a_right_kernel_is_right_in_them(op: str) -> None:
    found = large_cases(op)
    assert len(found) >= 2 * len(SIZES[op]) and {judged(of(op), case).status for case in found} == {"passed"}
    assert min(case.expected["y"].shape[1 if op in ("ssd", "norm", "delta_rule") else 2] for case in found) > 128


@pytest.mark.parametrize(("op", "name"), [(op, name) for op, names in FORGOTTEN.items() for name in names])
def test_what_is_forgotten_beyond_a_size_is_found(op: str, name: str) -> None:
    operand, axis, most = WIDE[op]

    def call(**given: Any) -> Any:
        if given[operand].shape[axis] > most:
            given.pop(name, None)
        return ours(op).call(**given)

    found = [judged(replace(ours(op), call=call), case).status for case in large_cases(op)]
    assert "failed" in found


def test_a_column_that_does_not_fade_beyond_128_is_found() -> None:
    def call(A: torch.Tensor, **given: Any) -> Any:
        rates = A.clone()
        rates[:, 128:] = 0 if A.shape[1] > 130 else rates[:, 128:]
        return ours("selective_scan").call(A=rates, **given)

    tested = replace(ours("selective_scan"), call=call)
    assert "failed" in [judged(tested, case).status for case in large_cases("selective_scan")]


@pytest.mark.parametrize("op", SIZES)
def test_what_a_kernel_refuses_is_left_out(op: str) -> None:
    left = {
        "D": "no",
        "z": False,
        "bias": False,
        "start": "nothing",
        "activation": None,
        "normed": False,
        "gate": "before",
    }
    full = next(large_rows(op))
    for name in full.keys() & left.keys():
        factor = {option_of(name, row[name]) for row in large_rows(op)} - {(name, left[name])}
        every = {"D": {("D", "of heads"), ("D", "of channels")}, "start": {("start", "state"), ("start", "pieces")}}
        more = {("start", "documents"), ("start", "state and documents")} if name == "start" else set()
        without = frozenset(factor | every.get(name, set()) | more | ({("D", True)} if name == "D" else set()))
        assert all(option_of(name, row[name]) not in without for row in large_rows(op, without))
        assert [*large_rows(op, without)]


@pytest.mark.parametrize("op", SIZES)
def test_no_more_positions_are_asked_than_of_a_step(op: str) -> None:
    assert {row["length"] for row in large_rows(op, lengths=(1, 4))} == {4}
    assert {row["length"] for row in large_rows(op)} == {POSITIONS[op]}


def test_a_gate_before_a_norm_does_not_cancel() -> None:
    """One number for all channels of a position did: then z of another row, or of none, gave the same."""
    for case in (*crossed_cases("norm"), *large_cases("norm")):
        if "z" in case.inputs and not case.options["norm_before_gate"] and case.options["group_size"] > 1:
            without = replace(case, inputs={name: m for name, m in case.inputs.items() if name != "z"})
            y = ours("norm").run(without)["y"]
            assert case.wrong("y", y).any(), case.name
