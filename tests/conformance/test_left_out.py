"""What a call leaves out, or is asked at few sizes alone: no path of a kernel is missed there in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conformance.asked import never_asked
from conformance.cases import cases
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.judge import judged, never_in_each_way, run, trial
from conformance.kernel.signature import kernel
from conformance.keywords import looked_into
from conformance.loader import Case

CONV, NORM, STEP = FUNCTIONS["conv"], FUNCTIONS["norm"], FUNCTIONS["step"]


def _named(op: str, name: str) -> Case:
    return next(case for case in cases(op) if case.name == name)


def _by_default(x, weight, bias=None, initial_states=None, return_final_states=True, activation=None):
    """Wrong where no state is asked for."""
    y, window = CONV(x, weight, bias, None, initial_states, activation)
    return (y, window) if return_final_states else y * 0


def test_a_state_that_is_returned_by_default_behind_a_wrapper_is_declined() -> None:
    found = looked_into(kernel(lambda x, weight, **kw: _by_default(x, weight, **kw), "k", "conv"))
    assert "failed" in {judged(found, case).status for case in cases("conv")[:12]}


def test_defaults_behind_a_wrapper_stand_behind_the_verdict() -> None:
    def inner(x, weight, eps, group_size=None, norm_before_gate=True):
        return NORM(x, weight, None, eps, group_size, norm_before_gate)

    tested = looked_into(kernel(lambda x, weight, **kw: inner(x, weight, **kw), "k", "norm"))
    some = [*cases("norm")]
    said = never_asked(tested, some, some)
    assert {"group_size left out", "norm_before_gate left out"} <= {*said} and "eps left out" not in said


def test_what_is_needed_behind_a_wrapper_is_given() -> None:
    def inner(x, weight, bias, activation, initial_states=None):
        return CONV(x, weight, bias, None, initial_states, activation)[0]

    tested = looked_into(kernel(lambda x, weight, **kw: inner(x, weight, **kw), "k", "conv"))
    assert {judged(tested, case).status for case in cases("conv")} == {"passed", "skipped"}


def with_numbers(state, x, dt, A, B, C, D=0.0, z=None, dt_bias=0.0, dt_softplus=False):
    more = {name: m for name, m in (("D", D), ("dt_bias", dt_bias)) if not isinstance(m, float)}
    assert None not in (D, dt_bias)
    return STEP(state, x, dt, A, B, C, z=z, dt_softplus=dt_softplus, **more)


def behind(x, dt, A, B, C, h, D=None, z=None):
    return STEP(h, x, dt, A, B, C, D=D, z=z)


def by_name(*, x, dt, A, B, C, h, D=None, z=None):
    return STEP(h, x, dt, A, B, C, D=D, z=z)


def with_a_default(x, dt, A, B, C, h=None):
    return STEP(h, x, dt, A, B, C)


def and_none(state, x, dt, A, B, C):
    return STEP(state, x, dt, A, B, C), None


def of_one(state, x, dt, A, B, C):
    return (STEP(state, x, dt, A, B, C),)


@pytest.mark.parametrize("step", [with_numbers, behind, by_name, with_a_default, and_none, of_one])
@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_a_right_step_is_right(op: str, step: Callable[..., Any]) -> None:
    assert judged(kernel(step, op="step"), _named(op, "columns")).status == "passed"


def test_a_state_that_does_not_come_in_pieces_is_wrong() -> None:
    def short(x, weight, bias=None, initial_states=None, return_final_states=False, activation=None):
        y, window = CONV(x, weight, bias, None, initial_states, activation)
        return (y, window) if return_final_states and x.shape[-1] >= weight.shape[-1] else y

    found = [judged(kernel(short), case) for case in cases("conv") if "cuts" in case.options]
    assert "failed" in {each.status for each in found} and not any("no last state" in each.says for each in found)


def test_offsets_are_no_argument_of_a_convolution() -> None:
    def conv(x, weight, bias=None, initial_states=None, cu_seqlens=None, return_final_states=False, activation=None):
        assert cu_seqlens is None
        y, window = CONV(x, weight, bias, None, initial_states, activation)
        return (y, window) if return_final_states else y

    assert {each.finding.status for each in trial(kernel(conv))} == {"passed", "skipped"}


def few(wrong: Callable[..., bool], refused: Callable[..., bool] = lambda *_: False) -> Any:
    """A convolution of 32s of channels and 16s of positions: wrong there, or refused, in calls with documents."""

    def call(x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, activation=None):
        told = seq_idx is not None and bool((seq_idx == seq_idx[:, :1]).all())
        if x.shape[1] % 32 or x.shape[2] % 16 or (told and refused(x, bias)):
            raise NotImplementedError("not this")
        y, window = CONV(x, weight, bias, seq_idx, initial_states, activation)
        y = y * 0 if told and wrong(x, bias) else y
        return (y, window) if return_final_states else y

    return kernel(call, "few", "conv")


@pytest.mark.parametrize("wrong", [lambda x, bias: bias is not None, lambda x, _: x.element_size() == 2])
def test_a_kernel_of_few_sizes_is_told_with_each_option(wrong: Callable[..., bool]) -> None:
    found = [*trial(few(wrong))]
    assert {"failed", "passed", "skipped"} == {each.finding.status for each in found}


def test_a_way_that_met_an_option_nowhere_is_said() -> None:
    tested = few(lambda *_: False, lambda x, bias: bias is not None and x.element_size() == 2)
    found = [*trial(tested)]
    assert "failed" not in {each.finding.status for each in found} and never_in_each_way(tested, found) == ()
    tested = few(lambda *_: False, lambda _, bias: bias is not None)
    assert never_in_each_way(tested, [*trial(tested)]) == ("bias with one document that fills its row",)


def test_states_that_no_case_gave_a_step_are_said() -> None:
    def call(**given: Any) -> Any:
        if given["state"].dim() == 3 or given["state"].shape[2] != 3:
            raise NotImplementedError("heads of 3")
        return STEP(**given)

    tested = replace(ours("step"), call=call)
    found = [run(tested, case) for op in tested.operations() for case in cases(op)]
    ran = [each.case for each in found if each.finding.status == "passed"]
    said = {*never_asked(tested, [each.case for each in found], ran)}
    assert ran and "a state (b, d, n)" in said
    assert ("Δ, A, D and a bias of each channel of a head" in said) == all(case.op == "ssd" for case in ran)


def test_sizes_of_the_delta_rule_that_were_all_refused_are_named() -> None:
    def some(q, k, v, g, beta, chunk_size=64, initial_state=None, use_qk_l2norm_in_kernel=False):
        if q.shape[2] != v.shape[2] or chunk_size != 64:
            raise NotImplementedError("as many heads, chunks of 64")
        return delta_rule(q, k, v, g, beta, None, initial_state, use_qk_l2norm_in_kernel)[0]

    tested, there = kernel(some, "some", "delta_rule"), cases("delta_rule")
    ran = [case for case in there if run(tested, case).finding.status == "passed"]
    said = never_asked(tested, there, ran)
    chunks = sorted({case.options["chunk_size"] for case in there} - {64})
    assert "several heads of v for each of k" in said and f"chunks of {', '.join(map(str, chunks))}" in said
    assert not any("chunks" in words or "heads of v" in words for words in never_asked(tested, there, there))
