"""Ordinary numbers at the sizes of layers: what is rounded, or another function, at one size alone is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.cases import OPERATIONS, cases
from conformance.cases.factors import STEPS, layer_factors_of, wide_factors_of
from conformance.cases.layers import POSITIONS, layer_cases, layer_rows, share
from conformance.cases.ordinary import ROUNDED, ordinary_cases
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import faulty
from conformance.judge import judged
from conformance.kernel.kernel import Kernel
from conformance.kernel.signature import kernel
from conformance.loader import Case
from tests.conformance import blind_right
from tests.conformance.pages import CASES, in_one_line
from tests.conformance.test_crossing import is_asked, met
from tests.conformance.test_precision import of_eleven_bits

SCANS = ("selective_scan", "ssd")
CURVES = {  # of functions of one number, right at every other size
    "selective_scan": ("exp in half", "exp is 0 or 1", "softplus in half", "softplus is a relu", "gate in half"),
    "ssd": ("exp in half", "exp is 0 or 1", "softplus in half", "softplus is a relu", "gate in half"),
    "conv": ("silu is a relu", "taps in bfloat16"),
    "norm": ("epsilon left out", "epsilon of 1e-3", "epsilon twice", "gate in half"),
    "delta_rule": ("exp is 0 or 1",),
}


@cache
def by_size(op: str) -> dict[Any, list[Case]]:
    """The cases of float32 of each size, in order of the rows."""
    found: dict[Any, list[Case]] = {}
    loose = [case for case in layer_cases(op) if case.stage != ROUNDED]
    for row, case in zip(layer_rows(op), loose, strict=True):
        if row["dtype"] == "float32":
            found.setdefault(row["sizes"], []).append(case)
    return found


def right(op: str) -> Kernel:
    return faulty() if op == "delta_rule" else ours(op)


def shown(tested: Kernel, found: list[Case]) -> bool:
    return any(judged(tested, case).status == "failed" for case in found)


def operands(op: str) -> list[str]:
    given = {name for cases in by_size(op).values() for case in cases for name in case.inputs}
    return sorted(given - {"seq_idx"})


def rounding(op: str, operand: str) -> Kernel:
    def call(**given: Any) -> Any:
        if given.get(operand) is not None:
            given[operand] = of_eleven_bits(given[operand])
        return right(op).call(**given)

    return replace(right(op), call=call)


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_size_of_the_exact_cases_is_there(op: str) -> None:
    assert {*by_size(op)} == {*wide_factors_of(op).get("sizes", ()), *layer_factors_of(op)["sizes"]}
    assert {row["length"] for row in layer_rows(op)} == ({1, 9, 128} if op == "norm" else {*POSITIONS})
    rows = [row for row in layer_rows(op) if row["dtype"] == "float32"]
    factors = {name: [*{str(row[name]): row[name] for row in rows}.values()] for name in rows[0]}
    groups = lambda levels: op == "norm" or "groups" not in levels or _has_groups(**levels)
    assert met(rows, factors, 2, lambda levels: groups(levels) and is_asked(op, levels))


def _has_groups(groups: int, sizes: Any = None, **others: Any) -> bool:
    """Unless it is one head, which has one group."""
    return groups == 1 or not isinstance(sizes, tuple) or sizes[0] > 1


@pytest.mark.parametrize(("op", "operand"), [(op, name) for op in OPERATIONS for name in operands(op)])
def test_an_operand_of_eleven_bits_at_one_size_is_found(op: str, operand: str) -> None:
    tested = rounding(op, operand)
    assert not [size for size, found in by_size(op).items() if not shown(tested, found)]


@pytest.mark.parametrize(("op", "bug"), [(op, bug) for op, bugs in CURVES.items() for bug in bugs])
def test_another_function_at_one_size_is_found(op: str, bug: str) -> None:
    tested = faulty(bug) if op == "delta_rule" else ours(op, bug)
    assert not [size for size, found in by_size(op).items() if not shown(tested, found)]


def test_a_kernel_of_float32_alone_is_asked_in_float32() -> None:
    narrow = frozenset({("dtype", "bfloat16"), ("dtype", "float16")})
    for op in OPERATIONS:
        assert {row["dtype"] for row in layer_rows(op, narrow)} == {"float32"}
        assert {case.name for case in layer_cases(op, narrow)} == {c.name for cs in by_size(op).values() for c in cs}


@pytest.mark.parametrize("op", OPERATIONS)
def test_our_functions_are_right(op: str) -> None:
    assert {judged(right(op), case).status for case in layer_cases(op)} == {"passed"}


RIGHT = {  # other orders of adding: pairs, columns from the last on, a head at a time, one square of all positions
    "selective_scan": (blind_right.double_precision, blind_right.doubling, blind_right.column_by_column),
    "ssd": (blind_right.head_by_head, blind_right.one_square),
}


@pytest.mark.parametrize(
    "function", [each for found in RIGHT.values() for each in found], ids=lambda each: each.__name__
)
def test_no_right_kernel_is_called_wrong(function: Callable[..., Any]) -> None:
    tested = kernel(function)
    found = Counter(judged(tested, case).status for case in layer_cases(tested.op))
    assert {*found} <= {"passed", "skipped"} and found["passed"] > 80


OF_STEPS = [(kind, op) for kind in ("channel step", "head step") for op in replace(ours("step"), op=kind).operations()]


@pytest.mark.parametrize(("kind", "op"), OF_STEPS)
def test_steps_are_asked_at_these_sizes(kind: str, op: str) -> None:
    """Four positions, one after the other."""
    asked = [case for case in layer_cases(op, frozenset(), STEPS) if case.stage != ROUNDED]
    wide = [case for case in asked if case.inputs["B"].shape[-1 if op == "ssd" else -2] >= 64]
    assert len(wide) > 10
    for bug in ("products in half", "exp in half", "softplus in half", "gate in half"):
        assert shown(replace(ours("step", bug), op=kind), wide), bug


def in_float32(op: str, terms: int) -> Iterator[tuple[float, float]]:
    """How far sums of float32 are off in three orders, and how far they may be: parts of the sum of absolute values."""
    draw = torch.Generator().manual_seed(terms)
    for _ in range(200):
        m = torch.rand(terms, generator=draw) + 0.5
        right = float(m.double().sum())
        one_by_one = float(m.cumsum(0, dtype=torch.float32)[-1])
        halves = float(_halved(m))
        blocks = float(torch.stack([each.sum() for each in m.split(32)]).cumsum(0)[-1])
        for found in (one_by_one, halves, blocks):
            yield abs(found - right) / right, share(op, {"length": 0, "sizes": (1, 1, terms)})


def _halved(m: Tensor) -> Tensor:
    return m[0] if len(m) == 1 else _halved(m[: len(m) // 2]) + _halved(m[len(m) // 2 :])


@pytest.mark.parametrize("terms", [16, 64, 130, 256])
def test_a_sum_in_any_order_stays_below_half_of_what_is_allowed(terms: int) -> None:
    assert max(off / allowed for off, allowed in in_float32("ssd", terms)) < 0.5


def test_limits_that_are_rounded_to_the_dtype_of_x_are_found() -> None:
    """They are numbers of Python, which float32 keeps better than a narrow dtype."""

    def rounded(**given: Any) -> Any:
        dtype = given["x"].dtype
        given["dt_limit"] = tuple(float(torch.tensor(m).to(dtype)) for m in given.get("dt_limit", (0.0, torch.inf)))
        return FUNCTIONS["ssd"](**given)

    limited = [case for case in (*ordinary_cases("ssd"), *layer_cases("ssd")) if "dt_limit" in case.options]
    wrong = [case for case in limited if judged(replace(ours("ssd"), call=rounded), case).status == "failed"]
    assert len(wrong) > 20 and {case.stage for case in wrong} == {ROUNDED}


@pytest.mark.parametrize("op", SCANS)
def test_a_softplus_of_log_and_exp_is_right_and_the_page_says_so(op: str) -> None:
    """log(1 + exp x), as the Triton kernels of mamba_ssm have it: it errs by less than 2^-23, whatever is left of x."""
    x = torch.linspace(-30, 20, 4001)
    assert float(((1 + x.exp()).log() - torch.nn.functional.softplus(x.double())).abs()[x < 0].max()) < 2.0**-23
    name = "delta" if op == "selective_scan" else "dt"
    bias, flag = f"{name}_bias", f"{name}_softplus"

    def plain(**given: Any) -> Any:
        if given.pop(flag, False):
            own = given.pop(bias, None)
            raw = given[name].float() if own is None else given[name].float() + (own[:, None] if op != "ssd" else own)
            given[name] = torch.where(raw > 20, raw, (1 + raw.clamp(max=20).exp()).log())
        return FUNCTIONS[op](**given)

    asked = [*cases(op), *layer_cases(op), *ordinary_cases(op)[::7]]
    assert {judged(replace(ours(op), call=plain), case).status for case in asked} == {"passed"}
    said = "A softplus as log(1 + exp x), which the Triton kernels of mamba_ssm compute, passes"
    assert said in in_one_line(CASES)
