"""Kernels that give back something else than a tensor of floats, do little, or are none: one sentence each."""

from __future__ import annotations

import sys

import pytest
import torch

from conformance.cases import cases
from conformance.judge import judged
from conformance.kernel.named import kernel_named
from conformance.kernel.signature import kernel
from conformance.report import try_kernel


def selective(u, delta, A, B, C):
    """The recurrence alone: no skip, gate, bias or softplus."""
    state, ys = torch.zeros(*u.shape[:2], A.shape[1]), []
    columns = lambda m: m.float()[:, None] if m.dim() == 3 else m.float().repeat_interleave(u.shape[1] // m.shape[1], 1)
    for t in range(u.shape[2]):
        step = delta[..., t, None].float()
        state = torch.exp(step * A) * state + step * columns(B)[..., t] * u[..., t, None].float()
        ys.append((state * columns(C)[..., t]).sum(-1))
    return torch.stack(ys, -1).to(u.dtype)


def test_a_kernel_may_leave_out_what_all_random_cases_need():
    exact, random = try_kernel(kernel(selective))
    assert exact.good and random.good
    assert {finding.status for finding in random.findings} == {"skipped"}


DENSE = ("u", "delta", "A", "B", "C")
RESULTS = {
    "nothing": (lambda y: None, "y is of type NoneType"),
    "an empty tuple": (lambda y: (), "y is of type NoneType"),
    "a tuple of nothing and a state": (lambda y: (None, y), "y is of type NoneType"),
    "a list": (lambda y: y.tolist(), "y is of type list"),
    "an array": (lambda y: y.numpy(), "y is of type ndarray"),
    "no values": (lambda y: y.to("meta"), "without values"),
    "a nested tensor": (lambda y: torch.nested.as_nested_tensor(y), "of tensors (nested)"),
    "a sparse tensor": (lambda y: y.to_sparse(), "in the layout torch.sparse_coo"),
    "whole numbers": (lambda y: y.long(), "y is torch.int64, but the operands are torch.float32"),
    "complex numbers": (lambda y: y.to(torch.complex64), "y is torch.complex64, but"),
    "a state that is none": (lambda y: (y, 1), "last_state is of type int"),
}


@pytest.mark.quick
@pytest.mark.parametrize("what", RESULTS)
def test_a_result_of_another_kind_is_wrong_in_a_sentence(what):
    changed, says = RESULTS[what]
    case = next(
        c
        for c in cases("selective_scan")
        if "last_state" in c.expected and not c.inputs.keys() - set("uABC") - {"delta"}
    )
    finding = judged(
        kernel(lambda u, delta, A, B, C: changed(selective(u, delta, A, B, C)), "own", "selective_scan"), case
    )
    assert finding.status == "failed" and says in finding.says


@pytest.mark.quick
def test_a_state_that_is_asked_for_and_does_not_come_is_wrong():
    """A kernel without the flag is not asked."""
    case = next(c for c in cases("selective_scan") if c.stage == "last state" and {*c.inputs} == {*DENSE})
    keeps = kernel(lambda u, delta, A, B, C, return_last_state=False: selective(u, delta, A, B, C), op="selective_scan")
    assert "last_state is of type NoneType" in judged(keeps, case).says
    assert judged(kernel(selective), case).says == "it returns no last state"


@pytest.mark.quick
def test_a_state_that_comes_by_default_is_declined_where_it_is_not_asked_for():
    """Whoever says False runs that path, and it is found to be wrong."""
    heard = []

    def declined(u, delta, A, B, C, return_last_state=True):
        heard.append(return_last_state)
        y = selective(u, delta, A, B, C)
        return (y, y[:, :, -1:] * torch.zeros(A.shape[1])) if return_last_state else torch.zeros_like(y)

    plain = [c for c in cases("selective_scan") if {*c.inputs} == {*DENSE} and not c.options["delta_softplus"]]
    without, asked = ([c for c in plain if bool(c.states) is states] for states in (False, True))
    assert {judged(kernel(declined, op="selective_scan"), c).status for c in without} == {"failed"}
    assert without and {*heard} == {False}
    heard.clear()
    assert asked and [judged(kernel(declined, op="selective_scan"), c) for c in asked] and True in heard


class Silent(BaseException):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("raised", "says"), [(SystemExit(0), "SystemExit: 0"), (GeneratorExit(), "GeneratorExit"), (Silent(), "Silent")]
)
def test_a_kernel_that_raises_anything_failed_to_run(raised, says):
    def ends(u, delta, A, B, C):
        raise raised

    found = judged(kernel(ends), cases("selective_scan")[0])
    assert (found.status, found.says) == ("failed to run", says)


@pytest.mark.quick
def test_a_kernel_can_be_interrupted():
    def interrupted(u, delta, A, B, C):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(kernel(interrupted), cases("selective_scan")[0])


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("kernel = 5", "kernel", "is of type int, and a function"),
        ("kernel = max", "kernel", "whose arguments have names"),
        ("raise SystemExit(0)", "kernel", "cannot be imported: 0"),
        ("def", "kernel", "cannot be imported: invalid syntax"),
        ("1 / 0", "kernel", "cannot be imported: division by zero"),
    ],
)
def test_a_module_without_a_kernel_is_refused_in_a_sentence(text, name, says, tmp_path, monkeypatch):
    (tmp_path / "a_kernel_of_theirs.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_kernel_of_theirs", raising=False)
    with pytest.raises(ValueError, match=says):
        kernel_named(f"a_kernel_of_theirs:{name}")
