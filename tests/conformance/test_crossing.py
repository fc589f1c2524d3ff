"""Any three options meet in some case, and a kernel that is wrong only there is found."""

from __future__ import annotations

from functools import partial
from itertools import accumulate, combinations, product

import pytest
import torch

from compiler.runtime.selective_scan import selective_scan
from conformance import exact
from conformance.cases import OPERATIONS, cases
from conformance.cases.covering import covering, tuples
from conformance.cases.crossed import crossed_cases
from conformance.cases.factors import LENGTHS, STEPS, factors_of, wide_factors_of
from conformance.cases.options import options_of, varied
from conformance.cases.packing import SHIFTS, documents_of
from conformance.faults.small import conv, step
from conformance.judge import judge, run, trial, untaken
from conformance.kernel.kernel import Kernel
from conformance.kernel.layouts import laid_out
from conformance.kernel.signature import kernel
from tests.spread import some


def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
    """Ours, as one writes it who has no packed sequences and no state to begin with."""
    return selective_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)


def planted(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    """D u once more, not gated, beyond a chunk of 128."""
    y = selective_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus)
    if D is not None and z is not None and u.shape[2] > 128:
        y = (y.float() + D[:, None] * u.float()).to(y.dtype)
    return y


def met(rows, factors, strength, allowed=lambda levels: True) -> bool:
    """By brute force: every choice of values for every so many factors, if it is allowed, stands in a row."""
    return all(
        any(all(row[name] == value for name, value in zip(names, values, strict=True)) for row in rows)
        for names in combinations(factors, strength)
        for values in product(*(factors[name] for name in names))
        if allowed(dict(zip(names, values, strict=True)))
    )


def is_asked(op: str, levels) -> bool:
    """Of a convolution no last state is asked for beside documents."""
    return not (op == "conv" and levels.get("start") == "documents" and levels.get("last state"))


@pytest.mark.parametrize("op", OPERATIONS)
def test_any_three_options_meet(op: str) -> None:
    for factors in filter(None, (factors_of(op), wide_factors_of(op))):
        rows = covering(factors)
        assert met(rows, factors, 3) and not met(rows[:-1], factors, 3)
        most = sorted(len(values) for values in factors.values())[-3:]
        assert len(rows) < 2 * most[0] * most[1] * most[2]


def test_fewer_factors_than_are_to_meet() -> None:
    factors = {"a": [1, 2, 3], "b": [1, 2]}
    rows = covering(factors, 3)
    assert met(rows, factors, 2) and len(rows) == 6 == len(list(tuples(factors, 3)))
    assert covering({"a": [1]}, 2) == [{"a": 1}]


def test_lengths_stand_around_every_usual_chunk() -> None:
    assert {63, 64, 65, 127, 128, 129, 255, 256, 257, 1025} <= {*LENGTHS}


@pytest.mark.parametrize("op", OPERATIONS)
def test_crossed_results_are_exact_in_every_dtype(op: str) -> None:
    """No result in bfloat16 or half needs more than the 8 bits of bfloat16, or more than half can hold."""
    for case in crossed_cases(op):
        assert not case.tolerance
        own = case.results_in("y")
        if own != torch.float32:
            for name, result in case.expected.items():
                for dtype in (torch.bfloat16, own):
                    assert torch.equal(result.to(dtype).double(), result), (case.name, name)


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_no_order_of_adding_rounds(op: str) -> None:
    """Sums of absolute values stay below 2^24 times the power of two that divides every term."""
    state = {"selective_scan": "initial_state", "ssd": "initial_states"}[op]
    for case in some(crossed_cases(op), 0.02):
        inputs = {name: m.float() if m.is_floating_point() else m for name, m in case.inputs.items() if name != "z"}
        largest = {k: m.abs() if k in ("u", "x", "B", "C", "D", state) else m for k, m in inputs.items()}
        options = {k: v for k, v in case.arguments.items() if k != "chunk_size"}
        found = getattr(exact, op)(exact.Exact, **largest, **options)
        y = case.expected["y"].numpy()
        if "z" in case.inputs:
            y = getattr(exact, op)(exact.Exact, **inputs, **options)["y"].astype(float)
        unit = max(2.0**k for k in range(-8, 9) if not (y % 2.0**k).any())
        assert float(max(found["y"].reshape(-1))) / unit < 2**24, case.name


def wrong_stages(tested: Kernel) -> set[str]:
    return {each.finding.stage for each in trial(tested) if each.finding.status == "failed"}


def test_what_is_wrong_with_two_options_beyond_a_chunk_is_found() -> None:
    """Nothing but the crossing sees it."""
    assert wrong_stages(kernel(planted)) == {"crossing", "rounding, crossed"}
    assert wrong_stages(kernel(scan)) == set()


def test_an_option_that_is_not_taken_does_not_thin_the_rest() -> None:
    """Of a kernel without initial state, documents and groups, any three of the other options still meet."""

    def narrow(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
        if B.dim() == 4:
            raise NotImplementedError("groups")
        return scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)

    found = list(trial(kernel(narrow)))
    lacking = untaken("selective_scan", found)
    begun = ("state", "pieces", "documents", "state and documents")
    assert lacking == {("groups", 2), *(("start", value) for value in begun)}
    plain = [each for each in found if each.case.stage == "crossing" and not each.case.name.startswith("fitted: ")]
    crossed = [each.case for each in plain]
    assert {each.finding.status for each in plain} == {"passed"}
    names = ("length", "dtype", "batch", "views", "D", "z", "bias", "softplus")
    for ordinary in (False, True):
        asked = [case for case in crossed if bool(case.tolerance) == ordinary]
        rows = [dict(options_of(case)) | {"length": case.inputs["u"].shape[2]} for case in asked]
        assert met(rows, {name: factors_of("selective_scan")[name] for name in names}, 3)


def test_options_are_read_off_cases_as_they_were_crossed() -> None:
    for op in OPERATIONS:
        for option in varied(op):
            assert any(option in options_of(case) for case in crossed_cases(op)), (op, option)


def test_a_step_is_crossed_over_a_few_positions() -> None:
    lengths = {case.inputs["u"].shape[2] for case in crossed_cases("selective_scan", frozenset(), STEPS)}
    assert lengths == {*STEPS} and max(STEPS) < 10


def test_the_last_state_is_asked_for_in_some_cases_only() -> None:
    """It may be another path through a kernel."""

    def without(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False):
        found = scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state)
        return found if return_last_state else 2 * found

    assert wrong_stages(kernel(without)) >= {"recurrence", "crossing"}
    assert "last state" not in wrong_stages(kernel(without))


def test_a_kernel_that_writes_into_an_operand_is_wrong() -> None:
    def writes(u, delta, A, B, C, D=None):
        y = scan(u, delta, A, B, C, D)
        u += 1
        return y

    (found,) = judge(kernel(writes), [crossed_cases("selective_scan", _all_but("D"), (64,))[0]])
    assert (found.status, found.says) == ("failed", "it writes into its operand u")


def _all_but(*kept: str) -> frozenset:
    return frozenset(option for option in varied("selective_scan") if option[0] not in kept)


def test_operands_are_views_of_wider_ones() -> None:
    heard = []

    def listens(u, delta, A, B, C):
        heard.append([m.is_contiguous() for m in (u, delta, A, B, C)])
        return scan(u, delta, A, B, C)

    tested = kernel(listens)
    for case in crossed_cases("selective_scan", _all_but("views", "batch"), (64,)):
        heard.clear()
        assert run(tested, case).finding.status == "passed"
        if case.options.get("views") is True and len(case.inputs["u"]) > 1:
            assert heard == [[False, False, True, False, False]]
        elif not case.options.get("views"):
            assert heard == [[True] * 5]


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "conv"])
def test_layouts_of_each_operand_are_its_own(op: str) -> None:
    """The values stay, B and C lie differently in some case, and some operand has its channels as neighbours."""
    differ, neighbours = 0, 0
    for case in crossed_cases(op):
        if case.options.get("views") == "mixed":
            given = laid_out(op, case, case.inputs)
            assert all(torch.equal(m, case.inputs[name]) for name, m in given.items())
            differ += op != "conv" and given["B"].stride() != given["C"].stride()
            x = given["x" if op == "conv" else "C"]
            neighbours += x.stride(1) == 1 and x.shape[1] > 1 and x.shape[-1] > 1
    assert neighbours > 5 and (differ > 20 or op == "conv")


def test_what_is_written_beside_a_state_is_seen() -> None:
    def spills(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        y = step(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)
        if state._base is not None:
            state._base[:, 0] = 0
        return y

    found = {each.finding.says for each in trial(kernel(spills)) if each.finding.status == "failed"}
    assert found == {"it writes beside its state"}


def test_documents_stand_on_and_beside_the_borders_of_chunks() -> None:
    for length, chunk in ((129, 64), (33, 16), (33, 8), (1025, 256)):
        row = {"length": length, "chunk": chunk, "batch": 2, "start": "state and documents"}
        begins = {sum(lengths[:i]) % chunk for lengths in documents_of(row) for i in range(1, len(lengths))}
        assert {0, 1, chunk - 1} <= begins


@pytest.mark.parametrize("length", [129, 257, 1025])
def test_documents_end_at_every_usual_chunk_of_a_kernel_whose_chunks_are_its_own(length: int) -> None:
    borders = {chunk for chunk in (64, 128, 192, 256, 512, 1024) if chunk < length}
    ends: list[set[int]] = [set(), set()]
    for shift in SHIFTS:
        rows = documents_of({"length": length, "batch": 2, "start": "documents", "shift": shift})
        assert [row[0] for row in rows] == [1, 2]
        for found, row in zip(ends, rows, strict=True):
            found |= {*accumulate(row)}
            assert {border + 1 for border in borders if border + 1 < length} <= {*accumulate(row)}
    for found in ends:
        assert borders | {border - 1 for border in borders} <= found


def test_a_document_behind_a_border_that_is_not_seen_is_found() -> None:
    def blind(x, weight, bias=None, seq_idx=None, activation=None):
        if seq_idx is not None and x.shape[2] > 129:  # what begins at 129 goes on from 128
            seq_idx = seq_idx.clone()
            seq_idx[:, 129:] -= seq_idx[:, 129:130] - seq_idx[:, 128:129]
        return conv(x, weight, bias, seq_idx, activation=activation)

    packed = [case for case in crossed_cases("conv") if "seq_idx" in case.inputs]
    wrong = {f.position for f in judge(kernel(blind), packed) if f.status == "failed"}
    assert wrong and wrong <= {129, 130, 131}


def test_a_crossed_norm_is_called_by_the_side_on_which_its_gate_is() -> None:
    for case in crossed_cases("norm"):
        assert ("gate after" in case.name) == case.options["norm_before_gate"]
        assert ("gate before" in case.name) != case.options["norm_before_gate"]


def test_a_norm_that_has_an_epsilon_of_its_own_is_wrong() -> None:
    def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True, own=None):
        x, gate = x.double(), 1 if z is None else torch.nn.functional.silu(z.double())
        rows = (x if norm_before_gate else x * gate).unflatten(-1, (-1, group_size or x.shape[-1]))
        y = (rows * (rows.square().mean(-1, keepdim=True) + (own or eps)).rsqrt()).flatten(-2) * weight
        return (y * gate if norm_before_gate else y).to(weight.dtype)

    def wrong(own: float | None) -> set[str]:
        found = judge(kernel(partial(norm, own=own), "norm", "norm"), cases("norm"))
        return {each.case for each in found if each.status != "passed"}

    asked = {"a tiny epsilon", *(f"another epsilon{where}" for where in ("", ", gate before", ", gate after"))}
    assert wrong(None) == set() and wrong(1e-5) == asked


def test_crossed_cases_are_the_same_again() -> None:
    for op in ("conv", "norm"):
        again = crossed_cases.__wrapped__(op)
        for before, after in zip(crossed_cases(op), again, strict=True):
            assert before.name == after.name and before.options == after.options
            assert all(torch.equal(m, after.inputs[name]) for name, m in before.inputs.items())
