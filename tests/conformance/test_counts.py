"""What the page says of the cases is read off them as they are drawn: tables, what meets, and what is in none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import counts
from conformance.cases import OPERATIONS, cases
from conformance.cases.borders import border_cases
from conformance.cases.chunk_ends import COUNTS, ENDS, chunk_end_cases
from conformance.cases.companion import companion_cases
from conformance.cases.crossings import CROSSINGS
from conformance.cases.curves import EXPONENTS, GATES, HALF_LIFE_LENGTH
from conformance.cases.factors import CHUNK_SIZES, Factors, factors_of, layer_factors_of
from conformance.cases.kinds import all_of, of_kind
from conformance.cases.layers import layer_ordinary_factors_of, layer_rows, share
from conformance.cases.meeting import meets
from conformance.cases.options import option_of, options_of
from conformance.cases.ordinary import OF_A_WRITE, ROUNDED, ROUNDINGS, ordinary_rows, share_of
from conformance.cases.told import WAYS, asked_in_name, told_cases, told_factors_of
from conformance.counts import positions
from conformance.faults.catalogue import kernel as ours
from conformance.features import _bits
from conformance.judge import judged, untold
from conformance.kernel.arguments import names_of
from conformance.kernel.kernel import Kernel
from conformance.kernel.layouts import laid_out
from conformance.loader import Case
from conformance.stages import STAGES
from conformance.steps import STEPS, steps_of
from tests.conformance.pages import CASES, in_one_line

CHUNKED = ("ssd", "delta_rule")
BELOW, ABOVE = -104, 20.1
"""exp is 0 below the first, and softplus and silu are 0; from the second on these are the number itself."""
_SPREADS = {1: 1, 2: 2, 4: 2, 3: 3, 8: 3}
"""What is crossed as 2 or 3 heads of v for each of k."""
Levels = dict[str, Any]


@pytest.mark.parametrize("name", counts.TABLES)
def test_a_table_is_that_of_the_cases(name: str) -> None:
    mark, end = counts.marks(name)
    told = CASES.partition(mark)[2].partition(end)[0].splitlines()
    assert told == [*counts.TABLES[name]()], "run `python -m conformance.counts`"


def test_kinds_are_all_that_a_kernel_is_asked() -> None:
    for op in OPERATIONS:
        asked = (*cases(op), *(case for crossing in CROSSINGS for case in crossing(op)), *companion_cases(op))
        assert sorted(case.name for case in all_of(op)) == sorted(case.name for case in asked)


@pytest.mark.parametrize("op", ["selective_scan", "ssd", "delta_rule"])
def test_one_told_of_documents_in_every_way_is_asked_all_of_them_and_one_told_by_numbers_fewer(op: str) -> None:
    every = frozenset(names_of(op)) | {"seq_idx", "cu_seqlens", "return_varlen_states"}
    assert not untold(Kernel("every", op, len, every))
    numbers = untold(Kernel("numbers", op, len, every - {"cu_seqlens", "return_varlen_states"}))
    assert 0 < len(told_cases(op, numbers)) < len(told_cases(op)) == len(of_kind("told", op))


def exact(op: str) -> Iterator[Case]:
    return (case for case in all_of(op) if not case.tolerance)


@pytest.mark.parametrize("op", OPERATIONS)
def test_functions_of_exact_cases_are_taken_where_every_float32_agrees(op: str) -> None:
    for case in exact(op):
        for exponent in exponents(case):
            assert bool(((exponent == 0) | (exponent <= BELOW)).all()), case.name
        for argument in arguments(case):
            assert bool(((argument == 0) | (argument <= BELOW) | (argument >= ABOVE)).all()), case.name


def exponents(case: Case) -> Iterator[Tensor]:
    if "g" in case.inputs:
        yield case.inputs["g"].double()
    if case.op == "selective_scan":
        steps, rates = steps_of(case).double(), case.inputs["A"].double()
        yield from (steps * rates[:, column, None] for column in range(rates.shape[1]))
    elif case.op == "ssd":
        yield steps_of(case).double() * case.inputs["A"].double()


def arguments(case: Case) -> Iterator[Tensor]:
    """Of softplus, and of the silu of a gate or a convolution."""
    if case.options.get("activation"):
        yield counts.sums(case)
    if case.op in STEPS and case.options.get(STEPS[case.op][2]):
        flags = {STEPS[case.op][2]: False, "dt_limit": None}
        yield steps_of(replace(case, options={**case.options, **flags})).double()
    if "z" in case.inputs:
        yield case.inputs["z"].double()


@pytest.mark.parametrize("op", OPERATIONS)
def test_before_the_stage_of_precision_no_operand_and_no_state_has_more_than_eight_bits(op: str) -> None:
    order = list(STAGES)
    before = [case for case in cases(op) if order.index(case.stage) < order.index("precision") and not case.tolerance]
    for case in before:
        states = [m for name, m in case.expected.items() if name != "y"]
        operands = [m for m in case.inputs.values() if m.is_floating_point()]
        assert before and max(map(_bits, (*operands, *states))) <= 8, case.name


def cut(op: str, name: str, at: float) -> Callable[..., Any]:
    """Ours, with a function of this operand that is 0 from `at` down: softplus and silu of −200 are."""

    def call(**given: Any) -> Any:
        bias = given.get({"delta": "delta_bias", "dt": "dt_bias"}.get(name, ""))
        beside = 0 if bias is None else bias if op == "ssd" else bias[:, None]
        applies = name == "z" or given.get(STEPS[op][2])
        if applies and given.get(name) is not None:
            given[name] = torch.where(given[name] + beside <= at, -200.0 - beside, given[name])
        return ours(op).call(**given)

    return call


@pytest.mark.parametrize(
    ("op", "name", "at", "found"),
    [(op, STEPS[op][0], at, found) for op in STEPS for at, found in ((-16, {"passed"}), (-15, {"passed", "failed"}))]
    + [("selective_scan", "z", at, found) for at, found in ((-17.01, {"passed"}), (-16, {"passed", "failed"}))],
)
def test_where_a_function_may_be_cut_off_and_passes(op: str, name: str, at: float, found: set[str]) -> None:
    asked = [case for case in of_kind("basic", op) if case.tolerance and case.inputs["C"].dtype == torch.float32]
    tested = replace(ours(op), call=cut(op, name, at))
    assert {judged(tested, case).status for case in asked} == found


@pytest.mark.parametrize("op", STEPS)
def test_how_far_a_function_may_be_off(op: str) -> None:
    found = {case.name: case for case in of_kind("basic", op) if case.stage == "accuracy"}
    exponents, gates = (torch.tensor(some).double().abs() for some in (EXPONENTS, GATES))
    steps = torch.arange(1, HALF_LIFE_LENGTH + 1).double()
    in_turn = lambda row: row[:, None, None] if op == "ssd" else row
    of_channels = lambda row: row[:, None]
    allowed = {
        "curve of exp": lambda y: y * of_channels(2.0**-21 + 2.0**-22 * exponents) + 2.0**-126,
        "half-life": lambda y: y * in_turn(steps * 2.0**-21),
        "curve of softplus": lambda y: y * 2.0**-20 + 2.0**-22,
        "curve of silu": lambda y: y.abs() * 2.0**-19 + of_channels(gates * 2.0**-25),
    }
    for name, of in allowed.items():
        y, near = found[name].expected["y"], found[name].tolerance["y"]
        assert torch.allclose(near, of(y), rtol=1e-5, atol=0), name


def test_how_far_a_decay_of_the_delta_rule_may_be_off() -> None:
    found = {case.name: case for case in of_kind("basic", "delta_rule") if case.stage == "accuracy"}
    for name, part in (("curve of exp", 2.0**-17), ("half-life", 192 * 2.0**-21)):
        y, near = found[name].expected["y"], found[name].tolerance["y"]
        assert torch.allclose(near, y.abs() * part, rtol=1e-5, atol=0), name


@pytest.mark.parametrize("op", OPERATIONS)
def test_how_far_ordinary_numbers_may_be_off(op: str) -> None:
    for row in ordinary_rows(op):
        terms = {"conv": row.get("taps"), "norm": row["sizes"]}.get(op) or row["length"] + row["sizes"][-1]
        assert share_of(op, row) == 2.0**-21 * (terms + 4)
    for row in layer_rows(op):
        terms = {"conv": row.get("taps"), "norm": row["sizes"]}.get(op)
        terms, of_time = (terms, 0) if terms else (row["sizes"][1 if op == "delta_rule" else 2], row["length"])
        assert share(op, row) == pytest.approx(2.0**-21 * (of_time + 4 + terms**0.5))
    assert (ROUNDINGS, OF_A_WRITE) == (2, 3)


@pytest.mark.parametrize("op", OPERATIONS)
def test_what_is_not_asked_is_in_no_case(op: str) -> None:
    for case in all_of(op):
        rates = case.inputs.get("A", case.inputs.get("g"))
        assert rates is None or float(rates.max()) <= 0, case.name
        of_the_layer = {m.dtype for name, m in case.inputs.items() if name in ("u", "x", "B", "C", "z", "q", "k", "v")}
        assert len(of_the_layer) == 1, case.name
        assert all(case.inputs[name].dtype == torch.float32 for name in ("A", "D") if name in case.inputs), case.name
        assert op != "conv" or "seq_idx" not in case.inputs or not case.states, case.name
        assert op != "conv" or not {"seq_idx", "initial_states"} <= case.inputs.keys(), case.name
        for row in case.inputs.get("seq_idx", ()):
            assert len(row.unique_consecutive()) == len(row.unique()), case.name


@pytest.mark.parametrize("op", OPERATIONS)
def test_some_operands_are_always_dense(op: str) -> None:
    names = {"A", "D", "delta_bias", "dt_bias", "bias", "weight", "initial_state", "initial_states"}
    for case in all_of(op):
        given = laid_out(op, case, case.inputs)
        assert all(given[name].is_contiguous() for name in names & given.keys()), case.name


def levels(case: Case) -> Levels:
    """The value of each option of a case, and of its sizes."""
    found: Levels = dict(options_of(case))
    found |= {"length": positions(case), "last state": "last_state" in case.expected, "sizes": sizes(case)}
    if case.op == "delta_rule":
        found["spread"] = _SPREADS[case.inputs["v"].shape[2] // case.inputs["k"].shape[2]]
    if size := case.options.get("chunk_size"):
        count = max(1, round(found["length"] / size))
        found |= {"chunk": size, "count": count, "end": found["length"] - size * count}
    return found


def sizes(case: Case) -> Any:
    """As `of_factor` has them."""
    inputs = case.inputs
    match case.op:
        case "selective_scan":
            return inputs["A"].shape[0], inputs["A"].shape[1]
        case "ssd":
            return (*inputs["x"].shape[2:], inputs["B"].shape[-1])
        case "delta_rule":
            return (*inputs["k"].shape[2:], inputs["v"].shape[-1])
    return inputs["x"].shape[1 if case.op == "conv" else 2]


def of_factor(op: str, name: str, value: Any) -> Any:
    """What `levels` says of a value of a factor."""
    if name == "sizes":
        return (value[0] * value[1], value[2]) if op == "selective_scan" else value
    return option_of(name, value)[1]


def not_met(
    op: str,
    found: Iterable[Levels],
    factors: Factors,
    strength: int,
    asked: Callable[[Levels], bool] = lambda levels: True,
) -> list[Levels]:
    """Every so many values, one of a factor each, that may stand together and do in none of these cases."""
    rows = [*found]
    missing = []
    for names in combinations(factors, strength):
        there = {tuple(row.get(name) for name in names) for row in rows}
        for some in product(*(factors[name] for name in names)):
            together = dict(zip(names, some, strict=True))
            key = tuple(of_factor(op, name, value) for name, value in together.items())
            if key not in there and asked(together) and may_stand(op, together, factors):
                missing.append(together)
    return missing


def may_stand(op: str, together: Mapping[str, Any], factors: Factors) -> bool:
    """Whether a case may have these, whatever else it has."""
    if not meets({**together, "op": op}):
        return False
    rest = [name for name in ("batch", "start", "told", "asked", "last state", "whole") if name in factors]
    rest = [name for name in rest if name not in together]
    return any(
        meets({**together, **dict(zip(rest, some, strict=True)), "op": op})
        for some in product(*(factors[name] for name in rest))
    )


@pytest.mark.parametrize("op", OPERATIONS)
def test_any_two_options_meet_at_the_sizes_of_layers(op: str) -> None:
    factors = layer_factors_of(op)
    own = {of_factor(op, "sizes", size) for size in factors["sizes"]}
    found = [each for case in of_kind("crossed", op) if (each := levels(case))["sizes"] in own]
    assert found and not_met(op, found, factors, 2) == []


@pytest.mark.parametrize("op", OPERATIONS)
def test_any_two_options_meet_with_ordinary_numbers_at_the_sizes_of_layers(op: str) -> None:
    """In float32, and again in narrow dtypes."""
    every = [levels(case) for case in of_kind("sizes of layers", op) if case.stage != ROUNDED]
    for dtypes in (["float32"], ["bfloat16", "float16"]):
        found = [each for each in every if each["dtype"] in dtypes]
        assert not_met(op, found, layer_ordinary_factors_of(op) | {"dtype": dtypes}, 2) == []


@pytest.mark.parametrize("op", CHUNKED)
def test_any_two_options_meet_with_the_ends_of_chunks(op: str) -> None:
    factors = {**factors_of(op), "chunk": CHUNK_SIZES, "count": COUNTS[op], "end": ENDS}
    factors["start"] = [start for start in factors["start"] if start != "pieces"]
    factors["sizes"] = factors["sizes"][:1]
    kept = {name: values for name, values in factors.items() if name not in ("length", "sizes")}
    assert not_met(op, map(levels, of_kind("ends of chunks", op)), kept, 2) == []


@pytest.mark.parametrize("op", WAYS)
def test_each_way_to_be_told_meets_any_two_options(op: str) -> None:
    """On exact operands; and each option with ordinary numbers."""
    factors = {name: values for name, values in told_factors_of(op).items() if name not in ("sizes", "length")}
    is_told = lambda levels: any(levels.get(name) for name in WAYS[op])
    for ordinary, strength in ((False, 3), (True, 2)):
        found = [levels(case) | ways(case) for case in of_kind("told", op) if bool(case.tolerance) == ordinary]
        assert not_met(op, found, factors, strength, is_told) == []


def ways(case: Case) -> Levels:
    """How a case is told, which its name says."""
    return {name: value for name, value in asked_in_name(case).items() if name in WAYS[case.op]}


@pytest.mark.parametrize("op", OPERATIONS)
def test_pieces_stand_in_no_case_of_borders_or_ends(op: str) -> None:
    """A kernel cannot tell them from a state, which stands there; the page says so."""
    assert not [case for case in (*border_cases(op), *chunk_end_cases(op)) if "cuts" in case.options]
    assert "pieces are none of the starts where chunks meet, nor at the ends of chunks" in in_one_line(CASES)
