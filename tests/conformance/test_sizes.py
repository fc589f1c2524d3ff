"""What the report says of sizes: no call is beyond it, and some call reaches each end; what it calls dense is dense."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.cases import cases
from conformance.cases.around import norm_cases
from conformance.cases.crossed import crossed_cases
from conformance.cases.each_state import of_each_document
from conformance.cases.states import AFTER_A_STATE
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.findings import Ran
from conformance.judge import run
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.report import never_run, try_kernel
from conformance.sizes import _without, asked_sizes, counted, frontier, options_met, positions_of

POSITIONS = {"selective_scan": ("u", 2), "ssd": ("x", 1), "conv": ("x", 2), "norm": ("x", 1), "delta_rule": ("v", 1)}
FIRST = {"selective_scan": ("u", 1), "ssd": ("x", 2), "conv": ("x", 1), "norm": ("x", 2), "delta_rule": ("v", 2)}
"""Of the first size that is told: channels, or heads."""
each = pytest.mark.parametrize("op", POSITIONS)


def kernel_of(op: str) -> Kernel:
    return kernel(delta_rule) if op == "delta_rule" else ours(op)


@cache
def run_of(op: str, pick: int) -> tuple[tuple[Ran, ...], dict[str, bool], set[tuple[int, int]]]:
    """Every so many of an operation's cases, whether an operand was dense in every call, and (positions, size beside 0)
    of each, as the kernel itself sees them.
    """
    right, dense, seen = kernel_of(op), dict[str, bool](), set[tuple[int, int]]()

    def call(**given: Any) -> Any:
        for name, m in given.items():
            if isinstance(m, Tensor):
                dense[name] = dense.get(name, True) and m.is_contiguous()
        (name, time), (sized, axis) = POSITIONS[op], FIRST[op]
        others = [i for i in range(given[sized].dim()) if i != axis]
        seen.add((given[name].shape[time], int(given[sized].ne(0).sum(others).ne(0).sum())))
        return right.call(**given)

    spied = replace(right, call=call)
    found = [run(spied, case) for case in [*cases(op), *crossed_cases(op)][::pick]]
    return tuple(one for one in found if one.finding.status == "passed"), dense, seen


def test_the_frontier_has_what_nothing_exceeds_in_both() -> None:
    assert frontier({(1, 5), (2, 5), (3, 1), (2, 4), (3, 0)}) == [(2, 5), (3, 1)]
    assert frontier({(4, 1)}) == [(4, 1)]


@each
def test_no_call_is_beyond_what_is_told_and_each_end_is_reached(op: str) -> None:
    ran, _, seen = run_of(op, 3)
    (told,) = asked_sizes(ran)
    first = re.sub(r"\(.*?\)", "", told.split(";")[0]).replace(",", "")
    ends = {(int(most), int(size)) for most, size in re.findall(r"(\d+) with up to (\d+)", first)}
    assert len(ends) > 1 and all(any(most <= end and size <= large for end, large in ends) for most, size in seen)
    reached = lambda most, size: any(most == a for a, _ in seen) and any(size == b for _, b in seen)
    assert all(reached(*end) for end in ends)


@each
def test_what_is_called_dense_is_dense_in_every_call(op: str) -> None:
    ran, dense, _ = run_of(op, 3)
    (told,) = asked_sizes(ran)
    always = re.search("always dense: ([^;]*)", told)
    assert always and {name for name, yes in dense.items() if yes} == {*always[1].split(", ")}


def test_a_sequence_in_pieces_counts_as_its_pieces() -> None:
    pieces, others = (
        [case for case in crossed_cases("conv") if bool(case.options.get("cuts")) is yes] for yes in (True, False)
    )
    whole, cut = others[0], pieces[0]
    assert positions_of(whole) == whole.inputs["x"].shape[2]
    ends = [0, *cut.options["cuts"], cut.inputs["x"].shape[2]]
    assert positions_of(cut) == max(stop - start for start, stop in pairwise(ends)) < cut.inputs["x"].shape[2]


def test_channels_that_are_0_throughout_do_not_count() -> None:
    sparse = next(case for case in norm_cases() if case.name == "the first quarter")
    assert sparse.inputs["x"].shape[-1] == 4096 and counted(sparse, "channels") == 1024
    columns = next(case for case in cases("ssd") if case.name == "256 columns")
    assert counted(columns, "state columns") == 256
    inputs = {**columns.inputs, "C": columns.inputs["C"] * (torch.arange(256) < 200)}
    assert counted(replace(columns, inputs=inputs), "state columns") == 200


def test_a_size_is_told_with_what_it_stands_without() -> None:
    """256 columns stood in one case, of which nothing fades."""
    named = lambda *names: [run(ours("ssd"), case) for case in cases("ssd") if case.name in names]
    ran = named("256 columns", "skip and gate", "erase", "two groups")
    assert "decay" in options_met(next(one for one in ran if one.case.name == "erase"))
    (told,) = asked_sizes(ran)
    columns = next(part for part in told.split("; ") if part.startswith("columns"))
    assert columns.endswith("2 with up to 256 (without D, decay, several groups, z)")


def test_an_option_stands_at_a_size_if_one_case_has_both() -> None:
    """z was met with many channels at few positions, and with few channels at many, and not with many at many."""
    found = [(64, 5, frozenset({"z", "D"})), (4, 260, frozenset({"z"})), (64, 260, frozenset({"D"}))]
    found += [(2, 1025, frozenset({"z"}))]
    assert _without(found, (2, 1025)) == " (without D)"
    assert _without(found, (64, 260)) == " (without z)"


@pytest.mark.parametrize(("function", "word"), [("seq_idx", "seq_idx"), ("cu_seqlens", "cu_seqlens")])
def test_operands_are_told_as_the_kernel_got_them(function: str, word: str) -> None:
    right = kernel_of("selective_scan")
    accepts = right.accepts - {"seq_idx", "cu_seqlens"} | {function}

    def call(cu_seqlens: Any = None, **given: Any) -> Any:
        if cu_seqlens is not None:
            lengths = cu_seqlens.diff()
            given["seq_idx"] = torch.arange(len(lengths)).repeat_interleave(lengths)[None].int()
        return right.call(**given)

    some = [case for case in cases("selective_scan") if "seq_idx" in case.inputs or case.options.get("views")]
    told = "; ".join(asked_sizes([run(replace(right, call=call, accepts=accepts), case) for case in some]))
    other = ({"seq_idx", "cu_seqlens"} - {word}).pop()
    assert word in told and other not in told and f"{word} in int32" in told


@pytest.mark.parametrize("op", ["norm", "conv"])
def test_an_operand_whose_views_are_refused_is_called_dense(op: str) -> None:
    name = {"norm": "z", "conv": "seq_idx"}[op]

    def call(**given: Any) -> Any:
        if given.get(name) is not None and not given[name].is_contiguous():
            raise NotImplementedError("dense alone")
        return ours(op).call(**given)

    tested = replace(ours(op), call=call)
    found = [run(tested, case) for case in crossed_cases(op)[:60]]
    (told,) = asked_sizes([one for one in found if one.finding.status == "passed"])
    assert name in told.partition("always dense: ")[2].split(";")[0].split(", ")


@pytest.mark.parametrize(("form", "words"), [("one", "that of the first document"), ("each", "one of each document")])
def test_the_form_of_initial_states_is_told(form: Any, words: str) -> None:
    base = kernel_of("selective_scan")
    tested = replace(base, accepts=base.accepts - {"seq_idx"} | {"cu_seqlens"}, states=form)
    case = next(case for case in cases("selective_scan") if case.name == AFTER_A_STATE)
    assert of_each_document(case) is not case
    told = list(asked_sizes([Ran(case, run(ours("selective_scan"), case).finding)], [tested]))
    assert told[0].endswith(f"initial_state beside cu_seqlens: {words}")


def test_nothing_is_told_of_initial_states_that_a_kernel_refuses_each_time() -> None:
    """And that no case gave one is told once."""

    def dense(q, k, v, g, beta, initial_state=None, cu_seqlens=None, use_qk_l2norm_in_kernel=False):
        if initial_state is not None or v.dtype != torch.float32:
            raise NotImplementedError("in float32, from nothing")
        lengths = torch.tensor([v.shape[1]]) if cu_seqlens is None else cu_seqlens.diff()
        numbers = torch.arange(len(lengths)).repeat_interleave(lengths)[None].int()
        return delta_rule(q, k, v, g, beta, numbers, None, use_qk_l2norm_in_kernel)[0]

    tested = kernel(dense, "dense", "delta_rule")
    found = [run(tested, case) for case in crossed_cases("delta_rule")[:40]]
    told = "; ".join(asked_sizes([each for each in found if each.finding.status == "passed"], [tested]))
    assert "cu_seqlens" in told and "beside cu_seqlens" not in told
    assert [words for words in never_run(tested, found) if words.endswith("initial state")] == ["initial state"]


def test_rows_and_groups_are_told() -> None:
    some = [case for case in cases("ssd") if case.name in ("batch", "33 rows", "two groups", "four groups")]
    assert "; rows 1, 2, 3, 33; groups 1, 2, 4; " in next(asked_sizes([run(ours("ssd"), case) for case in some]))


def test_several_operations_are_told_by_name() -> None:
    told = list(asked_sizes([run(ours(op), case) for op in ("conv", "norm") for case in crossed_cases(op)[:3]]))
    assert [line.partition(":")[0] for line in told] == ["conv", "norm"]


def test_a_step_is_told_how_often_it_was_called_in_a_row() -> None:
    """Each call of it has one position: of how many a call has, nothing is said."""
    right, calls = ours("step"), list[None]()

    def call(**given: Any) -> Any:
        calls.append(None)
        return right.call(**given)

    tested = replace(right, call=call)
    ran, most = [], 0
    for case in [*cases("selective_scan")][:12]:
        calls.clear()
        ran.append(run(tested, case))
        most = max(most, len(calls))
    (told,) = asked_sizes([one for one in ran if one.finding.status == "passed"], [tested])
    assert f"channels: calls one after the other up to {most:,} with up to" in told and "positions" not in told


def test_a_kernel_is_told_the_sizes_of_the_cases_that_it_ran() -> None:
    """This one takes no more than sixteen channels."""

    def small(**given: Any) -> Any:
        if given["x"].shape[-1] > 16:
            raise NotImplementedError("up to 16 channels")
        return ours("norm").call(**given)

    kernel, _ = try_kernel(Kernel("small", "norm", small, ours("norm").accepts))
    assert kernel.sizes[0].startswith("channels: positions up to 140 with up to 16;")
    assert kernel.to_json()["sizes"] == list(kernel.sizes)
