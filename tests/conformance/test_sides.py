"""Norms that take no `norm_before_gate`: the side of the gate is read off cases that they take, never supposed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.small import norm
from conformance.judge import sided, trial
from conformance.kernel.kernel import Kernel
from conformance.report import try_kernel

Refuses = Callable[[Tensor, "Tensor | None", int], str]
ACCEPTS = frozenset({"x", "weight", "z", "eps", "group_size"})

REFUSES: dict[str, Refuses] = {
    "a gate, 64s": lambda x, z, group: "a gate" if z is None else "64s" if x.shape[-1] % 64 else "",
    "bfloat16, 64s": lambda x, z, group: "bfloat16" if x.dtype != torch.bfloat16 else "64s" if x.shape[-1] % 64 else "",
    "several rows, 64s": lambda x, z, group: "rows" if len(x) == 1 else "64s" if x.shape[-1] % 64 else "",
    "groups of 64s": lambda x, z, group: "groups" if group == x.shape[-1] or group % 64 else "",
    "views, 1,024": lambda x, z, group: "views" if x.is_contiguous() else "1,024" if x.shape[-1] != 1024 else "",
}


def restricted(refuses: Refuses, behind: bool) -> Kernel:
    def call(x, weight, z=None, eps=1e-5, group_size=None):
        if why := refuses(x, z, group_size or x.shape[-1]):
            raise NotImplementedError(why)
        return norm(x, weight, z, eps, group_size, behind)

    return Kernel("restricted", "norm", call, ACCEPTS)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("refuses", REFUSES)
def test_the_side_of_a_restricted_norm_is_the_one_that_it_computes(refuses: str, behind: bool) -> None:
    assert sided(restricted(REFUSES[refuses], behind)).gate_after is behind


@pytest.mark.parametrize("refuses", REFUSES)
def test_a_right_restricted_norm_is_right(refuses: str) -> None:
    exact, random = try_kernel(restricted(REFUSES[refuses], behind=True))
    found = [*exact.findings, *random.findings]
    assert {each.status for each in found} == {"passed", "skipped"} and not exact.why.likely


def test_without_a_case_that_tells_the_side_no_gate_is_judged() -> None:
    exact, _ = try_kernel(restricted(lambda x, z, group: "no gate" if z is not None else "", behind=True))
    assert {each.status for each in exact.findings} == {"passed", "skipped"} and "z" in exact.never
    assert any("on which side its gate is" in why for why, _ in exact.skipped())


CONV = {
    "a window, lengths in 64s": lambda m: m["initial_states"] is None or m["x"].shape[2] % 64,
    "3 taps, 64 channels": lambda m: m["weight"].shape[1] != 3 or m["x"].shape[1] != 64,
    "several rows, 64 channels, lengths in 64s": lambda m: len(m["x"]) == 1 or m["x"].shape[1] != 64,
}


@pytest.mark.parametrize("refuses", CONV)
def test_what_a_convolution_demands_is_found_by_trying(refuses: str) -> None:
    def call(x, weight, bias=None, initial_states=None, activation=None):
        given = {"x": x, "weight": weight, "initial_states": initial_states}
        if CONV[refuses](given) or x.shape[2] % 16:
            raise NotImplementedError(refuses)
        return FUNCTIONS["conv"](**given, bias=bias, activation=activation)[0]

    accepts = frozenset({"x", "weight", "bias", "initial_states", "activation"})
    found = {each.finding.status for each in trial(Kernel("demands", "conv", call, accepts))}
    assert found == {"passed", "skipped"}
