"""Sentences of the report and of the page that an attacker's kernels had shown to be false."""

from __future__ import annotations

import decimal
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import exact
from conformance.cases import cases
from conformance.cases.companion import companion_cases
from conformance.cases.crossed import crossed_cases
from conformance.entries import described
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.faults.small import conv, norm
from conformance.findings import Finding
from conformance.judge import _unknown_borders, chunks_refused, judge, judged, run, trial, why
from conformance.kernel.arguments import SIGNATURES
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.keywords import looked_into
from conformance.loader import Case
from conformance.report import Tested, try_kernel
from tests.fresh import fresh

REPORT = '<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="conformance" />\n'
NORM = """import os
from conformance.faults.small import norm as right
def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
    {how}
    return right(x, weight, z, eps, group_size, norm_before_gate)
"""


def command(place: Path, how: str, *arguments: str) -> Any:
    (place / "mine.py").write_text(NORM.format(how=how), "utf-8")
    return fresh("-m", "constructions", "conformance", "--kernel", "mine.py:norm", *arguments, cwd=place)


def coarse(x: Any, weight: Any, eps: Any) -> Tensor:
    """In one group, with a root of 20 bits, which is right where it is a power of two."""
    m = x.float()
    fraction, exponent = torch.frexp(torch.rsqrt(m.square().mean(-1, keepdim=True) + eps))
    return (m * torch.ldexp(torch.trunc(fraction * 2**20) / 2**20, exponent) * weight).to(x.dtype)


def test_a_mistake_that_changes_nothing_explains_nothing() -> None:
    found = list(trial(kernel(coarse)))
    assert "failed" in {each.finding.status for each in found} and why(found).likely == ""


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_rows_of_which_there_is_one_are_not_mixed(op: str) -> None:
    of_one = [case for case in (*cases(op), *companion_cases(op)) if case.tolerance and _rows(case) == 1]
    assert len(of_one) > 3
    off = Kernel("off", op, lambda **given: _scaled(FUNCTIONS[op](**given)), frozenset(_signature(op)))
    found = judge(off, of_one)
    assert "failed" in {each.status for each in found} and {each.cause for each in found} == {""}


def _rows(case: Case) -> int:
    return len(next(iter(case.inputs.values())))


def _signature(op: str) -> list[str]:
    return [each.strip() for each in SIGNATURES[op].split(",")]


def _scaled(found: Any) -> Any:
    y, *rest = found if isinstance(found, tuple) else (found,)
    return (y * (1 + 2.0**-18), *rest)


def test_precision_that_a_kernel_sets_is_not_that_of_results() -> None:
    """Of all functions: a curve of silu was computed in 6 digits after such a kernel was imported."""
    x, one = torch.linspace(-9, 3, 24).reshape(1, 2, 12), torch.ones(2, 1)
    q, g = x.reshape(1, 3, 2, 4), -torch.rand(1, 3, 2)
    computed = lambda: [
        exact.conv(exact.Near, x, one, activation="silu"),
        exact.norm(exact.Near, x, torch.ones(12), x),
        exact.selective_scan(exact.Near, x, x, -one, x[:, :1], x[:, :1], None, x, None, True),
        exact.delta_rule(exact.Near, q, q, q, g, -g, None, True),
    ]
    right = computed()
    with decimal.localcontext(decimal.Context(prec=6)):
        again = computed()
    for one_of, other in zip(right, again, strict=True):
        assert all((one_of[name] == other[name]).all() for name in one_of)


def test_entries_that_are_infinite_are_called_so() -> None:
    y = torch.tensor([[[4.0, 2.0]]])
    case = Case("norm", "norm", "x", "", {"x": y}, {}, {"y": y.double()})
    for found, said in ((float("inf"), "they are inf"), (-float("inf"), "they are -inf")):
        result = torch.full_like(y, found)
        assert described(case, {"y": case.wrong("y", result)}, {"y": result}) == f"y: all over; {said}"


def test_messages_that_differ_in_numbers_are_two() -> None:
    """But not in addresses; what says the same with another number stands behind what says something else."""
    says = ["CUDA error 700", "CUDA error 2", "CUDA error 700", "at 0x7f01", "at 0x7f02"]
    tested = Tested("k", "kernel", [Finding("step", str(i), "failed to run", each) for i, each in enumerate(says)])
    assert [(each, len(where)) for each, where in tested.failed_to_run()] == [
        ("CUDA error 700", 2), ("at 0x7f01", 2), ("CUDA error 2", 1)
    ]  # fmt: skip


def test_the_first_case_that_ran_may_stand_behind_one_that_did_not() -> None:
    def late(x, weight, bias=None, activation=None):
        if x.shape[2] == next(iter(cases("conv"))).inputs["x"].shape[2]:
            raise NotImplementedError("not as long as the first")
        y = conv(x, weight, bias, activation=activation)[0]
        y = y + 1 if bias is not None and activation and len(x) > 1 else y
        return y + 1 if bias is not None and x.shape[2] > 256 else y

    found = list(trial(kernel(late)))
    assert found[0].finding.status == "skipped" and why(found).first


@pytest.mark.parametrize(
    ("cut", "option", "status"), [(-16, "softplus", "passed"), (-20, "silu", "passed"), (-16, "silu", "failed")]
)
def test_what_a_cut_off_curve_is_found_at(cut: int, option: str, status: str) -> None:
    """As the page says."""

    def tail(x, weight, bias=None, activation=None):
        y = conv(x.float(), weight, bias)[0]
        y = y if activation is None else torch.where(y < cut, 0.0, torch.nn.functional.silu(y))
        return y.to(x.dtype)

    def step(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        dt = dt.float() if dt_bias is None else dt.float() + dt_bias
        dt = torch.where(dt < cut, 0.0, torch.nn.functional.softplus(dt)) if dt_softplus else dt
        return FUNCTIONS["step"](state, x, dt, A, B, C, D, z, None, False)

    tested = kernel(step if option == "softplus" else tail)
    asked = [case for op in tested.operations() for case in cases(op) if case.name.startswith("curve of")]
    found = {judged(tested, case).status for case in asked} - {"skipped"}
    assert status in found and found <= {"passed", status}


@pytest.mark.parametrize("name", ["mine.py", "other.py", "page.xml"])
def test_no_file_of_others_is_replaced_by_a_report(name: str, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    (tmp_path / "page.xml").write_text("<?xml version='1.0'?><html></html>")
    before = (tmp_path / name).read_bytes() if name != "mine.py" else NORM.format(how="pass").encode()
    done = command(tmp_path, "pass", "--junit", name)
    assert done.returncode == 2 and "no JUnit report" in done.stderr, done.stderr
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("device", ["nope", "cpu"])
def test_whatever_comes_the_report_of_an_earlier_run_is_an_error(device: str, tmp_path: Path) -> None:
    (tmp_path / "found.xml").write_text(REPORT)
    done = command(tmp_path, "os._exit(0)", "--junit", "found.xml", "--device", device)
    assert done.returncode == (1 if device == "cpu" else 2)
    says = "the kernel has ended this process with os._exit(0)" if device == "cpu" else "--device 'nope' cannot be used"
    assert reasons(tmp_path / "found.xml")[0].startswith(says)


def reasons(report: Path) -> list[str]:
    """The errors of a JUnit report that has nothing else."""
    (suite,) = ET.parse(report).getroot()
    assert {suite.get(name) for name in ("tests", "errors")} == {"1"} and suite.get("failures") == "0"
    return [error.get("message", "") for case in suite for error in case if error.tag == "error"]


ODD = "type('Odd', (Exception,), {'__str__': lambda self: exit(0)})()"


@pytest.mark.parametrize("what", ["KeyboardInterrupt", "SystemExit(0)", ODD])
def test_whatever_a_kernel_raises_it_failed_to_run(what: str, tmp_path: Path) -> None:
    done = command(tmp_path, f"raise {what}")
    assert done.returncode == 1 and "failed to run; no other was run" in done.stdout, done.stderr


def test_the_signal_ends_the_command(tmp_path: Path) -> None:
    done = command(tmp_path, "import signal; os.kill(os.getpid(), signal.SIGINT)", "--junit", "found.xml")
    assert done.returncode == 130 and "failed to run" not in done.stdout
    assert reasons(tmp_path / "found.xml") == ["KeyboardInterrupt"]


@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
def test_a_kernel_that_closes_other_descriptors_closes_no_report(as_json: bool, tmp_path: Path) -> None:
    done = command(tmp_path, "os.closerange(3, 64)", *["--json"] * as_json)
    assert done.returncode == 0 and ('"good": true' if as_json else "right: all") in done.stdout, done.stderr


def inner(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
    return norm(x, weight, z, eps, group_size, norm_before_gate)


def forwards(x, weight, eps, **kw):
    return inner(x, weight, eps=eps, **kw)


def forwards_half(x, weight, z=None, eps=1e-5, **kw):
    return inner(x, weight, z, eps, **kw)


def takes_all(x, weight, z=None, eps=1e-5, **kw):
    return inner(x, weight, z, eps, norm_before_gate=kw.get("norm_before_gate", True))


@pytest.mark.parametrize("function", [forwards, forwards_half])
def test_what_a_kernel_hands_on_is_asked_of_it(function: Any) -> None:
    exact_cases, random = try_kernel(kernel(function))
    statuses = {each.status for each in (*exact_cases.findings, *random.findings)}
    assert statuses == {"passed"} and {*exact_cases.never} == {"group_size left out", "norm_before_gate left out"}


def test_of_a_kernel_that_takes_any_name_nothing_is_said_that_is_not_known() -> None:
    """And it is right, though what it has by default is another side of the gate."""
    exact_cases, random = try_kernel(kernel(takes_all))
    assert {each.status for each in (*exact_cases.findings, *random.findings)} == {"passed", "skipped"}
    said = {says for says, _ in exact_cases.skipped()}
    assert said and all("is not looked into" in says and "it takes no" not in says for says in said)


def test_what_stands_behind_a_wrapper_and_is_not_there_is_not_asked() -> None:
    found = looked_into(kernel(lambda x, weight, eps, **kw: norm(x, weight, None, eps, **kw), "k", "norm"))
    assert "group_size" in found.accepts and "z" not in found.accepts and found.keywords == "none"


def never(function: Any, cases_of: list[Case], op: str) -> tuple[str, ...]:
    from conformance.asked import never_asked

    tested = kernel(function, "k", op)
    ran = [case for case in cases_of if judged(tested, case).status in ("passed", "failed")]
    return never_asked(tested, cases_of, ran)


def refusing(refused: Any) -> Any:
    def call(x, weight, bias=None, seq_idx=None, initial_states=None, return_final_states=False, activation=None):
        if refused(x, weight, activation):
            raise NotImplementedError("not this")
        found = conv(x, weight, bias, seq_idx, initial_states, activation)
        return found if return_final_states else found[0]

    return call


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (lambda x, weight, activation: x.dtype == torch.float32, "float32"),
        (lambda x, weight, activation: weight.shape[1] == 4, "4 taps"),
        (lambda x, weight, activation: activation is None, "no activation"),
        (lambda x, weight, activation: len(x) == 1, "one row"),
    ],
)
def test_what_most_cases_have_may_be_in_none_that_ran(refused: Any, said: str) -> None:
    asked = [*cases("conv"), *crossed_cases("conv")]
    assert never(refusing(refused), asked, "conv") == (said,)
    assert never(refusing(lambda *_: False), asked, "conv") == ()


def test_the_side_of_a_gate_counts_where_there_is_a_gate() -> None:
    def after(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
        if z is not None and not norm_before_gate:
            raise NotImplementedError("after the norm alone")
        return inner(x, weight, z, eps, group_size, norm_before_gate)

    assert never(after, [*cases("norm"), *crossed_cases("norm")], "norm") == ("the gate before the norm",)


@pytest.mark.parametrize("refused", ["cu_seqlens", "return_varlen_states"])
def test_offsets_and_their_states_count_beside_numbers_of_documents(refused: str) -> None:
    """Of several rows the numbers alone are given, and the word for both was documents."""

    def ssd(
        x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None, cu_seqlens=None,
        dt_softplus=False, dt_limit=(0.0, float("inf")), return_final_states=False, return_varlen_states=False,
    ):  # fmt: skip
        if cu_seqlens is not None if refused == "cu_seqlens" else return_varlen_states:
            raise NotImplementedError("not yet")
        found = FUNCTIONS["ssd"](
            x, dt, A, B, C, chunk_size, D, z, dt_bias, dt_softplus, dt_limit, initial_states, seq_idx
        )
        return found[:2] if return_final_states else found[0]

    rows = [case for case in crossed_cases("ssd") if "seq_idx" in case.inputs and case.inputs["x"].shape[1] < 70]
    assert refused in never(ssd, rows, "ssd") and "documents" not in never(ssd, rows, "ssd")


def test_options_are_crossed_at_the_one_size_of_a_chunk_that_a_kernel_takes() -> None:
    def of_any(q, k, v, g, beta, chunk_size=64, initial_state=None, output_final_state=False):
        found = delta_rule(q, k, v, g, beta, None, initial_state)
        return found if output_final_state else found[0]

    def of_64(q, k, v, g, beta, chunk_size=64, initial_state=None, output_final_state=False):
        if chunk_size != 64:
            raise NotImplementedError("chunks of 64")
        return of_any(q, k, v, g, beta, chunk_size, initial_state, output_final_state)

    tested = kernel(of_64)
    found = [run(tested, case) for case in cases("delta_rule")]
    refused = chunks_refused(tested, "delta_rule", found)
    assert refused == {("chunk", size) for size in (16, 128, 256, 32, 8)}
    again = [case for case in crossed_cases("delta_rule", refused) if case.stage == "crossing"]
    assert {case.options["chunk_size"] for case in again} == {64} and len(again) > 100
    assert not chunks_refused(kernel(of_any), "delta_rule", found)


def test_chunks_begin_anew_with_each_piece() -> None:
    """And with each document of a kernel that is told by offsets where they begin: then no border is named."""
    for op in ("ssd", "delta_rule"):
        of_op = [case for case in crossed_cases(op) if case.options.get("cuts")]
        assert any("chunk" in case.borders for case in of_op)
        for case in of_op:
            starts = [0, *case.options["cuts"]]
            for place in case.borders.get("chunk", []):
                begun = max(start for start in starts if start < place)
                assert (place - begun) % case.options["chunk_size"] == 0


def test_no_chunk_is_named_where_a_document_may_begin_one() -> None:
    case = next(case for case in crossed_cases("ssd") if "seq_idx" in case.inputs and len(case.inputs["x"]) == 1)
    assert _unknown_borders(ours("ssd"), case) == (frozenset({"chunk"} if "cu_seqlens" in ours("ssd").accepts else ()))
    with_offsets = Kernel("k", "ssd", ours("ssd").call, ours("ssd").accepts | {"cu_seqlens"})
    assert _unknown_borders(with_offsets, case) == {"chunk"}


def test_a_later_call_that_writes_into_operands_of_an_earlier_one_is_wrong() -> None:
    kept: list[Tensor] = []

    def late(x, weight, bias=None, activation=None):
        y = conv(x, weight, bias, activation=activation)[0]
        for m in kept:
            m.fill_(7)
        kept[:] = [x]
        return y

    tested = kernel(late)
    first, second = list(cases("conv"))[:2]
    assert judged(tested, first).status == "passed"
    assert judged(tested, second).says == "it writes into an operand of the call before, x"
