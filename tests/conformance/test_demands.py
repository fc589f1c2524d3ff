"""Kernels that demand a dtype or an option: what else they take is asked beside that, and is not taken for refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance.cases import cases
from conformance.cases.factors import STEPS
from conformance.cases.options import firsts
from conformance.demands import demand_of
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule
from conformance.judge import chunks_refused, judged, left_out, run, trial, untold
from conformance.kernel.arguments import names_of
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.keywords import looked_into

Given = dict[str, Any]
Demands = Callable[[Mapping[str, Any]], bool]


def of(op: str, takes: Demands, changed: Callable[[Given], Given] = lambda given: given) -> Kernel:
    """A kernel that takes some calls only, and makes others of what it is given."""

    def call(**given: Any) -> Any:
        if not takes(given):
            raise NotImplementedError("not this")
        return ours(op).call(**changed(given))

    return replace(ours(op), call=call)


def loses(names: str, where: Demands) -> Callable[[Given], Given]:
    return lambda given: {name: m for name, m in given.items() if name not in names.split() or not where(given)}


def is_wrong(tested: Kernel) -> bool:
    """Whether some case is, the first that is found."""
    return any(each.finding.status == "failed" for each in trial(tested))


def has(name: str) -> Demands:
    return lambda given: given.get(name) is not None


def beyond(length: int, name: str, axis: int) -> Demands:
    return lambda given: given[name].shape[axis] > length


WRONG = {
    "ssd that needs a bias, documents": of("ssd", has("dt_bias"), loses("seq_idx", beyond(150, "x", 1))),
    "ssd that needs a bias, D": of("ssd", has("dt_bias"), loses("D", beyond(150, "x", 1))),
    "scan that needs D, bias in half": of(
        "selective_scan",
        has("D"),
        loses("delta_bias", lambda m: m["u"].shape[2] > 100 and m["u"].dtype == torch.half),
    ),
    "conv that needs an activation, documents": of("conv", has("activation"), loses("seq_idx", beyond(100, "x", 2))),
    "conv that needs an activation, windows": of(
        "conv", has("activation"), loses("initial_states", beyond(100, "x", 2))
    ),
    "conv of silu alone, bias with documents": of(
        "conv",
        lambda m: m.get("activation") == "silu",
        loses("bias", lambda m: m["x"].shape[2] > 64 and m.get("seq_idx") is not None),
    ),
    "conv of bfloat16 with a bias, documents": of(
        "conv",
        lambda m: m["x"].dtype == torch.bfloat16 and m.get("bias") is not None,
        loses("seq_idx", beyond(100, "x", 2)),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_meet_at_every_length_beside_what_a_kernel_demands(name: str) -> None:
    """An attacker's kernels were right in all cases: these options were asked at one short length alone."""
    assert is_wrong(WRONG[name])


ROWS: dict[str, tuple[str, Demands, set[tuple[str, Any]]]] = {
    "conv, bias": ("conv", has("bias"), {("bias", False)}),
    "conv, activation": ("conv", has("activation"), {("activation", None)}),
    "conv, silu": ("conv", lambda m: m.get("activation") == "silu", {("activation", None), ("activation", "swish")}),
    "conv, 3 taps": ("conv", lambda m: m["weight"].shape[1] == 3, {("taps", 4), ("taps", 2)}),
    "conv, half": ("conv", lambda m: m["x"].dtype == torch.half, {("dtype", "float32"), ("dtype", "bfloat16")}),
    "conv, several rows": ("conv", lambda m: len(m["x"]) > 1, {("batch", 1)}),
    "norm, a gate": ("norm", has("z"), {("z", False)}),
    "scan, D": ("selective_scan", has("D"), {("D", False)}),
    "scan, a gate without softplus": (
        "selective_scan",
        lambda m: m.get("z") is not None and not m.get("delta_softplus"),
        {("z", False), ("softplus", True)},
    ),
    "ssd, softplus": ("ssd", lambda m: m.get("dt_softplus"), {("softplus", False), ("steps below 0", True)}),
}


@pytest.mark.parametrize("name", ROWS)
def test_no_more_is_left_out_than_a_kernel_refuses(name: str) -> None:
    op, takes, refused = ROWS[name]
    tested = of(op, takes)
    found = [run(tested, case) for case in cases(op)]
    assert left_out(tested, op, found) - untold(tested) == refused


@pytest.mark.parametrize("name", ["D", "dt_bias", "z"])
def test_no_more_is_left_out_of_a_step(name: str) -> None:
    """Whose cases have few positions: a step below 0 may stand in none of these."""
    option = (name.removeprefix("dt_"), False)
    tested = of("step", has(name))
    found = [run(tested, case) for case in cases("selective_scan")]
    left = left_out(tested, "selective_scan", found, STEPS) - untold(tested)
    assert {each for each in left if each[0] not in ("start", "numbers")} == {option}
    assert ("start", "state") not in left


@pytest.mark.parametrize("op", ["selective_scan", "conv", "norm"])
def test_of_a_kernel_that_takes_everything_nothing_is_asked_for_this(op: str) -> None:
    found = [run(ours(op), case) for case in cases(op)]
    calls: list[Given] = []
    assert left_out(of(op, lambda m: calls.append({**m}) or True), op, found) == untold(ours(op))
    assert not calls


def test_what_is_demanded_is_no_more_than_is_needed() -> None:
    tested = of("selective_scan", lambda m: m["u"].dtype == torch.bfloat16 and m.get("z") is not None)
    runs = lambda case: judged(tested, case).status == "passed"
    found = [run(tested, case) for case in cases("selective_scan")]
    for seen in ([], found):
        demand = demand_of(tested, "selective_scan", seen, runs)
        assert demand is not None
        asked = {*demand.levels.items()} - {*firsts("selective_scan"), ("last state", False)}
        assert asked == {("dtype", "bfloat16"), ("z", True)}
    nowhere = of("conv", lambda _: False)
    assert demand_of(nowhere, "conv", [], lambda case: judged(nowhere, case).status == "passed") is None


CHUNKS: dict[str, tuple[str, Demands]] = {
    "bfloat16": ("ssd", lambda m: m["x"].dtype == torch.bfloat16),
    "D": ("ssd", has("D")),
    "an initial state": ("ssd", has("initial_states")),
    "bfloat16 and D": ("ssd", lambda m: m["x"].dtype == torch.bfloat16 and m.get("D") is not None),
    "float16": ("delta_rule", lambda m: m["v"].dtype == torch.float16),
}


def _delta(**given: Any) -> Any:
    return delta_rule(**{name: m for name, m in given.items() if name not in ("chunk_size", "output_final_state")})


@pytest.mark.parametrize("demand", CHUNKS)
@pytest.mark.parametrize("refuses", [None, 128])
def test_no_size_of_a_chunk_counts_as_refused_for_what_a_kernel_demands(demand: str, refuses: int | None) -> None:
    """An attacker's kernel of bfloat16 alone was asked for two sizes: it doubled its results at the others."""
    op, takes = CHUNKS[demand]

    def call(**given: Any) -> Any:
        if not takes(given) or given["chunk_size"] == refuses:
            raise NotImplementedError(demand)
        return _delta(**given) if op == "delta_rule" else FUNCTIONS["ssd"](**given)

    accepts = (names_of(op) | {"chunk_size"}) - {"cu_seqlens", "return_varlen_states", "seq_idx"}
    tested = Kernel("demands", op, call, accepts)
    found = [run(tested, case) for case in cases(op)]
    assert chunks_refused(tested, op, found) == ({("chunk", refuses)} if refuses else set())


def test_what_is_wrong_in_chunks_that_no_basic_case_of_a_dtype_has_is_found() -> None:
    def call(x: Any, chunk_size: int, **given: Any) -> Any:
        if x.dtype != torch.bfloat16:
            raise NotImplementedError("bfloat16")
        y, state = FUNCTIONS["ssd"](x=x, chunk_size=chunk_size, **given)
        return (2 * y if chunk_size == 128 else y), state

    assert is_wrong(replace(ours("ssd"), call=call))


BEHIND: dict[str, Callable[..., bool]] = {
    "bfloat16": lambda x, kw: x.dtype == torch.bfloat16,
    "bfloat16, 64 channels": lambda x, kw: x.dtype == torch.bfloat16 and x.shape[1] % 64 == 0,
    "a bias in half": lambda x, kw: x.dtype == torch.half and kw.get("bias") is not None,
    "a bias, 128 channels": lambda x, kw: x.shape[1] == 128 and kw.get("bias") is not None,
}


@pytest.mark.parametrize("demand", BEHIND)
def test_what_is_behind_keywords_is_asked_beside_what_a_kernel_demands(demand: str) -> None:
    """An attacker's convolution of bfloat16 alone dropped its bias, and was asked for none."""

    def inner(x, weight, activation=None, bias=None, seq_idx=None):
        return FUNCTIONS["conv"](x, weight, None, seq_idx, None, activation)[0]

    def conv(x, weight, activation=None, **kw):
        if not BEHIND[demand](x, kw):
            raise NotImplementedError(demand)
        return inner(x, weight, activation, **kw)

    tested = kernel(conv)
    found = looked_into(tested)
    assert found.keywords == "none" and found.accepts == tested.accepts | {"bias", "seq_idx"}
    assert is_wrong(tested)


GATED = {
    "256 channels": lambda x: x.shape[-1] == 256,
    "bfloat16, 256 channels": lambda x: x.shape[-1] == 256 and x.dtype == torch.bfloat16,
    "float16": lambda x: x.dtype == torch.half,
}


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("takes", GATED)
def test_a_norm_that_demands_its_gate_is_run_whatever_its_side(takes: str, behind: bool) -> None:
    """One of few sizes that has it behind the norm was asked for one before it, and run on nothing."""

    def norm(x, weight, z, eps=1e-5):
        if z is None or not GATED[takes](x):
            raise NotImplementedError(takes)
        return FUNCTIONS["norm"](x, weight, z, eps, None, behind)

    found = [each.finding.status for each in trial(kernel(norm))]
    assert {*found} == {"passed", "skipped"} and found.count("passed") > 10
