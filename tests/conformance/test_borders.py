"""Where chunks meet, at every size of a chunk: states that float16 does not hold, and ordinary numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import exact
from conformance.cases import OPERATIONS, cases
from conformance.cases.borders import BORDER_LENGTHS, RARE_SIZES, border_cases, chunk_rows, wide_rows
from conformance.cases.chunk_ends import chunk_end_cases
from conformance.cases.crossings import CROSSINGS
from conformance.cases.factors import CHUNK_SIZES, LENGTHS, STEPS, factors_of
from conformance.cases.ordinary import ordinary_factors_of
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.faults.delta import delta_rule, faulty
from conformance.judge import chunks_refused, judged, trial
from conformance.kernel.arguments import STATE_IN, TIME_AXIS
from conformance.kernel.kernel import Kernel, piece
from conformance.kernel.signature import kernel
from conformance.loader import Case
from conformance.runtimes.huggingface import load
from tests.conformance import blind_right
from tests.conformance.test_crossing import met
from tests.conformance.test_precision import of_eleven_bits

RECURRENT, CHUNKED = ("selective_scan", "ssd", "delta_rule"), ("ssd", "delta_rule")
BORDERS = (16, 32, 64, 128, 256, 512, 1024)
FUNCTION: dict[str, Callable[..., Any]] = {**FUNCTIONS, "delta_rule": delta_rule}


def right(op: str) -> Kernel:
    return faulty() if op == "delta_rule" else ours(op)


def wide(op: str) -> tuple[Case, ...]:
    return border_cases(op)[: len(wide_rows(op, frozenset(), LENGTHS))]


def ordinary(op: str) -> tuple[Case, ...]:
    return border_cases(op)[len(wide(op)) :]


@cache
def every(op: str) -> tuple[Case, ...]:
    return (*cases(op), *(case for crossing in CROSSINGS for case in crossing(op)))


def handing_on(op: str, case: Case, places: list[int], handed: Callable[[Tensor], Tensor]) -> Kernel:
    """The operation in pieces that meet at these places, where the state is changed, or lost to a new document."""

    def call(**given: Any) -> Any:
        options = {name: value for name, value in given.items() if not isinstance(value, Tensor)}
        tensors = {name: m for name, m in given.items() if isinstance(m, Tensor)}
        begun, ys = {}, []
        for start, stop in zip([0, *places], [*places, case.expected["y"].shape[TIME_AXIS[op]]], strict=True):
            part = {name: piece(op, name, m, start, stop) for name, m in tensors.items()}
            part |= {name: m[:, start:stop] for name, m in tensors.items() if name == "seq_idx"}
            y, state = FUNCTION[op](**options | part | begun)
            ys.append(y)
            state = handed(state)
            if "seq_idx" in tensors and stop < tensors["seq_idx"].shape[1]:
                goes_on = tensors["seq_idx"][:, stop] == tensors["seq_idx"][:, stop - 1]
                state = state * goes_on.reshape(-1, *[1] * (state.dim() - 1))
            begun = {STATE_IN[op]: state}
        return torch.cat(ys, TIME_AXIS[op]), state

    return replace(right(op), call=call)


def narrowed(op: str, case: Case, places: list[int]) -> str:
    """How a case comes out of a kernel whose states have eleven bits where it goes on from these places."""
    ends = [place for place in places if place < case.expected["y"].shape[TIME_AXIS[op]]]
    assert judged(handing_on(op, case, ends, lambda state: state), case).status == "passed"
    return judged(handing_on(op, case, ends, of_eleven_bits), case).status


@pytest.mark.parametrize("op", CHUNKED)
def test_every_size_of_a_chunk_is_asked_with_ordinary_numbers_and_with_wide_states(op: str) -> None:
    """Over several chunks, whatever case has it."""
    sizes = {case.options["chunk_size"] for case in every(op)}
    several = [case for case in every(op) if case.expected["y"].shape[1] > case.options["chunk_size"]]
    assert sizes == {*CHUNK_SIZES, *(RARE_SIZES if op == "ssd" else ())}
    for asked in ([case for case in several if case.name.startswith("ordinary: ")], wide(op)):
        assert {case.options["chunk_size"] for case in asked} == sizes


@pytest.mark.parametrize("op", CHUNKED)
def test_any_two_options_meet_with_every_usual_size_of_a_chunk(op: str) -> None:
    for rows in (wide_rows(op, frozenset(), LENGTHS), chunk_rows(op, frozenset(), LENGTHS)):
        usual = [row for row in rows if row["chunk"] in CHUNK_SIZES]
        factors = {name: [*{str(row[name]): row[name] for row in usual}.values()] for name in usual[0]}
        assert met(usual, {name: values for name, values in factors.items() if name != "length"}, 2)
        assert all(row["length"] > 2 * row["chunk"] for row in rows)
    assert {row["dtype"] for row in wide_rows(op, frozenset(), LENGTHS)} == {"float32"}


def test_each_option_stands_at_every_size_of_a_chunk() -> None:
    """At those that few kernels take too, with wide states and with ordinary numbers."""
    for op in CHUNKED:
        for rows, factors in (
            (wide_rows(op, frozenset(), LENGTHS), factors_of(op) | {"dtype": ["float32"]}),
            (chunk_rows(op, frozenset(), LENGTHS), ordinary_factors_of(op)),
        ):
            for size in {row["chunk"] for row in rows}:
                there = [row for row in rows if row["chunk"] == size]
                for name in factors.keys() - {"length", "chunk"}:
                    wanted = {str(value) for value in factors[name]} - {"pieces"}
                    assert {str(row[name]) for row in there} == wanted, (op, size, name)


@pytest.mark.parametrize("op", CHUNKED)
def test_a_sequence_ends_with_a_chunk_and_beside_it_at_every_size_of_one(op: str) -> None:
    """And each length of the crossing stands at each size, there or here."""
    asked = {(case.options["chunk_size"], case.expected["y"].shape[1]) for case in every(op)}
    counts = (1, 2, 4) if op == "ssd" else (1, 2)
    ends = {(size, size * count + end) for size in CHUNK_SIZES for count in counts for end in (-1, 0, 1)}
    assert ends <= {(case.options["chunk_size"], case.expected["y"].shape[1]) for case in chunk_end_cases(op)}
    assert {(size, length) for size in CHUNK_SIZES for length in factors_of(op)["length"]} <= asked


@pytest.mark.parametrize("op", [*RECURRENT, "conv"])
def test_no_document_of_ordinary_numbers_or_wide_states_ends_where_chunks_meet(op: str) -> None:
    """In no row: chunks of 16 and more, and of the size that a kernel is told. Five rows and nine stand beside them."""
    inside = ("ordinary: ", "rounded once: ", "wide states")
    cases = [case for case in every(op) if "seq_idx" in case.inputs and any(name in case.name for name in inside)]
    met = {}
    for case in cases:
        chunks = {16, case.options.get("chunk_size", 1)} - {1}
        begins = [(row[1:] != row[:-1]).nonzero().flatten() + 1 for row in case.inputs["seq_idx"]]
        if places := [int(place) for row in begins for place in row if any(place % size == 0 for size in chunks)]:
            met[case.name] = places
    assert met == {} and {len(case.inputs["seq_idx"]) for case in cases} >= {1, 2, 3, 5, 9}


@pytest.mark.parametrize("op", CHUNKED)
def test_a_mistake_in_whole_chunks_of_one_size_is_found(op: str) -> None:
    """Zeros where an attacker had them: none of the sizes that the crossing leaves out had met such a length."""
    for size in CHUNK_SIZES:

        def call(of: int = size, **given: Any) -> Any:
            length = given["v" if op == "delta_rule" else "x"].shape[1]
            y, last = FUNCTION[op](**given)
            return (torch.zeros_like(y), last) if length % of == 0 else (y, last)

        asked = [case for case in chunk_end_cases(op) if case.options["chunk_size"] == size]
        found = [judged(replace(right(op), call=call), case).status for case in asked]
        assert {*found} == {"passed", "failed"} and found.count("failed") >= (3 if op == "ssd" else 2)


@pytest.mark.parametrize("op", CHUNKED)
def test_a_narrow_state_between_chunks_shows_in_every_case_of_wide_states(op: str) -> None:
    for case in wide(op):
        size = case.options["chunk_size"]
        assert narrowed(op, case, [*range(size, case.expected["y"].shape[1], size)]) == "failed", case.name


@pytest.mark.parametrize("border", BORDERS)
def test_a_narrow_state_at_one_border_of_the_scan_shows_in_every_case_that_has_it(border: int) -> None:
    asked = [case for case in wide("selective_scan") if case.expected["y"].shape[2] > border]
    assert len(asked) >= 4
    for case in asked:
        assert narrowed("selective_scan", case, [border]) == "failed", case.name


def test_every_option_of_the_scan_meets_every_border() -> None:
    rows = wide_rows("selective_scan", frozenset(), LENGTHS)
    assert {row["length"] for row in rows} == {*BORDER_LENGTHS} and max(BORDER_LENGTHS) > max(BORDERS)
    factors = {name: [*{str(row[name]): row[name] for row in rows}.values()] for name in rows[0]}
    assert met(rows, factors, 2)


@pytest.mark.parametrize("op", ["selective_scan", *CHUNKED])
def test_precision_asks_for_it_without_options(op: str) -> None:
    precise = [case for case in cases(op) if case.name.startswith("wide over ") and case.stage == "precision"]
    if op == "selective_scan":
        case = next(case for case in precise if case.name == "wide over 1,024")
        assert {narrowed(op, case, [border]) for border in BORDERS} == {"failed"}
        return
    asked = {case.options["chunk_size"]: case for case in precise}
    assert {*asked} == ({*CHUNK_SIZES} if op == "ssd" else {16, 128})
    for size, case in asked.items():
        assert narrowed(op, case, [*range(size, case.expected["y"].shape[1], size)]) == "failed", case.name


CURVES = {"ssd": ("exp in half", "exp is 0 or 1", "softplus is a relu"), "delta_rule": ("exp is 0 or 1",)}


@pytest.mark.parametrize(("op", "bug"), [(op, bug) for op, bugs in CURVES.items() for bug in bugs])
def test_another_function_in_chunks_of_one_size_is_found(op: str, bug: str) -> None:
    tested = faulty(bug) if op == "delta_rule" else ours(op, bug)
    """At every usual size, and, of a function that no option calls, at those that are rare."""
    sizes = {128 if op == "ssd" else 256, 8, 32}
    assert sizes == {row["chunk"] for row in chunk_rows(op, frozenset(), LENGTHS)} - {*RARE_SIZES}
    wrong = {case.options["chunk_size"] for case in ordinary(op) if judged(tested, case).status == "failed"}
    assert wrong >= sizes | ({*RARE_SIZES} if op == "ssd" and "exp" in bug else set())


@pytest.mark.parametrize("op", ["selective_scan", "ssd"])
def test_no_order_of_adding_rounds(op: str) -> None:
    """Sums of absolute values stay below 2^24 times the power of two that divides every term."""
    for case in wide(op):
        inputs = {name: m for name, m in case.inputs.items() if name != "z"}
        options = {name: value for name, value in case.arguments.items() if name != "chunk_size"}
        signed = ("u", "x", "B", "C", "D", STATE_IN[op])
        largest = {name: m.abs() if name in signed else m for name, m in inputs.items()}
        found = getattr(exact, op)(exact.Exact, **largest, **options)
        plain = getattr(exact, op)(exact.Exact, **inputs, **options)
        for name in ("y", "last_state"):
            terms = plain[name].astype(float)
            unit = max(2.0**k for k in range(-8, 9) if not (terms % 2.0**k).any())
            assert float(max(found[name].reshape(-1))) / unit < 2**24, case.name


RIGHT = (
    *(blind_right.double_precision, blind_right.doubling, blind_right.column_by_column),
    *(blind_right.head_by_head, blind_right.one_square),
)


@pytest.mark.parametrize("function", RIGHT, ids=lambda each: each.__name__)
def test_no_right_kernel_is_called_wrong(function: Callable[..., Any]) -> None:
    tested = kernel(function)
    found = [judged(tested, case).status for case in border_cases(tested.op)]
    assert {*found} <= {"passed", "skipped"} and found.count("passed") >= len(found) / 4


def test_functions_in_use_are_right() -> None:
    """In chunks of transformers' own, and of the size that they are told."""
    for tested in load().kernels:
        for op in {*tested.operations()} & {*RECURRENT}:
            strict = {"passed", "skipped"} | ({"failed"} if op != "delta_rule" else set())  # they round before D
            for case in border_cases(op):
                found = judged(tested, case).status
                assert found in (strict if case.stage == "rounding, crossed" else {"passed", "skipped"}), case.name


def test_who_takes_one_position_or_no_float32_is_asked_for_none() -> None:
    for op in OPERATIONS:
        assert border_cases(op, frozenset(), STEPS) == ()
        narrow = border_cases(op, frozenset({("dtype", "float32")}))
        assert not [case for case in narrow if "wide states" in case.name]


def test_sizes_of_a_chunk_that_a_kernel_refuses_are_left_out() -> None:
    def ssd(x, dt, A, B, C, chunk_size, D=None, z=None):
        if chunk_size not in (64, 128):
            raise NotImplementedError(f"chunks of {chunk_size}")
        return FUNCTIONS["ssd"](x, dt, A, B, C, chunk_size, D, z)[0]

    found = list(trial(kernel(ssd)))
    crossed = [each for each in found if each.case.stage in ("crossing", "rounding, crossed")]
    assert {each.finding.status for each in crossed} == {"passed"}
    assert {each.case.options["chunk_size"] for each in crossed if "wide states" in each.case.name} == {64, 128}
    refused = chunks_refused(kernel(ssd), "ssd", found)
    assert {size for _, size in refused} == {*CHUNK_SIZES, *RARE_SIZES} - {64, 128}
