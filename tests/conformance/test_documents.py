"""Packed documents beside an initial state, by numbers of any kind, and what each of them ends with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.causes import Seen, causes
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged
from conformance.kernel.kernel import Kernel, piece
from conformance.kernel.signature import kernel
from conformance.loader import Case, ends_of_documents

SCANS = ("selective_scan", "ssd")
STATES = {"selective_scan": "initial_state", "ssd": "initial_states"}
Begins = Callable[[Tensor | None, int], Tensor | None]
"""What a document begins with, by the initial state and its place in the row."""


def packed(op: str) -> list[Case]:
    return [case for case in (*cases(op), *crossed_cases(op)) if "seq_idx" in case.inputs]


def by_both(begins: Begins) -> Kernel:
    """ssd, document by document, by numbers and offsets as mamba_ssm's takes them; y and the last state are right."""

    def ssd(
        x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None, cu_seqlens=None,
        dt_softplus=False, return_final_states=False, return_varlen_states=False,
    ):  # fmt: skip
        around = {"D": D, "z": z, "dt_bias": dt_bias, "dt_softplus": dt_softplus}
        whole = {"x": x, "dt": dt, "A": A, "B": B, "C": C, "chunk_size": chunk_size} | around
        y, last = FUNCTIONS["ssd"](**whole, initial_states=initial_states, seq_idx=seq_idx)
        if not return_varlen_states:
            return y, last
        ends, states = cu_seqlens.tolist(), []
        for i, (start, stop) in enumerate(zip(ends, ends[1:], strict=False)):
            part = whole | {name: whole[name][:, start:stop] for name in ("x", "dt", "B", "C")} | {"z": None, "D": None}
            states.append(FUNCTIONS["ssd"](**part, initial_states=begins(initial_states, i))[1])
        return y, last, torch.cat(states)

    return kernel(ssd)


@pytest.mark.parametrize("op", SCANS)
@pytest.mark.parametrize(
    ("share", "named"), [(1, True), (2, False)], ids=["of the same mistake", "wrong in another way too"]
)
def test_a_mistake_is_named_where_it_gives_the_states_of_documents(op: str, share: int, named: bool) -> None:
    """Groups that are tiled: what the last position of each document holds is told by the same equations."""
    axis = 2 if op == "ssd" else 1

    def tiled(groups: Tensor, readers: int) -> Tensor:
        return groups.index_select(axis, torch.arange(readers) % groups.shape[axis])

    def wrong(given: dict) -> tuple[Tensor, Tensor]:
        readers = given["x"].shape[2] if op == "ssd" else given["u"].shape[1]
        return FUNCTIONS[op](
            **given | {name: tiled(given[name], readers) for name in ("B", "C") if given[name].dim() == 4}
        )

    def run(case: Case) -> dict[str, Tensor]:
        known = ("dt_softplus", "delta_softplus", "dt_limit")
        given = {**case.inputs, **{k: v for k, v in case.options.items() if k in known}}
        given |= {"chunk_size": 16} if op == "ssd" else {}
        y, last = wrong(given)
        alone = {name: m for name, m in given.items() if name != "seq_idx"}
        states, start = [], 0
        for stop in ends_of_documents(case.inputs["seq_idx"][0]):
            part = {k: piece(op, k, m, start, stop) if isinstance(m, Tensor) else m for k, m in alone.items()}
            states.append(share * wrong(part)[1])
            alone.pop(STATES[op], None)
            start = stop
        return {"y": y, "last_state": last, "document_states": torch.cat(states)}

    several = lambda case: case.inputs["B"].dim() == 4 and case.inputs["B"].shape[axis] > 1
    of_one_row = [c for c in crossed_cases(op) if {"document_states", "last_state"} <= c.expected.keys()]
    asked = [case for case in of_one_row if several(case) and not case.tolerance and "cuts" not in case.options]
    seen = [Seen(case, run(case), 0) for case in asked[:6]]
    seen = [each for each in seen if each.case.wrong("y", each.results["y"]).any()]
    assert len(seen) > 2
    assert causes(seen, [])[0].startswith("groups are tiled") == named


def after_a_state() -> list[Case]:
    return [case for case in packed("ssd") if {"initial_states"} <= case.inputs.keys() and len(case.inputs["x"]) == 1]


@pytest.mark.parametrize(
    ("says", "begins"),
    [
        ("passed", lambda state, i: None if i else state),
        ("failed", lambda state, i: None),
        ("failed", lambda state, i: state),
    ],
    ids=["the first has the initial state", "none has it", "each has it"],
)
def test_the_state_of_each_document_beside_an_initial_state(says: str, begins: Begins) -> None:
    asked = [case for case in after_a_state() if "dt_limit" not in case.options]
    assert len(asked) > 10 and all("document_states" in case.expected for case in asked)
    found = [judged(by_both(begins), case) for case in asked]
    assert {each.status for each in found} <= {says, "passed"}
    wrong = [each for each in found if each.status == "failed"]
    assert len(wrong) >= 10 or says == "passed"
    assert all("y is right, document_states" in each.says for each in wrong)


@pytest.mark.parametrize("op", SCANS)
def test_an_initial_state_is_that_of_the_first_document_whatever_its_number(op: str) -> None:
    """mamba_ssm's kernels take it for that of document 0: one case says so, and no other hides behind it."""

    def of_document_0(**given):
        if given.get("seq_idx") is not None and given.get(STATES[op]) is not None:
            first = (given["seq_idx"][:, 0] == 0).float()
            given[STATES[op]] = given[STATES[op]] * first.view(-1, *[1] * (given[STATES[op]].dim() - 1))
        return FUNCTIONS[op](**given)

    wrong = Kernel("of document 0", op, of_document_0, ours(op).accepts)
    assert {case.name for case in packed(op) if judged(wrong, case).status == "failed"} == {
        "a first document of number 3"
    }


@pytest.mark.parametrize("op", [*SCANS, "conv"])
def test_numbers_of_documents_are_of_every_kind(op: str) -> None:
    ids = [case.inputs["seq_idx"][0] for case in packed(op)]
    assert {int(each[0]) for each in ids} >= {0, 1, 5}
    assert {int(step) for each in ids for step in each.unique().diff()} >= {1, 2, 7}


def test_states_of_documents_are_asked_of_those_who_give_them() -> None:
    """A kernel of numbers alone is asked for its last state only where the last state is compared."""
    heard = []

    def ssd(x, dt, A, B, C, chunk_size, seq_idx=None, return_final_states=False):
        heard.append(return_final_states)
        y, last = FUNCTIONS["ssd"](x, dt, A, B, C, chunk_size, seq_idx=seq_idx)
        return (y, last) if return_final_states else y

    case = next(case for case in cases("ssd") if case.name == "three documents")
    assert "document_states" in case.expected and "last_state" not in case.expected
    assert judged(kernel(ssd), case).status == "passed" and heard == [False]


def test_a_right_scan_of_documents_is_right() -> None:
    for op in SCANS:
        assert {judged(ours(op), case).status for case in packed(op)} == {"passed"}
