"""Forms of operands that few callers give, each beside any two of the options.

B and C of one group with an axis for it; operands that every row of a batch shares, stored once with a stride of 0;
numbers of documents that fall; steps below 0. Each is asked alone in a case of its own, where options are few: a kernel
may have another path for it, and go wrong there with a D, a gate or a narrow dtype only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.cases.factors import LENGTHS, STRENGTH, Factors, factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.rendered import render
from conformance.loader import Case
from conformance.steps import STEPS, steps_of

FORM_LENGTHS = (70, 130)  # positions, beyond a chunk of 64 and of 128
FORMS: dict[str, Factors] = {
    "selective_scan": {
        "axis of one group": [False, True],
        "shared": [None, "B and C", "u and z"],
        "numbers": [None, "falling"],
        "steps below 0": [False, True],
    },
    "ssd": {
        "shared": [None, "B and C", "x and z"],
        "numbers": [None, "falling"],
        "steps below 0": [False, True],
    },
    "conv": {"shared": [None, "x"], "numbers": [None, "falling"]},
    "norm": {"shared": [None, "x", "z"]},
    "delta_rule": {"shared": [None, "q and k", "v and beta"]},
}


@kept
def form_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The cases of an operation; without: options and forms not to be taken."""
    return tuple(render(op, row) for row in finer(op, form_rows(op, without, lengths)))


def form_rows(op: str, without: frozenset[Option], lengths: Sequence[int] = LENGTHS) -> list[dict[str, Any]]:
    """Rows in which each form meets any two of the options, wherever the three may stand together."""
    return rows_with_forms(op, form_factors_of(op, lengths), without)


def rows_with_forms(op: str, factors: Factors, without: frozenset[Option]) -> list[dict[str, Any]]:
    """Of these options, and the forms of an operation."""
    rows = rows_without({**FORMS[op], **factors}, without, STRENGTH)
    return [row for row in rows if any(row[name] for name in FORMS[op] if name in row)]


def forms_of(case: Case) -> frozenset[Option]:
    """The forms that a case has, that of a case which asks for one alone too."""
    ids, B = case.inputs.get("seq_idx"), case.inputs.get("B")
    found = {
        ("axis of one group", case.op == "selective_scan" and B is not None and B.dim() == 4 and B.shape[1] == 1),
        ("shared", "B and C" if case.options.get("views") == "shared" else case.options.get("shared")),
        ("numbers", "falling" if ids is not None and bool((ids.diff() < 0).any()) else None),
        ("steps below 0", case.op in STEPS and bool((steps_of(case) < 0).any())),
    }
    return frozenset(form for form in found if form[1])


def form_factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed: the forms first, then the options, with fewer lengths, sizes and chunks."""
    few = [length for length in FORM_LENGTHS if length <= max(lengths)] or [max(lengths)]
    options = {**factors_of(op, lengths), "length": few if op != "norm" else [3]}
    options["sizes"] = options["sizes"][:1]
    options |= {"chunk": [64, 16]} if "chunk" in options else {}
    options |= {"spread": [1, 2]} if "spread" in options else {}
    return {**FORMS[op], **options}
