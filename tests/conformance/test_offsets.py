"""Initial states beside offsets: a kernel takes that of the first document, or one of each, and is asked for either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.cases.each_state import of_each_document
from conformance.cases.ordinary import ordinary_cases
from conformance.cases.states import AFTER_A_STATE
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.delta import delta_rule
from conformance.judge import forms, judged, told, trial
from conformance.kernel.arguments import OFFSETS, OPERATIONS, SIGNATURES, STATE_IN, TIME_AXIS
from conformance.kernel.kernel import Kernel, piece
from conformance.kernel.signature import kernel
from conformance.loader import Case

OPS = ("selective_scan", "ssd", "delta_rule")
RIGHT: dict[str, Callable[..., Any]] = {**FUNCTIONS, "delta_rule": delta_rule}
Begins = Callable[[Tensor, int], Tensor | None]
"""What document i begins with, by what was handed in."""

FIRST: Begins = lambda states, i: None if i else _only(states)
EACH: Begins = lambda states, i: states[i : i + 1]
WRONG: dict[str, Begins] = {
    "none has a state": lambda states, i: None,
    "each has that of the first": lambda states, i: states[:1],
    "each has that of the document before": lambda states, i: states[max(0, i - 1) : max(0, i - 1) + 1],
    "the last has none": lambda states, i: states[i : i + 1] if i < 2 else None,
}


def _only(states: Tensor) -> Tensor:
    if len(states) > 1:
        raise ValueError("one state was expected")
    return states


def by_offsets(op: str, begins: Begins) -> Kernel:
    """An operation, document by document."""

    def call(**given: Any) -> tuple[Tensor, Tensor]:
        given = given if op == "ssd" else {name: m for name, m in given.items() if name != "chunk_size"}
        offsets = given.pop(OFFSETS, None)
        if offsets is None:
            return RIGHT[op](**given)
        states, found = given.pop(STATE_IN[op], None), []
        for i, (start, stop) in enumerate(zip(offsets.tolist(), offsets[1:].tolist(), strict=False)):
            part = {name: piece(op, name, m, start, stop) for name, m in given.items() if isinstance(m, Tensor)}
            state = None if states is None else begins(states, i)
            found.append(RIGHT[op](**given | part | ({} if state is None else {STATE_IN[op]: state})))
        return torch.cat([y for y, _ in found], TIME_AXIS[op]), torch.cat([state for _, state in found])

    flags = {"return_last_state", "return_final_states", "output_final_state", "return_varlen_states"}
    names = {name.strip() for name in SIGNATURES[op].split(",")} - flags - {"seq_idx"}
    return Kernel("by offsets", op, call, frozenset(names))


def after_a_state(op: str) -> list[Case]:
    """The cases of an operation in which documents follow an initial state, in one row."""
    found = (*cases(op), *crossed_cases(op))
    return [
        case for case in found if {"seq_idx", STATE_IN[op]} <= case.inputs.keys() and len(case.inputs["seq_idx"]) == 1
    ]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("begins", "states"), [(FIRST, "one"), (EACH, "each")], ids=["one", "each"])
def test_a_right_kernel_of_either_kind_is_right(op: str, begins: Begins, states: str) -> None:
    tested = told(by_offsets(op, begins))
    assert tested.states == states and len(after_a_state(op)) > 20
    assert {judged(tested, case).status for case in after_a_state(op)} == {"passed"}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("begins", [FIRST, EACH], ids=["one", "each"])
def test_none_behind_the_states_is_no_result(op: str, begins: Begins) -> None:
    """Two results, and None in the place of a third, are two results."""
    right = by_offsets(op, begins)
    tested = told(Kernel("three", op, lambda **given: (*right.call(**given), None), right.accepts))
    packed = [case for case in cases(op) if case.stage == "packed"]
    assert {judged(tested, case).status for case in (*packed, *after_a_state(op)[:20])} == {"passed"}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_state_of_a_document_is_found(op: str, mistake: str) -> None:
    """In the first case that asks for one, and in most in which options are crossed."""
    tested = told(by_offsets(op, WRONG[mistake]))
    found = [judged(tested, case).status for case in after_a_state(op)]
    assert found[0] == "failed" and 2 * found.count("failed") > len(found)


@pytest.mark.parametrize("op", OPS)
def test_trial_asks_for_them(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [case for case in after_a_state(op) if case.name == AFTER_A_STATE]
    monkeypatch.setattr("conformance.judge.cases", lambda *_: ran)
    monkeypatch.setattr("conformance.judge.CROSSINGS", ())
    monkeypatch.setattr("conformance.judge.asked_together", lambda *_: ())
    monkeypatch.setattr("conformance.judge.in_each_way", lambda *_: ())
    for begins, documents in ((FIRST, 1), (EACH, len(ran[0].borders["document"]) + 1)):
        (found,) = trial(by_offsets(op, begins))
        assert found.finding.status == "passed" and len(found.case.inputs[STATE_IN[op]]) == documents


@pytest.mark.parametrize("op", OPS)
def test_each_document_has_another_state_where_bits_are_asked(op: str) -> None:
    for case in after_a_state(op):
        given = of_each_document(case).inputs[STATE_IN[op]]
        assert len(given) == len(case.inputs["seq_idx"][0].unique())
        assert all(not torch.equal(one, other) for one, other in zip(given, given[1:], strict=False))


def test_one_state_has_room_for_the_others_behind_it() -> None:
    """A kernel that looks for one of each document finds NaN there, and no memory of others."""
    case = next(case for case in cases("ssd") if case.name == AFTER_A_STATE)
    seen: list[Tensor] = []

    def ssd(x, dt, A, B, C, chunk_size, initial_states=None, cu_seqlens=None, return_final_states=False):
        behind = initial_states.as_strided((2, *initial_states.shape[1:]), initial_states.stride())
        seen.append(behind[1].clone())
        raise NotImplementedError

    assert judged(kernel(ssd), case).status == "skipped" and bool(seen[0].isnan().all())


def test_a_kernel_that_takes_no_initial_state_is_told_so() -> None:
    def ssd(x, dt, A, B, C, chunk_size, cu_seqlens=None):
        raise AssertionError("it lacks an operand")

    case = next(case for case in cases("ssd") if case.name == AFTER_A_STATE)
    assert judged(kernel(ssd), case).says == "it takes no initial_states"


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op not in STATE_IN])
def test_an_operation_without_documents_may_have_an_argument_for_them(op: str) -> None:
    """Steps and norms are told of none: such an argument is left out, and no initial state is looked up."""
    tested = Kernel("of no documents", op, lambda **given: None, frozenset({OFFSETS}))
    assert forms(tested) == (tested,)


EITHER: Begins = lambda states, i: EACH(states, i) if len(states) > 1 else FIRST(states, i)


@pytest.mark.parametrize("op", OPS)
def test_a_kernel_that_takes_either_form_is_asked_for_both(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mistake is in the form that was not asked: states of later documents lost, but not where there are four."""
    few = [case for case in after_a_state(op) if case.name == AFTER_A_STATE][:1] + after_a_state(op)[1:6]
    monkeypatch.setattr("conformance.judge.cases", lambda *_: few)
    monkeypatch.setattr("conformance.judge.CROSSINGS", ())
    monkeypatch.setattr("conformance.judge.asked_together", lambda *_: ())
    monkeypatch.setattr("conformance.judge.in_each_way", lambda *_: ())
    documents = len(ends := few[0].borders["document"]) + 1
    assert ends and {form.states for form in forms(by_offsets(op, EITHER))} == {"one", "each"}
    right = [each.finding for each in trial(by_offsets(op, EITHER))]
    assert {each.status for each in right} == {"passed"} and len({each.case for each in right}) == 2 * len(few)
    lost: Begins = lambda states, i: None if i and len(states) not in (1, documents) else EITHER(states, i)
    wrong = [each.finding.case for each in trial(by_offsets(op, lost)) if each.finding.status == "failed"]
    assert wrong and all(name.endswith("a state for each document") for name in wrong)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.half], ids=str)
@pytest.mark.parametrize("begins", [FIRST, EACH], ids=["one", "each"])
def test_the_form_of_states_is_tried_in_a_dtype_that_the_kernel_takes(op: str, dtype: torch.dtype, begins) -> None:
    """Of a kernel that refuses small sizes, which `forms` asks first, and every dtype but one."""
    right = by_offsets(op, begins)

    def call(**given: Any) -> tuple[Tensor, Tensor]:
        main = given.get("u", given.get("x", given.get("q")))
        if main.dtype != dtype or main.shape[TIME_AXIS[op]] % 16:
            raise NotImplementedError("of few sizes and one dtype")
        return right.call(**given)

    (found,) = forms(Kernel("narrow", op, call, right.accepts))
    assert found.states == ("one" if begins is FIRST else "each")


@pytest.mark.parametrize(("op", "demands"), [("selective_scan", "D"), ("ssd", "dt_bias"), ("selective_scan", "z")])
@pytest.mark.parametrize("begins", [FIRST, EACH], ids=["one", "each"])
def test_the_form_of_states_is_tried_beside_what_a_kernel_demands(op: str, demands: str, begins) -> None:
    right = by_offsets(op, begins)

    def call(**given: Any) -> tuple[Tensor, Tensor]:
        if given.get(demands) is None:
            raise NotImplementedError(demands)
        return right.call(**given)

    (found,) = forms(Kernel("demands", op, call, right.accepts | {demands}))
    assert found.states == ("one" if begins is FIRST else "each")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half], ids=str)
def test_states_of_later_documents_in_a_narrow_dtype_are_found(op: str, dtype: torch.dtype) -> None:
    """They have more bits than that, and are not 0."""
    asked = [case for case in ordinary_cases(op) if of_each_document(case) is not case]
    narrow = lambda states, i: EACH(states, i).to(dtype).float() if i else EACH(states, i)
    for begins, status in ((EACH, "passed"), (narrow, "failed")):
        tested = told(by_offsets(op, begins))
        found = {judged(tested, case).status for case in asked if "document_states" in case.expected}
        assert tested.states == "each" and status in found and (status == "failed" or found == {"passed"})


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.half], ids=str)
def test_offsets_are_read_as_integers(op: str, dtype: torch.dtype) -> None:
    case = next(case for case in cases(op) if case.name == "a border at 2,049")
    right = by_offsets(op, FIRST)

    def rounded(**given: Any) -> Any:
        offsets = given[OFFSETS]
        return right.call(**given | {OFFSETS: torch.cat([offsets[:-1].to(dtype).to(torch.int32), offsets[-1:]])})

    assert judged(right, case).status == "passed"
    found = judged(Kernel("rounded", op, rounded, right.accepts), case).status
    assert found in ("failed", "failed to run")  # in bfloat16 the second document has no position left
