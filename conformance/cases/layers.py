"""Ordinary numbers at sizes beyond a tile and as layers have them: a kernel may round there, or take exp for 0 or 1.

Matrix units need operands of 16 rows and columns, and fast paths whole tiles: so what is rounded to TF32, bfloat16 or
float16, or which function of one number is called, often hangs on sizes, and on no option. On a lattice of few bits
nothing of it shows. Here operands are those of `ordinary`, at each size that exact cases have too.

Over a hundred columns errors of single products cancel, and so do those of a right sum. So every position reads four
columns, others than the position before, and 1/64 of the rest: no error is divided by more than a few. How far a sum
may be off grows with the root of its terms, as rounding does in any order, and not with their number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance.cases.factors import LAYER_STRENGTH, LENGTHS, Factors, layer_factors_of, wide_factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.ordinary import A_STEP, ROUNDED, Row, both
from conformance.loader import Case

POSITIONS = (4, 33, 70)
"""Few; beyond a tile of 32 and a chunk of 16 or 32; beyond a chunk of 64."""
CHUNKS = (16, 32, 64)
READ, FAINT = 4, 2.0**-6


@kept
def layer_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The cases of an operation, those of the stage `ROUNDED` last; without: options not to be taken."""
    cases = [case for row in finer(op, layer_rows(op, without, lengths), rounded=True) for case in rendered(op, row)]
    return tuple(sorted(cases, key=lambda case: case.stage == ROUNDED))


def layer_rows(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> list[dict[str, Any]]:
    """Rows in which any two factors meet in float32, and again, with the dtypes, in the narrow ones: only float32 shows
    what is rounded inside.
    """
    factors = layer_ordinary_factors_of(op, lengths)
    kept = [dtype for dtype in factors["dtype"] if ("dtype", dtype) not in without]
    each = [{**factors, "dtype": dtypes} for dtypes in (kept[:1], kept[1:]) if dtypes]
    return [row for crossed in each for row in rows_without(crossed, without, LAYER_STRENGTH)]


def layer_ordinary_factors_of(op: str, lengths: tuple[int, ...] = LENGTHS) -> Factors:
    """What is crossed: the options of exact cases of these sizes."""
    found = dict(layer_factors_of(op, lengths))
    found["sizes"] = [*wide_factors_of(op, lengths).get("sizes", ()), *found["sizes"]]
    found["batch"] = (1, 2)
    if op != "norm":  # whose positions do not meet
        found["length"] = [length for length in POSITIONS if length <= max(lengths)]
    usual = {"chunk": CHUNKS, "groups": (1, 8) if op == "norm" else (1, 2)}
    return found | {name: values for name, values in usual.items() if name in found}


def rendered(op: str, row: Row) -> list[Case]:
    """The case of a row, and beside narrow operands the strict one."""
    return both(op, row, share(op, row), _read_in_turn(op) if op in ("selective_scan", "ssd") else lambda _, m: m)


def share(op: str, row: Row) -> float:
    """Of the sum of absolute values: a step of the recurrence may be off by as much as a half-life's, and a sum by the
    root of its terms.
    """
    sizes = row["sizes"]
    terms = {"conv": row.get("taps", 0), "norm": sizes}.get(op) or sizes[1 if op == "delta_rule" else -1]
    steps = row["length"] if op not in ("conv", "norm") else 0
    return A_STEP * (steps + 4 + terms**0.5)


def _read_in_turn(op: str) -> Callable[[str, Tensor], Tensor]:
    return partial(_of_few_columns, time=1 if op == "ssd" else -1, columns=-1 if op == "ssd" else -2)


def _of_few_columns(name: str, m: Tensor, time: int, columns: int) -> Tensor:
    if name != "C" or m.shape[columns] <= READ:
        return m
    place = torch.arange(m.shape[time])[:, None] * READ
    near = (torch.arange(m.shape[columns]) - place) % m.shape[columns] < READ  # (time, columns)
    weight = torch.where(near, 1.0, FAINT)
    return m * (weight[:, None] if time == 1 else weight.T)
