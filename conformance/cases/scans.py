"""Exact cases of the two scans, drawn from one list of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from conformance.cases.draw import Draw, assemble, case
from conformance.cases.precise_rows import PRECISE_ROWS
from conformance.cases.row import Row
from conformance.cases.scan_rows import FULL_ROWS, ROWS
from conformance.loader import Case


def scan_cases(op: str, full: bool = False) -> Iterator[Case]:
    for row in ROWS + PRECISE_ROWS + (FULL_ROWS if full else ()):
        if row.only in ("", op):
            yield _rendered(op, row)


def _rendered(op: str, row: Row) -> Case:
    draw = Draw(f"{op} {row.name}")
    own = 1 if op == "ssd" else row.channels
    n_decays = 1 if op == "ssd" else row.columns
    time, sizes = (row.batch, row.length), (row.heads, row.channels)
    u = draw.of(row.values, (*time, *sizes)) if row.values else draw.integers((*time, *sizes), row.u)
    steps = draw.of(row.step, (*time, row.heads, own))
    if row.spike:
        steps[:, row.spike[0]], u[:, row.spike[0]] = row.spike[1], 0
    inputs = assemble(
        op,
        u,
        steps,
        _spread(row.decay, (row.heads, own, n_decays)),
        _shared(row, draw.integers((*time, row.groups, row.columns), row.b)),
        _shared(row, draw.integers((*time, row.groups, row.columns), row.c)) * row.scale,
        D=draw.integers((row.heads, own), 9) if row.skip else None,
        z=draw.of(row.gates, (*time, *sizes)) if row.gate else None,
        bias=_spread(row.bias, (row.heads, own)) if row.bias else None,
        initial=draw.integers((row.batch, *sizes, row.columns), row.initial) if row.initial else None,
        seq_idx=_documents(row) if row.documents else None,
    )
    for name in inputs.keys() & {*row.wide}:
        inputs[name] = draw.wide(name, inputs[name], row.dtype)
    if row.grouped:
        inputs |= {name: inputs[name][:, None] for name in ("B", "C")}
    if row.each_skip:
        inputs["D"] = draw.integers(sizes, 9)
    options: dict[str, Any] = {"delta_softplus" if op == "selective_scan" else "dt_softplus": row.softplus}
    if op == "ssd":
        options["chunk_size"] = row.chunk
        options |= {"dt_limit": list(row.limit)} if row.limit else {}
    options |= {"cuts": list(row.cuts)} if row.cuts else {}
    options |= {"views": "shared"} if row.shared else {}
    return case(
        op, row.stage, row.name, row.asks, inputs, options, last_state=row.last, dtype=row.dtype,
        documents=row.documents if row.batch == 1 else (),
    )  # fmt: skip


def _spread(values: tuple[float, ...], shape: tuple[int, ...]) -> torch.Tensor:
    """The values in turn along every axis: neighbours differ."""
    places = torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij")).sum(0)
    return torch.tensor(values, dtype=torch.float32)[places % len(values)]


def _shared(row: Row, operand: torch.Tensor) -> torch.Tensor:
    return operand[:1].expand_as(operand) if row.shared else operand


def _documents(row: Row) -> torch.Tensor:
    numbers = row.numbers or range(len(row.documents))
    ids = [number for number, length in zip(numbers, row.documents, strict=True) for _ in range(length)]
    return torch.tensor([ids] * row.batch, dtype=torch.int32)
