"""What a report says of wrong cases: a cause only where it explains all, what sets them apart, which entries."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from compiler.runtime.selective_scan import selective_scan
from conformance import report
from conformance.asked import never_asked
from conformance.cases import cases
from conformance.cases.crossed import crossed_cases
from conformance.entries import described, indices
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as faulty
from conformance.faults.small import conv
from conformance.features import apart, features, first_use
from conformance.findings import Finding, Why
from conformance.judge import _values, judge, run, trial, why
from conformance.kernel.signature import kernel
from conformance.loader import Case
from constructions.command.conformance_shown import why_wrong


def changed(change):
    """Our scan with its arguments changed."""

    def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        given = dict(u=u, delta=delta, A=A, B=B, C=C, D=D, z=z, delta_bias=delta_bias, delta_softplus=delta_softplus)
        return selective_scan(**change(given))

    return kernel(scan)


SHORT = [case for case in cases("selective_scan") if case.inputs["u"].shape[2] < 20 and not case.tolerance]


def reasons(tested, of=SHORT):
    return why([run(tested, case) for case in of])


def test_a_mistake_that_explains_all_is_likely() -> None:
    assert reasons(changed(lambda m: m | {"D": None})).likely == "D u is left out"


def test_no_mistake_is_likely_where_states_of_documents_are_wrong_too() -> None:
    def scan(u, delta, A, B, C, D=None, return_last_state=False, cu_seqlens=None):
        states = []
        for start, stop in pairwise([0, u.shape[2]] if cu_seqlens is None else cu_seqlens.tolist()):
            part = [m[..., start:stop] for m in (u, delta, B, C)]
            y, state = selective_scan(part[0], part[1], A, part[2], part[3], return_last_state=True)
            states.append((y, state))
        y, state = (torch.cat(each, axis) for each, axis in zip(zip(*states, strict=True), (2, 0), strict=True))
        rolled = state.roll(1, 0) if roll and D is not None else state
        return (y, rolled) if return_last_state else y

    of = [case for case in SHORT if not {"z", "delta_bias", "initial_state"} & case.inputs.keys()]
    of = [case for case in of if not case.options.get("delta_softplus") and not case.options.get("cuts")]
    of += [case for case in crossed_cases("selective_scan") if {"D", "seq_idx"} <= case.inputs.keys()][:40]
    found = {}
    for roll in (False, True):
        ran = [run(kernel(scan), case) for case in of]
        assert any("document_states" in each.case.expected and each.results is not None for each in ran)
        found[roll] = why(ran).likely
    assert found == {False: "D u is left out", True: ""}


def test_two_mistakes_are_likely_where_together_they_explain_all() -> None:
    assert reasons(changed(lambda m: m | {"D": None, "z": None})).likely == "D u is left out and the gate is left out"


@pytest.mark.parametrize(("op", "lacks"), [("ssd", ""), ("ssd", "chunk_size"), ("step", "")])
def test_chunks_set_no_cases_of_a_kernel_apart_that_is_not_told_of_them(op: str, lacks: str) -> None:
    """A step was said to be wrong where a chunk has more than one position."""
    case = next(case for case in cases("ssd") if {*case.inputs} == {"x", "dt", "A", "B", "C"})
    off = [0]

    def call(**given):
        found = FUNCTIONS[op](**(given if op == "step" else {"chunk_size": 64} | given))
        return found + off[0] if op == "step" else (found[0] + off[0], *found[1:])

    tested, ran = replace(faulty(op), call=call, accepts=faulty(op).accepts - {lacks}), []
    for off[0], size in ((0, 16), (1, 64)):
        ran.append(run(tested, replace(case, options={**case.options, "chunk_size": size})))
    assert [each.finding.status for each in ran] == ["passed", "failed"]
    assert why(ran).apart == (() if lacks or op == "step" else ("more than 16 positions of a chunk",))


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_a_gate_before_d_is_likely(op: str) -> None:
    """An attacker's table had it, and the report named nothing."""
    short = [case for case in cases(op) if case.expected["y"].numel() < 300 and not case.tolerance]
    assert why([run(faulty(op, "gate before D"), case) for case in short]).likely == "the gate acts before D u is added"


def test_a_step_in_the_skip_is_likely_and_shows_at_its_own_stage() -> None:
    """A new user's kernel had it: where Δ was 1 in each case with D, the first wrong stage was that of rows."""

    def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        x, step, B, C = (m.float() for m in (u, delta, B, C))
        step = step if delta_bias is None else step + delta_bias[:, None]
        step = torch.nn.functional.softplus(step) if delta_softplus else step
        y = selective_scan(x, step, A, B, C)
        y = y if D is None else y + D[:, None] * step * x
        return (y if z is None else y * torch.nn.functional.silu(z.float())).to(u.dtype)

    ran = [run(kernel(scan), case) for case in SHORT]
    wrong = [outcome.case for outcome in ran if outcome.finding.status == "failed"]
    assert why(ran).likely == "D u is multiplied by Δ" and wrong[0].stage == "skip and gate"


def test_a_mistake_that_explains_some_only_is_not_likely() -> None:
    """D is left out where there is a gate: "D u is left out" gives what was seen there, but D works elsewhere."""
    tested = changed(lambda m: m | {"D": None} if m["z"] is not None else m)
    case = next(case for case in SHORT if case.name == "skip and gate")
    assert [f.cause for f in judge(tested, [case])] == ["D u is left out"]
    known = reasons(tested)
    assert (known.likely, known.somewhere) == ("", "D u is left out") and known.apart[0] == "D and z"


UNDER = "under a condition: this gives all wrong results, and does not leave all right ones right"
NONE = "no known mistake gives all wrong results and leaves all right ones right"


def test_a_mistake_that_is_made_under_a_condition_is_named_with_it() -> None:
    """An attacker lost a bias beside float16: "no known mistake gives all wrong results" was said, and was not so."""

    def lossy(x, weight, bias=None, activation=None):
        return conv(x, weight, None if x.dtype == torch.float16 else bias, activation=activation)

    known = reasons(kernel(lossy), crossed_cases("conv")[:120])
    assert (known.likely, known.somewhere) == ("", "the bias of the convolution is left out")
    assert known.apart == ("bias and float16",)
    said = [*why_wrong(known, Finding("crossing", "a case", "failed"))]
    assert said[:2] == [
        f"likely: {known.somewhere}, {UNDER}",
        "all wrong cases have, and no right one has: bias and float16",
    ]


def test_a_mistake_whose_condition_is_not_known_is_not_called_likely() -> None:
    """It is left out of two cases that have nothing in common which no other has."""
    chosen = [case for case in SHORT if "D" in case.inputs][::3]
    sizes = {tuple(case.inputs["u"].shape) for case in chosen}
    tested = changed(lambda m: m | {"D": None} if tuple(m["u"].shape) in sizes else m)
    known = reasons(tested, [*SHORT, *crossed_cases("selective_scan")[:60]])
    assert known.somewhere == "D u is left out"
    said = [*why_wrong(replace(known, apart=()), Finding("step", "a case", "failed"))]
    assert said[0].startswith("D u is left out: this gives all wrong results") and not any("likely" in s for s in said)


def test_of_several_mistakes_that_give_all_wrong_results_none_is_named() -> None:
    """Where a chunk is 16 long, the state is lost every 16 steps and at every chunk border."""

    def ssd(x, dt, A, B, C, chunk_size, z=None):
        bug = "state lost at chunks" if z is not None else ""
        y = FUNCTIONS["ssd"](x, dt, A, B, C, chunk_size, bug=bug)[0]
        return y if z is None else (y.float() * torch.nn.functional.silu(z.float())).to(y.dtype)

    some = [
        case
        for case in crossed_cases("ssd")
        if case.options.get("chunk_size") == 16 and not {*case.inputs} & {"D", "dt_bias", "initial_states", "seq_idx"}
    ]
    found = why([run(kernel(ssd), case) for case in some])
    assert not found.likely and not found.somewhere
    assert NONE in why_wrong(found, Finding("step", "a case", "failed"))


def test_a_mistake_that_leaves_a_wrong_case_open_is_not_likely() -> None:
    tested = changed(lambda m: m | ({"D": None} if m["u"].shape[2] < 7 else {"D": None, "C": 2 * m["C"]}))
    assert (reasons(tested).likely, reasons(tested).somewhere) == ("", "")


def test_what_sets_the_wrong_cases_apart_takes_three_options() -> None:
    def three(m):
        return m | {"u": 2 * m["u"]} if m["z"] is not None and m["D"] is not None and m["u"].shape[2] > 128 else m

    known = reasons(changed(three), crossed_cases("selective_scan"))
    assert known.likely == "" and "D, z and more than 128 positions" in known.apart


def test_where_nothing_sets_all_apart_the_first_use_is_told() -> None:
    """Wrong with a bias, and with 13 positions: two faults, of which no three options are common."""
    tested = changed(lambda m: m | {"u": 2 * m["u"]} if m["delta_bias"] is not None or m["u"].shape[2] == 13 else m)
    known = reasons(tested, [case for case in SHORT if case.name != "columns"])
    assert known.apart == () and known.first[0] == "bias"


def test_nothing_is_the_first_use_where_the_first_case_is_wrong() -> None:
    tested = changed(lambda m: m | {"u": 2 * m["u"]})
    known = reasons(tested, [*SHORT, *(case for case in cases("selective_scan") if case.name == "curve of exp")])
    assert known.first == ()


def test_one_name_of_an_activation_is_told_from_the_other() -> None:
    def knows_silu(x, weight, bias=None, activation=None):
        return conv(x, weight, bias, activation=None if activation == "swish" else activation)

    known = reasons(kernel(knows_silu), [case for case in cases("conv") if case.stage == "window"])
    assert known.likely == "" and known.apart[0] == "activation 'swish'"


def test_where_no_three_options_set_them_apart_the_report_says_so() -> None:
    finding = Finding("step", "a case", "failed", asks="something")
    said = "no three of the options and sizes that are compared set them apart"
    assert said in why_wrong(Why(), finding)
    assert said not in [
        *why_wrong(Why(apart=("D",)), finding),
        *why_wrong(Why(first=("D",)), finding),
        *why_wrong(Why("D"), finding),
    ]


def test_traits_are_true_of_the_cases() -> None:
    wrong, right = SHORT[3:4], SHORT[:3]
    assert (
        first_use(wrong, right) == apart(wrong, right) and features(wrong[0])["bias"] and "bias" in apart(wrong, right)
    )
    assert apart(right, []) == [] and apart(right[:1], right[:1]) == []


@pytest.mark.parametrize(
    ("places", "size", "words"),
    [
        (range(8), 8, ""),
        ([3], 8, "channel 3"),
        ([3, 7], 8, "channels ≡ 3 mod 4"),
        ([7, 11, 15], 16, "channels ≡ 3 mod 4 from 7 on"),
        (range(5, 8), 8, "channels from 5 on"),
        (range(2, 5), 8, "channels 2 to 4"),
        ([0, 1, 5], 8, "channels 0, 1, 5"),
        ([0, 1, 5, 6, 7, 9], 10, "6 of 10 channels"),
        ([1, 2, 4, 5, 7, 8], 10, "6 of the channels from 1 to 8"),
        ([64, 128, 192], 200, "channels ≡ 0 mod 64 from 64 on"),
    ],
)
def test_indices_in_words(places, size: int, words: str) -> None:
    assert indices("channel", list(places), size) == words


def entries(change) -> str:
    """What is said of y (2, 8, 129), of which no two entries are the same, where it is changed."""
    y = torch.arange(1.0, 2 * 8 * 129 + 1).reshape(2, 8, 129)
    case = Case("selective_scan", "crossing", "all different", "", {"u": y}, {}, {"y": y.double()})
    found = change(y.clone(), y)
    return described(case, {"y": case.wrong("y", found)}, {"y": found})


def assign(place, value):
    def change(y, right):
        y[place] = value(right) if callable(value) else value
        return y

    return change


ALL = slice(None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (assign((ALL, slice(3, None, 4)), 1e4), "y: only in channels ≡ 3 mod 4"),
        (assign((ALL, ALL, slice(64, None)), lambda y: 3 * y[:, :, 64:]), "from 64 on; they are 3 times what is right"),
        (assign(1, lambda y: y[0]), "y: only in row 1; row 1 has that of row 0"),
        (assign((ALL, 2), lambda y: y[:, 5]), "y: only in channel 2; channel 2 has that of channel 5"),
        (assign((0, 2, 9), float("nan")), "y: only in row 0, channel 2, position 9; they are NaN"),
        (assign((ALL, ALL, 128), 0), "y: only in position 128; they are 0"),
        (assign(ALL, 1e4), "y: all over"),
        (assign((0, range(8), range(0, 80, 10)), 0), "y: only in row 0, 8 of the positions from 0 to 70: 8 of the 64"),
        (assign((range(2), range(0, 8, 7), range(0, 129, 128)), 0), ": 2 of the 8 entries there; they are 0"),
        (assign((ALL, 2), lambda y: y[:, 2] * (1 + 2**-10)), "they are 1.0009765625 times what is right"),
    ],
)
def test_wrong_entries_in_words(change, words: str) -> None:
    assert words in entries(change)


def test_the_state_of_another_row_is_told() -> None:
    y, state = torch.ones(2, 4, 5), torch.arange(1.0, 17.0).reshape(2, 4, 2)
    expected = {"y": y.double(), "last_state": state.double()}
    case = Case("selective_scan", "last state", "all different", "", {"u": y}, {}, expected)
    found = {"y": y, "last_state": state[:1].expand(2, 4, 2)}
    wrong = {name: case.wrong(name, result) for name, result in found.items()}
    assert described(case, wrong, found) == "the last state: only in row 1; row 1 has that of row 0"


def test_what_raises_failed_to_run_once() -> None:
    """Whatever address its message has; and it is not wrong."""

    def raises(u, delta, A, B, C, D=None, z=None):
        if z is not None:
            raise RuntimeError(f"z at {hex(4096 + z.shape[2])}")
        return selective_scan(u, delta, A, B, C, D)

    tested = report.Tested("raises", "kernel", judge(kernel(raises), SHORT))
    ((says, where),) = tested.failed_to_run()
    assert len(where) >= 3 and says == f"RuntimeError: z at {hex(4096 + 7)}" and not tested.good
    assert {f.status for f in tested.findings} == {"passed", "failed to run", "skipped"}
    assert tested.to_json()["failed_to_run"] == [{"says": says, "cases": [f.case for f in where]}]


def test_what_says_that_it_is_not_there_is_skipped() -> None:
    def refuses(u, delta, A, B, C, D=None, z=None):
        if z is not None:
            raise NotImplementedError("gates come later")
        return selective_scan(u, delta, A, B, C, D)

    exact, random = report.try_kernel(kernel(refuses))
    assert exact.good and random.good
    assert "NotImplementedError: gates come later" in dict(exact.skipped())


def test_a_result_of_another_form_has_no_likely_cause() -> None:
    def half(u, delta, A, B, C):
        return selective_scan(u, delta, A, B, C).half()

    assert {f.cause for f in judge(kernel(half), SHORT) if f.status == "failed"} == {""}


@pytest.mark.parametrize(
    ("op", "bug", "named"),
    [
        ("selective_scan", "bias of the step twice", "the bias of Δ is added twice"),
        ("selective_scan", "initial state ignored", "the initial state is ignored"),
        ("ssd", "state lost at chunks", "the state is lost at every chunk border"),
    ],
)
def test_a_mistake_that_is_made_everywhere_is_named_over_all_cases(op: str, bug: str, named: str) -> None:
    """In pieces, beside documents, in narrow dtypes, and where a wrong result is no longer one of exact numbers."""
    assert why(list(trial(faulty(op, bug)))).likely == named


def test_options_that_no_case_asked_for_are_told() -> None:
    """A kernel of lengths in sixteens is asked for no option by the small cases."""

    def in_sixteens(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        if u.shape[2] % 16:
            raise NotImplementedError("lengths in sixteens only")
        return selective_scan(u, delta, A, B, C)

    of = cases("selective_scan")
    ran = [run(kernel(in_sixteens), case) for case in of]
    assert {each.finding.status for each in ran} == {"passed", "skipped"}
    never = never_asked(kernel(in_sixteens), of, ran_of(ran))
    assert never[:4] == ("D", "bias", "softplus", "z") and "float16" in never
    ours = changed(lambda m: m)
    assert never_asked(ours, of, ran_of([run(ours, case) for case in of])) == ()


def ran_of(found):
    return [each.case for each in found if each.finding.status in ("passed", "failed")]


def test_few_wrong_entries_are_not_all_over() -> None:
    """One in every row, channel and position of a state: its box is all of it."""
    state = torch.arange(1.0, 9.0).reshape(1, 2, 2, 2)
    case = Case("ssd", "last state", "x", "", {"x": state}, {}, {"y": state.double(), "last_state": state.double()})
    found = state.clone()
    found[0, 0, 0, 0], found[0, 1, 1, 1] = 100, 101
    wrong = {"last_state": case.wrong("last_state", found)}
    assert described(case, wrong, {"last_state": found}) == "the last state: 2 of 8 entries"


def test_nothing_is_said_to_be_first_of_what_an_earlier_case_had() -> None:
    """One that failed to run had it too."""

    def scan(u, delta, A, B, C, D=None):
        if D is not None and u.shape[2] == 5:
            raise RuntimeError("no 5 positions")
        y = selective_scan(u, delta, A, B, C, D)
        return y if D is None else y + 1

    ran = [run(kernel(scan), case) for case in SHORT if not {"z", "delta_bias"} & case.inputs.keys()]
    known = why(ran)
    assert any("D" in each.case.inputs for each in ran if each.finding.status == "failed to run")
    said = " ".join(why_wrong(Why(first=("D",)), Finding("step", "a case", "failed")))
    assert "the first wrong case has, and no right one has: D" in said and "first to" not in said and known.apart


def test_a_value_is_told_with_what_would_be_right() -> None:
    """In the dtype of the result, and with how far it may be off."""
    case = Case(
        "norm", "dtype", "x", "", {"x": torch.ones(1, 1, 1).bfloat16()}, {}, {"y": torch.full((1, 1, 1), 257.0)}
    )
    case.expected["y"].double()
    assert _values(case, "y", (0, 0, 0), torch.full((1, 1, 1), 258.0).bfloat16()) == "y[0, 0, 0] is 258, not 256"
    near = Case("norm", "dtype", "x", "", case.inputs, {}, case.expected, {"y": torch.full((1, 1, 1), 0.25)})
    assert _values(near, "y", (0, 0, 0), torch.full((1, 1, 1), 258.0)) == "y[0, 0, 0] is 258, not 257 ± 0.25"


def test_borders_that_a_kernel_does_not_have_are_not_named() -> None:
    case = next(case for case in cases("ssd") if case.name == "16 and one")

    def late(m):
        def call(*given, **named):
            y = FUNCTIONS["ssd"](*given, **named)[0]
            y[:, 16] += 1
            return y

        return call

    def ssd(x, dt, A, B, C):
        return late(x)(x, dt, A, B, C, 16)

    def chunked(x, dt, A, B, C, chunk_size):
        return late(x)(x, dt, A, B, C, chunk_size)

    assert run(kernel(chunked), case).finding.near == "at the chunk border 16"
    assert run(kernel(ssd), case).finding.near == "at a multiple of 16"


def test_where_no_case_is_right_the_report_says_so() -> None:
    def scan(u, delta, A, B, C):
        return selective_scan(u, delta, A, B, C) + 1

    known = reasons(kernel(scan))
    assert known.none_right and "no case that was run is right" in why_wrong(known, Finding("step", "a case", "failed"))
