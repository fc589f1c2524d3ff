"""How a kernel is told of documents, and asked for states beside them: each way is, and a mistake in it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.asked import never_asked
from conformance.cases import cases
from conformance.cases.options import firsts, options_of, varied
from conformance.cases.told import DELTA_WHOLE_LENGTHS, WHOLE_LENGTHS, told_cases, ways_in_rows
from conformance.cases.told import WAYS as TOLD
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.findings import Ran
from conformance.judge import judged, run, trial, untold
from conformance.junit import _name
from conformance.kernel.arguments import OFFSET_STATES, OFFSETS, STATE_IN, STATE_OUT, TIME_AXIS
from conformance.kernel.kernel import Kernel, piece
from conformance.loader import Case, ends_of_documents
from conformance.together import levels_of
from tests.conformance.pages import CASES, in_one_line

RIGHT: dict[str, Callable[..., Any]] = {**FUNCTIONS, "delta_rule": delta_rule}
_OF_DELTA = frozenset({"q", "k", "v", "g", "beta", "use_qk_l2norm_in_kernel"})
LAST = {"selective_scan": "return_last_state", "ssd": "return_final_states", "delta_rule": "output_final_state"}
BOTH = frozenset({OFFSETS, "seq_idx"})
Given = dict[str, Any]
Wrong = Callable[[Given], bool]
ALWAYS_RIGHT: Wrong = lambda given: False


def told(op: str, by: frozenset[str] = BOTH, wrong: Wrong = ALWAYS_RIGHT, states_off: float = 0.0) -> Kernel:
    """An operation that is told of documents by numbers, by offsets or by both, and returns the states that are asked
    for. wrong: which calls give zeros; states_off: how far the states are off beside numbers and offsets.
    """

    def call(**given: Any) -> Any:
        given = {**given}
        is_wrong = wrong({**given})
        flags = {name for name in (*STATE_OUT, OFFSET_STATES) if given.pop(name, False)}
        given = given if op == "ssd" else {name: m for name, m in given.items() if name != "chunk_size"}
        numbers, offsets = given.pop("seq_idx", None), given.pop(OFFSETS, None)
        y, last, states = _of_documents(op, given, numbers, offsets)
        off = states_off if numbers is not None and offsets is not None else 0.0
        found = [y]
        if LAST[op] in flags:
            found.append((last if offsets is None or numbers is not None else states) + off)
        if OFFSET_STATES in flags and (numbers is not None or LAST[op] not in flags):
            found.append(states + off)
        found = [torch.zeros_like(m) for m in found] if is_wrong else found
        return tuple(found) if len(found) > 1 else found[0]

    base = ours(op).accepts if op != "delta_rule" else _OF_DELTA
    names = base - BOTH | by | {LAST[op], STATE_IN[op]} | ({OFFSET_STATES} if op == "ssd" and by == BOTH else set())
    return Kernel("told", op, call, names)


def _of_documents(op: str, given: Given, numbers: Tensor | None, offsets: Tensor | None) -> tuple[Tensor, ...]:
    """y, the last state, and the states of documents of one row: each of them, one after the other."""
    if numbers is not None and len(numbers) > 1:
        of_rows = [
            _of_documents(op, {name: _row(name, m, i) for name, m in given.items()}, numbers[i : i + 1], None)
            for i in range(len(numbers))
        ]
        return tuple(torch.cat(each) for each in zip(*of_rows, strict=True))
    if numbers is None and offsets is None:
        y, last = RIGHT[op](**given)
        return y, last, last
    ends = ends_of_documents(numbers[0]) if numbers is not None else offsets[1:].tolist()
    state, found = given.pop(STATE_IN[op], None), []
    for start, stop in zip([0, *ends], ends, strict=False):
        part = {name: piece(op, name, m, start, stop) for name, m in given.items() if isinstance(m, Tensor)}
        begun = {STATE_IN[op]: state} if state is not None and not start else {}
        found.append(RIGHT[op](**given | part | begun))
    return torch.cat([y for y, _ in found], TIME_AXIS[op]), found[-1][1], torch.cat([last for _, last in found])


_OF_ROWS = {"u", "x", "delta", "dt", "B", "C", "z", "q", "k", "v", "g", "beta", *STATE_IN.values()}


def _row(name: str, m: Any, i: int) -> Any:
    return m[i : i + 1] if name in _OF_ROWS else m


def asked(tested: Kernel) -> list[Case]:
    """The exact cases of this kind that it is asked."""
    return [case for case in told_cases(tested.op, untold(tested)) if not case.tolerance]


def statuses(tested: Kernel, part: slice = slice(None)) -> dict[str, str]:
    return {case.name: judged(tested, case).status for case in asked(tested)[part]}


def is_whole(given: Given) -> bool:
    """Whether there is one document in each row, of more than one position."""
    numbers, offsets = given.get("seq_idx"), given.get(OFFSETS)
    if numbers is not None and numbers.shape[1] > 1:
        return bool((numbers == numbers[:, :1]).all())
    return offsets is not None and len(offsets) == 2


def has_states(op: str, given: Given) -> bool:
    return bool(given.get(LAST[op]) or given.get(OFFSET_STATES))


WAYS: dict[str, Wrong] = {
    "numbers alone, in one row": lambda given: OFFSETS not in given and len(given.get("seq_idx", "12")) == 1,
    "offsets alone": lambda given: OFFSETS in given and "seq_idx" not in given,
    "both": lambda given: {*given} >= BOTH,
}
KERNELS = [
    *((op, BOTH) for op in ("selective_scan", "ssd")),
    *((op, frozenset({"seq_idx"})) for op in ("selective_scan", "ssd")),
    *((op, frozenset({OFFSETS})) for op in ("selective_scan", "ssd", "delta_rule")),
]
ids = lambda each: each if isinstance(each, str) else " and ".join(sorted(each)) if isinstance(each, frozenset) else ""


@pytest.mark.parametrize(("op", "by"), KERNELS, ids=ids)
def test_a_right_kernel_is_right(op: str, by: frozenset[str]) -> None:
    """Of every kind of signature; several rows are none beside offsets."""
    of_kind = told_cases(op, untold(told(op, by)))
    found = [judged(told(op, by), case).status for case in of_kind[::2]]
    assert {*found} <= {"passed", "skipped"} and found.count("passed") > 10
    packed = [case for case in cases(op) if "seq_idx" in case.inputs]
    assert {judged(told(op, by), case).status for case in packed} == {"passed"}


@pytest.mark.parametrize(("op", "by"), KERNELS, ids=ids)
def test_one_document_that_fills_its_row_is_asked(op: str, by: frozenset[str]) -> None:
    """At several lengths, with and without a state before it and one behind it; and found to be wrong."""
    seen: set[tuple[bool, bool]] = set()
    lengths: set[int] = set()

    def record(given: Given) -> bool:
        if whole := is_whole(given):
            seen.add((STATE_IN[op] in given, has_states(op, given)))
            lengths.add(next(given[name] for name in ("u", "x", "v") if name in given).shape[TIME_AXIS[op]])
        return whole

    found = statuses(told(op, by, record))
    assert [*found.values()].count("failed") > 10
    assert seen == {(before, behind) for before in (False, True) for behind in (False, True)}
    assert lengths == {*(DELTA_WHOLE_LENGTHS if op == "delta_rule" else WHOLE_LENGTHS)}


@pytest.mark.parametrize("states", [False, True], ids=["no states", "states"])
@pytest.mark.parametrize("op", ["selective_scan", "ssd", "delta_rule"])
def test_one_document_by_offsets_alone_meets_each_option(op: str, states: bool) -> None:
    """On exact operands, with a state that is asked for and without: several rows have no offsets, and hide none."""
    tested = told(op, frozenset({OFFSETS}))
    rows = [(case, tested.documents.asked_of(case)) for case in asked(tested) if len(case.inputs["seq_idx"]) == 1]
    having = {
        option
        for case, call in rows
        if is_whole(case.inputs) and bool(call.states) is states
        for option in (*options_of(case), ("length", case.inputs["seq_idx"].shape[1]))
    }
    lengths = {("length", length) for length in (DELTA_WHOLE_LENGTHS if op == "delta_rule" else WHOLE_LENGTHS)}
    without = {"start", "last state"}  # a document is packed, and which state is asked for are the ways
    wanted = {option for option in (*firsts(op), *varied(op)) if option[0] not in without} - {("batch", 2)}
    assert wanted | lengths <= having


@pytest.mark.parametrize("states", [False, True], ids=["no states", "states"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_who_takes_numbers_and_offsets_is_told_in_each_way(op: str, way: str, states: bool) -> None:
    """And a mistake in one of them is found."""
    wrong: Wrong = lambda given: WAYS[way](given) and has_states(op, given) is states
    found = statuses(told(op, BOTH, wrong), slice(0, None, 2))
    assert {*found.values()} == {"passed", "failed"}


@pytest.mark.parametrize(
    "flags",
    [set(), {LAST["ssd"]}, {OFFSET_STATES}, {LAST["ssd"], OFFSET_STATES}],
    ids=lambda flags: " and ".join(sorted(flags)) or "y",
)
def test_beside_both_each_state_is_asked_for_by_itself(flags: set[str]) -> None:
    has: Wrong = lambda given: (
        WAYS["both"](given) and {each for each in (LAST["ssd"], OFFSET_STATES) if given.get(each)} == flags
    )
    tested = told("ssd", BOTH, has)
    plain = [case for case in cases("ssd") if case.stage == "packed"]
    assert "failed" in {judged(tested, case).status for case in (*plain, *asked(tested))}


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "delta_rule"])
def test_offsets_alone_are_asked_for_y_alone(op: str) -> None:
    wrong: Wrong = lambda given: OFFSETS in given and not has_states(op, given)
    assert "failed" in statuses(told(op, frozenset({OFFSETS}), wrong)).values()


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_offsets_alone_may_ask_for_the_state_of_the_row(op: str) -> None:
    """Of a kernel that takes numbers as well: one state, that of the last document."""

    def of_row(**given: Any) -> Any:
        found = told(op).call(**given)
        alone = OFFSETS in given and "seq_idx" not in given and isinstance(found, tuple)
        return (found[0], found[1][-1:] + off) if alone else found

    tested = replace(told(op), call=of_row)
    alone = [case for case in asked(tested) if case.options.get("told") == "offsets"]
    for off, says in ((0.0, {"passed"}), (1.0, {"passed", "failed"})):  # read by the function
        assert off >= 0 and {judged(tested, case).status for case in alone} == says


@pytest.mark.parametrize("by", [BOTH, {"seq_idx"}], ids=["both", "numbers"])
@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_a_last_state_is_compared_wherever_it_is_asked_for(op: str, by: frozenset[str]) -> None:
    """The names of right cases had said that none is returned."""
    heard: list[bool] = []
    hears: Wrong = lambda given: bool(heard.append(has_states(op, given)))
    packed = [case for case in (*cases(op), *told_cases(op)[::3]) if "seq_idx" in case.inputs]
    for case in packed:
        heard.clear()
        ran = run(told(op, frozenset(by), hears), case)
        assert heard and {*heard} == {ran.states} == {bool(ran.case.states)} and ran.finding.status == "passed"
        assert _name(ran.finding) == case.name
        if "told" not in case.options and len(case.inputs["seq_idx"]) == 1 and by == BOTH:
            wrong = run(told(op, states_off=7.0), case)
            assert wrong.finding.status == ("failed" if ran.states else "passed"), case.name


def test_what_is_never_told_is_said() -> None:
    """By a kernel that refuses offsets alone, and one document in a row."""

    def call(**given: Any) -> Any:
        if WAYS["offsets alone"](given) or is_whole(given):
            raise NotImplementedError("not yet")
        return told("ssd").call(**given)

    tested = replace(told("ssd"), call=call)
    found: list[Ran] = [run(tested, case) for case in asked(tested)]
    ran = [each.case for each in found if each.finding.status == "passed"]
    said = never_asked(tested, [each.case for each in found], ran)
    assert "cu_seqlens alone" in said and "one document that fills its row" in said
    assert not {"seq_idx alone in one row", "seq_idx and cu_seqlens together", "cu_seqlens without a state"} & {*said}


def test_a_kernel_of_few_sizes_is_told_at_one_that_it_takes() -> None:
    """Whole vectors of channels, and lengths in sixteens."""

    def call(**given: Any) -> Any:
        if given["x"].shape[1] % 8:
            raise NotImplementedError("channels in eights")
        return ours("conv").call(**given)

    found = [each for each in trial(replace(ours("conv"), call=call)) if each.finding.status == "passed"]
    whole = [each.case for each in found if "one for a row" in each.case.name]
    assert whole and ("start", "documents") in {option for case in whole for option in options_of(case)}


@pytest.mark.parametrize("op", TOLD)
def test_what_meets_where_a_kernel_takes_few_sizes_is_as_the_page_has_it(op: str) -> None:
    """Each way with each option, and any two ways with what documents begin with: no way with any two options."""
    page = in_one_line(CASES)
    said = "each way meets each option that it takes, and any two of the ways meet with each thing that documents may"
    assert said in page and "Beside one way no two options must meet there" in page
    kinds = [{name: name in TOLD[op] for name, _ in some} for some in ways_in_rows(op, frozenset())]
    assert {len(kind) for kind in kinds} == {2, 3} if len(TOLD[op]) > 1 else {2}
    for kind in kinds:
        assert any(kind.values())
        assert len(kind) == 2 or all(is_way or name == "start" for name, is_way in kind.items())


def several(given: Given) -> bool:
    """Whether offsets alone tell of several documents."""
    return WAYS["offsets alone"](given) and len(given[OFFSETS]) > 2


CALLS = [
    *((frozenset({OFFSETS}), (before, behind)) for before in (False, True) for behind in (False, True)),
    *((BOTH, (False, behind)) for behind in (False, True)),  # either form of states may be before documents
]


@pytest.mark.parametrize(("by", "way"), CALLS, ids=lambda each: ids(each) or f"state {each[0]}, asked {each[1]}")
def test_a_kernel_of_few_sizes_is_told_of_several_documents_in_each_way(by, way: tuple[bool, bool]) -> None:
    """By offsets alone, with a state before them and one behind them, and without."""
    op = "selective_scan"
    tested = told(op, by, lambda given: several(given) and (STATE_IN[op] in given, has_states(op, given)) == way)

    def call(**given: Any) -> Any:
        if given["u"].shape[1] != 64 or given["u"].shape[2] % 16 or given["A"].shape[1] != 16:
            raise NotImplementedError("64 channels")
        return tested.call(**given)

    assert "failed" in {each.finding.status for each in trial(replace(tested, call=call))}


def test_states_of_documents_are_states_that_a_call_asks_for() -> None:
    """Offsets alone ask for them by the argument for a last state: such a call is none without."""
    tested = told("selective_scan", frozenset({OFFSETS}))
    packed = [case for case in cases("selective_scan") if case.stage == "packed" and len(case.inputs["seq_idx"]) == 1]
    ran = [run(tested, case).case for case in packed]
    assert packed and all(levels_of(case)["last state"] == ("document_states" in case.expected) for case in ran)
