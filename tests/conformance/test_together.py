"""Kernels that refuse options, alone or together: what they take still meets, and what never met is told."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.asked import as_words
from conformance.cases.crossed import crossed_cases
from conformance.cases.rendered import render
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import run, trial
from conformance.kernel.kernel import Kernel
from conformance.report import never_run
from conformance.together import levels_of, met, never_met, wanted

Refuses = Callable[[Mapping[str, Any]], str]
"""Why a kernel refuses a call, or nothing."""


def scan_of_tiles(given: Mapping[str, Any]) -> str:
    u = given["u"]
    if u.dtype != torch.bfloat16 or len(u) > 1:
        return "one row of bfloat16"
    tiles = u.shape[2] % 64 == 0 and u.shape[1] % 64 == 0 and given["A"].shape[1] == 16
    return "" if tiles else "tiles of 64 positions and channels, 16 columns"


def scan_without_groups(given: Mapping[str, Any]) -> str:
    u = given["u"]
    if given["B"].dim() == 4 or u.dtype == torch.float32:
        return "no groups, no float32"
    return "" if u.shape[2] % 64 == 0 and u.shape[1] % 64 == 0 else "tiles"


def conv_of_tiles(given: Mapping[str, Any]) -> str:
    x = given["x"]
    if x.shape[1] % 64 or x.shape[2] % 64 or given["weight"].shape[1] != 4:
        return "tiles of 64 and four taps"
    documents = given.get("seq_idx") is not None
    return "no last states of documents" if documents and given.get("return_final_states") else ""


def of(op: str, refuses: Refuses, changed: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given) -> Kernel:
    right = FUNCTIONS[op]

    def call(**given: Any) -> Any:
        if why := refuses(given):
            raise NotImplementedError(why)
        return right(**{name: m for name, m in changed(given).items() if "return" not in name})

    accepts = {
        "selective_scan": "u delta A B C D z delta_bias delta_softplus return_last_state initial_state seq_idx",
        "conv": "x weight bias seq_idx initial_states return_final_states activation",
        "norm": "x weight z eps group_size norm_before_gate",
    }[op]
    return Kernel("restricted", op, call, frozenset(accepts.split()))


def without(name: str, where: Callable[[Mapping[str, Any]], bool]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What a kernel is given, but an operand that it loses somewhere."""
    return lambda given: {**given, name: None} if where(given) else given


def _plain(given: Mapping[str, Any]) -> bool:
    return given.get("initial_state") is None and given.get("seq_idx") is None and not given.get("return_last_state")


def _packed_after_a_state(given: Mapping[str, Any]) -> bool:
    return given.get("initial_state") is not None and given.get("seq_idx") is not None


WRONG = {
    "D in a plain call": ("selective_scan", scan_of_tiles, without("D", _plain)),
    "z after a state": ("selective_scan", scan_of_tiles, without("z", _packed_after_a_state)),
    "z in half": ("selective_scan", scan_without_groups, without("z", lambda m: m["u"].dtype == torch.half)),
    "bias with swish": ("conv", conv_of_tiles, without("bias", lambda m: m.get("activation") == "swish")),
    "silu in bfloat16": (
        "conv",
        conv_of_tiles,
        without("activation", lambda m: m["x"].dtype == torch.bfloat16 and m.get("activation") == "silu"),
    ),
    "silu with a last state": (
        "conv",
        conv_of_tiles,
        without("activation", lambda m: m.get("return_final_states") and m.get("activation") == "silu"),
    ),
}


@pytest.mark.parametrize("lost", WRONG)
def test_what_two_options_lose_is_found_beside_what_is_refused(lost: str) -> None:
    assert any(each.finding.status == "failed" for each in trial(of(*WRONG[lost])))


def test_a_last_state_that_is_lost_in_half_alone_is_found() -> None:
    tested = of("conv", conv_of_tiles)

    def call(**given: Any) -> Any:
        found = tested.call(**given)
        narrow = given["x"].dtype == torch.half and given.get("return_final_states")
        return (found[0], torch.zeros_like(found[1])) if narrow else found

    wrong = [
        each for each in trial(Kernel("loses it", "conv", call, tested.accepts)) if each.finding.status == "failed"
    ]
    assert wrong and all("last_state" in each.case.expected or "cuts" in each.case.options for each in wrong)


@pytest.mark.parametrize("refuses", [scan_of_tiles, scan_without_groups, conv_of_tiles])
def test_what_is_right_is_right_and_says_what_never_met(refuses: Refuses) -> None:
    op = "conv" if refuses is conv_of_tiles else "selective_scan"
    tested = of(op, refuses)
    found = list(trial(tested))
    assert {each.finding.status for each in found} == {"passed", "skipped"}
    assert never_met(tested, found) == ()  # what is refused alone is told elsewhere


def test_an_option_that_must_be_there_is_found_by_trying() -> None:
    def refuses(given: Mapping[str, Any]) -> str:
        return scan_without_groups(given) or ("D is always added" if given.get("D") is None else "")

    found = list(trial(of("selective_scan", refuses)))
    assert sum(each.finding.status == "passed" for each in found) > 100


_OPTIONS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "dtype": lambda m: str(m["x"].dtype).removeprefix("torch."),
    "batch": lambda m: min(2, len(m["x"])),
    "bias": lambda m: m.get("bias") is not None,
    "taps": lambda m: m["weight"].shape[1],
    "activation": lambda m: m.get("activation"),
    "last state": lambda m: bool(m.get("return_final_states")),
    "documents": lambda m: m.get("seq_idx") is not None,
    "state": lambda m: m.get("initial_states") is not None,
}


def _drawn(seed: int) -> tuple[list[frozenset[tuple[str, Any]]], bool]:
    """Options that are refused alone, in pairs and in threes, and whether sizes are; never the plainest call."""
    lot = random.Random(seed)
    values = {
        "dtype": ["float32", "bfloat16", "float16"], "batch": [1, 2], "bias": [False, True], "taps": [4, 3, 2],
        "activation": [None, "silu", "swish"], "last state": [False, True], "documents": [False, True],
        "state": [False, True],
    }  # fmt: skip
    plain = {(name, lot.choice(each)) for name, each in values.items() if name not in ("last state", "documents")}
    plain |= {("last state", False), ("documents", False)} - {("state", True)}
    refused = []
    for _ in range(lot.randint(1, 6)):
        names = lot.sample(sorted(values), lot.choice((1, 2, 2, 3)))
        some_of_it = frozenset((name, lot.choice(values[name])) for name in names)
        if not some_of_it <= plain:
            refused.append(some_of_it)
    return refused, lot.random() < 0.6


def _calls(levels: Mapping[str, Any]) -> list[set[tuple[str, Any]]]:
    """The options of the calls in which a row of these is run; those of which it says nothing are left out."""
    found = {(name, value) for name, value in levels.items() if name in _OPTIONS}
    match levels.get("start"):
        case "nothing":
            return [found | {("documents", False), ("state", False)}]
        case "documents":
            return [found | {("documents", True), ("state", False)}]
        case "state":
            return [found | {("documents", False), ("state", True)}]
        case "pieces":
            each = {level for level in found if level[0] != "last state"}
            return [each | {("documents", False), ("state", True), ("last state", True)}]
    return [found]


@pytest.mark.parametrize("seed", range(24))
def test_what_is_taken_meets_or_is_told(seed: int) -> None:
    """Whatever a kernel refuses: only what it refuses has not met, and that is told."""
    refused, tiled = _drawn(seed)

    def refuses(given: Mapping[str, Any]) -> str:
        assert not _a_window_beside_documents(given)
        levels = {(name, asks(given)) for name, asks in _OPTIONS.items()}
        if tiled and (given["x"].shape[1] % 64 or given["x"].shape[2] % 64):
            return "tiles of 64"
        return "together" if any(each <= levels for each in refused) else ""

    tested = of("conv", refuses)
    found = list(trial(tested))
    assert {each.finding.status for each in found} <= {"passed", "skipped"}
    ran = [each for each in found if each.finding.status == "passed"]
    assert ran
    missing = wanted(tested, "conv") - met(levels_of(each.case) for each in ran)
    for each in missing:
        assert _must_be_refused(dict(each), refused), (seed, each, refused)
    least = [each for each in missing if not any(part < each for part in missing)]
    assert {*never_met(tested, found)} >= {as_words("conv", each) for each in least if len(each) > 1}


def _a_window_beside_documents(given: Mapping[str, Any]) -> bool:
    """Whether a state is asked for that may hold inputs of the document before, or none of them."""
    return bool(given.get("seq_idx") is not None and given.get("return_final_states"))


SOME = {
    "no silu without documents": lambda m: m.get("activation") == "silu" and m.get("seq_idx") is None,
    "no bias of views": lambda m: m.get("bias") is not None and not m["x"].is_contiguous(),
    "no last state without documents": lambda m: m.get("return_final_states") and m.get("seq_idx") is None,
}


@pytest.mark.parametrize("some", SOME)
def test_a_convolution_is_asked_for_no_window_beside_documents_whatever_it_refuses(some: str) -> None:
    """A right one, whose window there is that of the last document, was called wrong."""
    asked = []

    def refuses(given: Mapping[str, Any]) -> str:
        asked.append(_a_window_beside_documents(given))
        return "tiles" if given["x"].shape[1] % 8 or given["x"].shape[2] % 16 else some * bool(SOME[some](given))

    found = list(trial(of("conv", refuses)))
    assert {each.finding.status for each in found} == {"passed", "skipped"} and asked and not any(asked)


def _must_be_refused(levels: dict[str, Any], refused: list[frozenset[tuple[str, Any]]]) -> bool:
    """Whether no row with these options, whatever the others are, is run."""
    values = {
        "dtype": ["float32", "bfloat16", "float16"], "batch": [1, 2], "bias": [False, True], "taps": [4, 3, 2],
        "activation": [None, "silu", "swish"], "last state": [False, True],
        "start": ["nothing", "state", "pieces", "documents"],
    }  # fmt: skip
    rows: list[dict[str, Any]] = [{}]
    for name, each in values.items():
        rows = [row | {name: v} for row in rows for v in ([levels[name]] if name in levels else each)]
    rows = [row for row in rows if not (row["start"] == "documents" and row["last state"])]
    return all(any(each <= call for each in refused for call in _calls(row)) for row in rows)


def _gate_before_groups(given: Mapping[str, Any]) -> bool:
    before = given.get("z") is not None and not given["norm_before_gate"]
    grouped = given.get("group_size") not in (None, given["x"].shape[-1])
    return before and grouped and given["x"].dtype == torch.float32


@pytest.mark.parametrize(
    "refuses",
    [
        lambda given: "lengths in 16s" if given["x"].shape[1] % 16 else "",
        lambda given: "1,024 channels" if given["x"].shape[2] != 1024 else "",
    ],
    ids=["16 positions", "1,024 channels"],
)
def test_the_side_of_a_gate_meets_two_options_where_there_is_a_gate(refuses: Refuses) -> None:
    """Of a norm without a gate a side met the two others, and where there is one it never did."""
    tested = of("norm", refuses, without("z", _gate_before_groups))
    assert any(each.finding.status == "failed" for each in trial(tested))


def test_no_last_state_is_told_of_a_kernel_that_has_no_argument_for_it() -> None:
    full = of("conv", lambda given: "" if given["x"].shape[1] == 64 else "64 channels")
    call = lambda **given: full.call(**given)[0] if isinstance(full.call(**given), tuple) else full.call(**given)
    tested = Kernel("no state", "conv", call, frozenset({"x", "weight", "bias", "activation"}))
    found = list(trial(tested))
    assert {each.finding.status for each in found} == {"passed", "skipped"}
    assert not any("last state" in dict(each) for each in wanted(tested, "conv", found))
    assert not any("last state" in words for words in never_met(tested, found))


def test_documents_and_views_meet_only_where_they_can_be_told() -> None:
    row = {"length": 1, "dtype": "float32", "batch": 1, "views": True, "start": "documents", "bias": True, "taps": 4}
    row |= {"sizes": 8, "activation": None, "last state": False}
    one, several = (levels_of(render("conv", row | {"length": length})) for length in (1, 65))
    assert "start" not in one and several["start"] == "documents"
    assert "views" not in one and several["views"] is True


def test_what_a_step_never_met_names_its_operation() -> None:
    """Of each of the two operations on whose cases it is run, and of none of which nothing ran."""
    right = FUNCTIONS["step"]

    def call(**given: Any) -> Any:
        if given.get("D") is not None and given.get("z") is not None and given["state"].dim() == 4:
            raise NotImplementedError("no D beside z of heads")
        return right(**given)

    accepts = frozenset(["state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias", "dt_softplus"])
    tested = Kernel("step", "step", call, accepts)
    found = list(trial(tested))
    said = never_met(tested, found)
    assert {*said} == {
        "selective_scan: D with several groups with z",
        "ssd: D of each channel of a head with z",
        "ssd: D of heads with z",
    }
    only = [each for each in found if each.case.op == "selective_scan"]
    assert not any(words.startswith("ssd: ") for words in never_met(tested, only))


def test_a_beginning_that_no_case_had_is_not_told_as_the_argument() -> None:
    """Documents were given, behind a state; and a state, before documents."""
    scan = ours("selective_scan")
    ways = {
        "documents": ("documents with no state before them", lambda m: m.get("initial_state") is None),
        "state": ("an initial state without documents", lambda m: m.get("initial_state") is not None),
    }
    for start, (words, refused) in ways.items():

        def call(refused=refused, start=start, **given: Any) -> Any:
            if refused(given) and (given.get("seq_idx") is not None) == (start == "documents"):
                raise NotImplementedError("no")
            return scan.call(**given)

        tested = replace(scan, call=call)
        found = [run(tested, case) for case in crossed_cases("selective_scan")]
        said = never_run(tested, found)
        assert words in said and not {"documents", "initial state"} & {*said}
