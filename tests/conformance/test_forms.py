"""Forms of operands, and places of borders, that once stood in one case or in none: a kernel wrong there is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance.cases import OPERATIONS
from conformance.cases.crossed import crossed_cases
from conformance.cases.crossings import CROSSINGS
from conformance.cases.factors import STEPS
from conformance.cases.forms import FORMS as FORMS_OF
from conformance.cases.forms import form_cases, form_factors_of, form_rows, forms_of
from conformance.cases.meeting import meets
from conformance.faults.catalogue import FUNCTIONS
from conformance.faults.catalogue import kernel as ours
from conformance.judge import judged, trial
from conformance.kernel.kernel import Kernel
from conformance.kernel.layouts import laid_out, shares, viewed
from conformance.kernel.signature import kernel
from conformance.loader import Case, ends_of_documents
from conformance.lots import lot

Right = Callable[..., Any]
Given = dict[str, Any]
Fault = Callable[[Right, Given], Any]
SCAN, SSD, CONV, NORM, STEP = "selective_scan", "ssd", "conv", "norm", "step"
PACKED = (SCAN, SSD, CONV)


def with_strides_of(m: Tensor, other: Tensor) -> Tensor:
    """What a kernel reads that takes one set of strides for two operands; 0 where that is beyond the memory."""
    last = m.storage_offset() + sum((n - 1) * s for n, s in zip(m.shape, other.stride(), strict=True))
    if last >= m.untyped_storage().size() // m.itemsize:
        return torch.zeros_like(m)
    return m.as_strided(m.shape, other.stride(), m.storage_offset())


def reads(name: str, strides_of: str, beside: str = "") -> Fault:
    """An operand with the strides of another one; beside: only where this is given."""

    def fault(right: Right, given: Given) -> Any:
        there = all(given.get(each) is not None for each in (name, strides_of, beside or name))
        if there:
            given[name] = with_strides_of(given[name], given[strides_of])
        return right(**given)

    return fault


def as_dense(name: str) -> Fault:
    """An operand whose strides are not looked at."""

    def fault(right: Right, given: Given) -> Any:
        m = given.get(name)
        if m is not None:
            given[name] = with_strides_of(m, torch.empty(m.shape))
        return right(**given)

    return fault


def one_row_as_dense(right: Right, given: Given) -> Any:
    """Of one row."""
    u = given["u"]
    return right(**given | ({"u": with_strides_of(u, torch.empty(u.shape))} if len(u) == 1 else {}))


def missed(where: Callable[[int, Given], list[int]], rows: slice, beside: str = "seq_idx") -> Fault:
    """Documents that begin at these positions of these rows go on with the state before."""

    def fault(right: Right, given: Given) -> Any:
        ids = given.get("seq_idx")
        if ids is not None and given.get(beside) is not None:
            begins = torch.nn.functional.pad(ids[:, 1:] != ids[:, :-1], (1, 0))
            begins[rows, where(ids.shape[1], given)] = False
            given["seq_idx"] = begins.cumsum(1)
        return right(**given)

    return fault


def every(size: int, off: int = 0) -> Callable[[int, Given], list[int]]:
    return lambda length, given: [at + off for at in range(size, length - off, size)]


def every_chunk(least: int, first: int = 1, off: int = 0) -> Callable[[int, Given], list[int]]:
    """Chunks of `least` positions or more, from this border on."""

    def places(length: int, given: Given) -> list[int]:
        size = given["chunk_size"]
        return [at + off for at in range(first * size, length - off, size)] if size >= least else []

    return places


FIRST, BEHIND = slice(0, 1), slice(1, None)
LAYOUTS: dict[str, tuple[str, Fault]] = {
    "norm: z with the strides of x": (NORM, reads("z", "x")),
    "norm: x with the strides of z": (NORM, reads("x", "z")),
    "norm: z as dense": (NORM, as_dense("z")),
    "step: z with the strides of x": (STEP, reads("z", "x")),
    "step: dt with the strides of x": (STEP, reads("dt", "x")),
    "step: C with the strides of B, beside D": (STEP, reads("C", "B", beside="D")),
    "scan: z with the strides of u, beside D": (SCAN, reads("z", "u", beside="D")),
    "scan: documents as dense": (SCAN, as_dense("seq_idx")),
    "scan: u of one row as dense": (SCAN, one_row_as_dense),
    "ssd: documents as dense": (SSD, as_dense("seq_idx")),
    "conv: documents as dense": (CONV, as_dense("seq_idx")),
}


def where(there: Callable[[Given], bool], changed: Callable[[Given], Given]) -> Fault:
    """Operands are read as others where something is given."""
    return lambda right, given: right(**given | (changed(given) if there(given) else {}))


def late(*names: str) -> Callable[[Given], Given]:
    """B, or B and C, one position late."""
    return lambda given: {name: given[name].roll(1, -1 if "u" in given else 1) for name in names}


def has(*names: str) -> Callable[[Given], bool]:
    return lambda given: all(given.get(name) is not None and given[name] is not False for name in names)


def both(*conditions: Callable[[Given], bool]) -> Callable[[Given], bool]:
    return lambda given: all(each(given) for each in conditions)


def one_group(given: Given) -> bool:
    return given["B"].dim() == 4 and given["B"].shape[1] == 1


def once(name: str) -> Callable[[Given], bool]:
    return lambda given: given.get(name) is not None and len(given[name]) > 1 and given[name].stride(0) == 0


def only_rising(given: Given) -> Given:
    """A document begins only where its number is larger than the one before."""
    ids = given["seq_idx"]
    return {"seq_idx": torch.nn.functional.pad(ids[:, 1:] > ids[:, :-1], (1, 0)).cumsum(1)}


def at_least_0(step: str, bias: str) -> Callable[[Given], Given]:
    """Δ and its bias, clamped; of a softplus nothing is below 0."""

    def changed(given: Given) -> Given:
        own = given.get(bias)
        own = 0 if own is None else own[:, None] if step == "delta" else own
        sum_of = given[step].float() + own
        return {step: sum_of.clamp(min=0.0), bias: None}

    return changed


def no_softplus(given: Given) -> bool:
    return not any(given.get(name) for name in ("delta_softplus", "dt_softplus"))


def row_0_again(name: str) -> Callable[[Given], Given]:
    """What is stored once is taken for a batch of one row, and the rest for zeros."""
    return lambda given: {name: given[name] * (torch.arange(len(given[name])) < 1).view(-1, 1, 1)}


FORMS: dict[str, tuple[str, Fault]] = {
    "scan: an axis of one group, beside D": (SCAN, where(both(one_group, has("D")), late("B"))),
    "scan: an axis of one group, beside z": (SCAN, where(both(one_group, has("z")), late("B"))),
    "scan: an axis of one group, C with documents and a bias": (
        SCAN,
        where(both(one_group, has("seq_idx", "delta_bias")), late("C")),
    ),
    "scan: an axis of one group in bfloat16": (
        SCAN,
        where(both(one_group, lambda given: given["u"].dtype == torch.bfloat16), late("B", "C")),
    ),
    "scan: numbers that fall, beside D": (SCAN, where(has("seq_idx", "D"), only_rising)),
    "scan: numbers that fall, behind a state": (SCAN, where(has("seq_idx", "initial_state"), only_rising)),
    "ssd: numbers that fall, beside a gate": (SSD, where(has("seq_idx", "z"), only_rising)),
    "scan: one B for all rows, beside z": (SCAN, where(both(once("B"), has("z")), late("B"))),
    "scan: one u for all rows, beside a bias": (SCAN, where(both(once("u"), has("delta_bias")), row_0_again("u"))),
    "ssd: one C for all rows, beside documents": (SSD, where(both(once("C"), has("seq_idx")), late("C"))),
    "conv: one x for all rows, beside a bias": (CONV, where(both(once("x"), has("bias")), row_0_again("x"))),
    "norm: one z for all rows": (NORM, where(once("z"), row_0_again("z"))),
    "scan: steps below 0 beside a bias": (
        SCAN,
        where(both(no_softplus, has("delta_bias")), at_least_0("delta", "delta_bias")),
    ),
    "scan: steps below 0 beside D and z": (
        SCAN,
        where(both(no_softplus, has("D", "z")), at_least_0("delta", "delta_bias")),
    ),
    "ssd: steps below 0": (SSD, where(both(no_softplus, has("dt_limit")), at_least_0("dt", "dt_bias"))),
    "ssd: steps below 0 beside a gate": (
        SSD,
        where(both(no_softplus, has("dt_limit", "z")), at_least_0("dt", "dt_bias")),
    ),
    "step: steps below 0": (STEP, where(no_softplus, at_least_0("dt", "dt_bias"))),
    "step: steps below 0 beside a bias": (
        STEP,
        where(both(no_softplus, has("dt_bias")), at_least_0("dt", "dt_bias")),
    ),
    "step: steps below 0 beside D": (STEP, where(both(no_softplus, has("D")), at_least_0("dt", "dt_bias"))),
}
BORDERS: dict[str, tuple[str, Fault]] = {
    "scan: behind the first row at 64, 128, …": (SCAN, missed(every(64), BEHIND)),
    "scan: behind the first row at 128, 256, … beside D": (SCAN, missed(every(128), BEHIND, beside="D")),
    "scan: behind the first row at 192": (SCAN, missed(lambda n, _: [192][: n > 192], BEHIND)),
    "scan: of the first row before 64, 128, …": (SCAN, missed(every(64, -1), FIRST, beside="z")),
    "ssd: behind the first row at chunks of 32 or more": (SSD, missed(every_chunk(32), BEHIND)),
    "ssd: behind the first row at chunks, beside a gate": (SSD, missed(every_chunk(1), BEHIND, beside="z")),
    "ssd: of the first row at the second border on": (SSD, missed(every_chunk(64, first=2), FIRST)),
    "ssd: of the first row before a chunk": (SSD, missed(every_chunk(16, off=-1), FIRST, beside="dt_bias")),
    "conv: behind the first row at 64, 128, …": (CONV, missed(every(64), BEHIND)),
    "conv: of the first row before 128, 256, … beside a bias": (CONV, missed(every(128, -1), FIRST, beside="bias")),
}


@cache
def all_cases(op: str) -> tuple[Case, ...]:
    lengths = {"lengths": STEPS} if op == STEP else {}
    of = [SCAN, SSD] if op == STEP else [op]
    return tuple(case for each in of for crossing in CROSSINGS for case in crossing(each, **lengths))


def found_often(op: str, fault: Fault, asked: Callable[[Case], bool], least: int = 2) -> None:
    """In so many cases, in which the right kernel is right."""
    wrong = Kernel("wrong", op, lambda **given: fault(FUNCTIONS[op], given), ours(op).accepts)
    seen: list[Case] = []
    for case in sorted(filter(asked, all_cases(op)), key=lambda case: lot(case.name, 2**32)):
        seen += [case] if judged(wrong, case).status == "failed" else []
        if len(seen) == least:
            break
    assert len(seen) == least
    assert {judged(ours(op), case).status for case in seen} == {"passed"}


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_read_with_other_strides_is_found(name: str) -> None:
    op, fault = LAYOUTS[name]
    found_often(op, fault, lambda case: bool(case.options.get("views")))


@pytest.mark.parametrize("name", BORDERS)
def test_a_border_that_is_missed_in_some_rows_is_found(name: str) -> None:
    op, fault = BORDERS[name]
    found_often(op, fault, lambda case: "seq_idx" in case.inputs)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_is_wrong_beside_an_option_is_found(name: str) -> None:
    op, fault = FORMS[name]
    found_often(op, fault, lambda case: bool(forms_of(case)))


@pytest.mark.parametrize("op", OPERATIONS)
def test_each_form_meets_any_two_options(op: str) -> None:
    """By brute force, wherever the three may stand together."""
    factors = form_factors_of(op)
    forms = [(name, value) for name in FORMS_OF[op] for value in factors[name] if value]
    others = {name: values for name, values in factors.items() if name not in FORMS_OF[op] and len(values) > 1}
    rows = form_rows(op, frozenset())
    assert len({case.name for case in form_cases(op)}) == len(rows)
    for form in forms:
        there = [row for row in rows if row[form[0]] == form[1]]
        for one, other in combinations(others, 2):
            for values in product(others[one], others[other]):
                levels = {form[0]: form[1], one: values[0], other: values[1]} | ({"op": op} if op == CONV else {})
                together = any(row[one] == values[0] and row[other] == values[1] for row in there)
                assert together or not meets(levels) or not may_stand(op, levels, factors), levels


def may_stand(op: str, levels: Given, factors: Any) -> bool:
    """Whether each other factor has a value that may stand beside all of these."""
    rest = [
        name for name in ("batch", "start", "groups", "softplus", "limit") if name in factors and name not in levels
    ]
    return any(
        meets({**levels, **dict(zip(rest, values, strict=True))})
        for values in product(*(factors[name] for name in rest))
    )


@pytest.mark.parametrize("op", OPERATIONS)
def test_cases_have_the_forms_that_they_are_named_by(op: str) -> None:
    for case in form_cases(op):
        words = dict(forms_of(case))
        assert ("axis of one group" in case.name) == ("axis of one group" in words)
        assert ("numbers falling" in case.name) == ("numbers" in words)
        assert ("steps below 0" in case.name) == ("steps below 0" in words)
        assert words.get("shared") is None or f"shared {words['shared']}" in case.name
        given = laid_out(op, case, case.inputs)
        for name in shares(case.options.get("shared")):
            assert name not in given or (given[name].stride(0) == 0 and torch.equal(given[name], case.inputs[name]))


def test_a_form_that_is_refused_is_left_out() -> None:
    """It thins nothing else, and no case of it is skipped twice for each option."""

    def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
        if B.dim() == 4 and B.shape[1] == 1:
            raise NotImplementedError("an axis of one group")
        return FUNCTIONS[SCAN](u, delta, A, B, C, D, z, delta_bias, delta_softplus)[0]

    found = list(trial(kernel(scan)))
    refused = [each.case.name for each in found if "axis of one group" in each.finding.says]
    assert refused == ["one group with an axis"]


@pytest.mark.parametrize("op", OPERATIONS)
def test_each_two_operands_stand_in_each_two_layouts(op: str) -> None:
    """Among the crossed cases: a kernel may take the strides of the one for those of the other."""
    met: dict[tuple[str, str], Counter[tuple[bool, bool]]] = {}
    mixed = [case for case in all_cases(op) if case.options.get("views") == "mixed"]
    for case in mixed:
        given = laid_out(op, case, case.inputs)
        dense = {name: given[name].is_contiguous() for name in viewed(case) if name in given}
        for one, other in combinations(dense, 2):
            met.setdefault((one, other), Counter())[dense[one], dense[other]] += 1
    assert len(met) >= len(viewed(mixed[0])) - 1
    for pair, counts in met.items():
        assert all(counts[both] >= 2 for both in product((False, True), repeat=2)), (pair, counts)


@pytest.mark.parametrize("op", PACKED)
def test_each_row_has_documents_at_before_and_behind_each_border(op: str) -> None:
    """At each usual border, in the first row and in others; of ssd at its chunk, and at the second one."""
    begun: set[tuple[int, int, bool]] = set()
    for case in (case for case in crossed_cases(op) if "seq_idx" in case.inputs):
        chunk = case.options.get("chunk_size")
        borders = (64, 128, 192, 256, 512, 1024) if chunk is None else (chunk, 2 * chunk)
        for i, ids in enumerate(case.inputs["seq_idx"]):
            begins = {*ends_of_documents(ids)[:-1]}
            for k, border in enumerate(borders):
                at = border if chunk is None else k
                begun |= {(at, off, i > 0) for off in (-2, -1, 0, 1) if border + off in begins}
    wanted = {0, 1} if op == SSD else {64, 128, 192, 256, 512}
    assert {*product(wanted, (-1, 0, 1), (False, True))} <= begun


def test_of_one_row_views_are_no_dense_tensors() -> None:
    """Half of an axis before which nothing else stands would lie as a dense tensor does."""
    for op in (SCAN, SSD, CONV):
        for case in crossed_cases(op):
            x = case.inputs["u" if op == SCAN else "x"]
            if case.options.get("views") is True and sum(size > 1 for size in x.shape) > 1:
                assert not laid_out(op, case, case.inputs)["u" if op == SCAN else "x"].is_contiguous(), case.name


def test_one_number_for_all_along_an_axis_stays_one() -> None:
    """Δ of a head is one number for all of its channels, with a stride of 0, in a wider tensor too."""
    case = next(case for case in crossed_cases(SSD) if case.options.get("views") is True)
    once = torch.arange(6.0).reshape(2, 3, 1)
    given = laid_out(STEP, case, {"dt": once.expand(2, 3, 4)})["dt"]
    assert torch.equal(given, once.expand(2, 3, 4)) and given.stride(-1) == 0 and given.stride(0) == 6


def test_names_that_are_as_long_do_not_draw_in_step() -> None:
    """As they do by CRC-32: x and z, or B and C, of one case drew the same of two layouts in every case."""
    names = [str(i) for i in range(400)]
    both = Counter((lot(f"{name} x", 2), lot(f"{name} z", 2)) for name in names)
    assert len(both) == 4 and min(both.values()) > 60
