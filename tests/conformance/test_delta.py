"""The gated delta rule: right kernels pass, each bug is found at its stage, and the page says what was found."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch
from torch import tensor

from conformance import exact
from conformance.cases import cases
from conformance.cases.companion import companion_cases
from conformance.cases.delta import LONG
from conformance.faults.delta import BUGS, END, MARK, caught, faulty, seen_by_random_operands
from conformance.judge import judge
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from tests.conformance.pages import FOUND

CASES = [*cases("delta_rule"), *companion_cases("delta_rule")]


def kernels() -> list[Kernel]:
    from conformance.runtimes.huggingface import load

    return [each for each in load().kernels if each.op == "delta_rule"]


def test_two_steps_by_hand() -> None:
    # S1 = (3, 0); β = 2 at the same place: 2·5 − 3 = 7; y over the root of d_k = 4.
    one = tensor([[[[1.0, 0, 0, 0]], [[1.0, 0, 0, 0]]]])
    v, beta = tensor([[[[3.0]], [[5.0]]]]), tensor([[[1.0], [2.0]]])
    found = exact.delta_rule(exact.Exact, one, one, v, torch.zeros(1, 2, 1), beta)
    assert [2 * y for y in found["y"].reshape(-1).tolist()] == [3, 7]
    assert found["last_state"].reshape(-1).tolist() == [7, 0, 0, 0]


def test_the_decay_comes_before_the_write() -> None:
    one, v = tensor([[[[1.0]], [[1.0]]]]), tensor([[[[3.0]], [[5.0]]]])
    g = tensor([[[0.0], [-256.0]]])
    found = exact.delta_rule(exact.Exact, one, one, v, g, tensor([[[1.0], [2.0]]]))
    assert found["y"].reshape(-1).tolist() == [3, 10]


def test_no_order_of_adding_rounds() -> None:
    """A chunk of 64 adds at most 64 terms β T v, with |β| and the entries of T, the inverse, at most 2."""
    for case in (case for case in cases("delta_rule") if not case.tolerance):
        k = case.inputs["k"].double()
        k = k / LONG if case.options["use_qk_l2norm_in_kernel"] else k
        quantum = float(k[k != 0].abs().min()) ** 2
        largest = max(float(m.abs().max()) for m in (case.inputs["v"], *case.expected.values()))
        largest = max(largest, float(case.inputs.get("initial_state", torch.zeros(1)).abs().max()))
        assert 64 * 2 * 2 * largest * int((k != 0).sum(-1).max()) / quantum < 2**24, case.name


@pytest.mark.parametrize("tested", [faulty(), *kernels()], ids=lambda each: each.name)
def test_right_kernels_pass(tested: Kernel) -> None:
    found = judge(tested, CASES)
    assert {each.status for each in found if each.stage != "packed"} == {"passed"}
    assert all(each.says == "it takes no seq_idx" for each in found if each.status == "skipped")


@pytest.mark.parametrize("given", [torch.float32, torch.float64])
def test_a_kernel_in_float64_is_right_and_one_that_is_off_is_not(given: torch.dtype) -> None:
    """Where terms of a norm cancel, float64 leaves some 1e-10; a part in 10^7 is wrong in any dtype."""
    wide = lambda *m: (each.double() for each in m)
    normed = lambda m: m * torch.rsqrt(m.square().sum(-1, keepdim=True) + 1e-6)

    def rule(q, k, v, g, beta, use_qk_l2norm_in_kernel=False, off=0.0):
        Q, K, V, G, b = wide(q, k, v, g, beta)
        Q, K = (normed(Q), normed(K)) if use_qk_l2norm_in_kernel else (Q, K)
        Q, K = (m.repeat_interleave(v.shape[2] // q.shape[2], 2) for m in (Q, K))
        state, ys = 0 * K[:, 0, :, :, None] * V[:, 0, :, None], []
        for t in range(v.shape[1]):
            state = state * G[:, t, :, None, None].exp()
            write = b[:, t, :, None] * (V[:, t] - (state * K[:, t, ..., None]).sum(-2))
            state = state + K[:, t, ..., None] * write[..., None, :]
            ys.append((state * Q[:, t, ..., None]).sum(-2) / q.shape[-1] ** 0.5 + off)
        return torch.stack(ys, 1).to(max(given, v.dtype, key=lambda each: each.itemsize) if off == 0 else v.dtype)

    asked = [case for case in cases("delta_rule") if case.stage in ("write", "norm")]
    found = judge(kernel(rule, op="delta_rule"), asked)
    assert {each.status for each in found} == {"passed"}, [each.says for each in found if each.says]
    found = judge(kernel(partial(rule, off=1e-7), "off", "delta_rule"), asked)
    assert {each.status for each in found} == {"failed"}


def test_there_are_two_kernels_of_transformers() -> None:
    assert [each.name for each in kernels()] == ["torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"]


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_is_caught_at_its_stage(bug: str) -> None:
    assert caught(bug) == BUGS[bug]


def test_a_bug_that_is_no_bug_is_not_caught() -> None:
    assert caught("no such bug") == ""


def rows() -> list[tuple[str, ...]]:
    table = FOUND.partition(MARK)[2].partition(END)[0]
    return re.findall(r"^\| (.*?) \| (.*?) \| (yes|–) / (yes|–) \|$", table, re.MULTILINE)


def test_the_page_has_every_bug_at_its_stage() -> None:
    assert [row[:2] for row in rows()] == list(BUGS.items()), (
        "run `python -m conformance.faults.delta docs/conformance_found.md`"
    )


@pytest.mark.parametrize("bug", ["β clamped at 1.99", "a thousandth lost every 64", "β at most 1"])
def test_its_marks_are_found_again(bug: str) -> None:
    marks = next(row[2:] for row in rows() if row[0] == bug)
    assert seen_by_random_operands(bug) == tuple(mark == "yes" for mark in marks)


def test_an_operation_is_read_from_its_arguments() -> None:
    def mine(q, k, v, g, beta):
        return v

    assert kernel(mine).op == "delta_rule"
