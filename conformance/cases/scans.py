"""Exact cases of the two scans, from one list: what a row says holds for either.

Every operand is a small integer, or a power of two, and nothing is 0 that could hide what stands beside it. Up to the
stage "precision" every operand and every state fits into 8 bits, so that a kernel that rounds fails there and not
before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import torch

from conformance.cases.draw import BF16, Draw, assemble, case, name_of
from conformance.loader import Case

KEEP, ERASE = -0.0, -256.0
RARELY = (0, 0, 0, 0, 0, 0, 0, 1)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A case before its numbers are drawn.

    heads times channels is d_inner. decay: what A is drawn from. step: what Δ, as it is given, is drawn from.
    u, b, c: the largest operands; values: what u is drawn from instead. skip, gate: whether there are D and z;
    each_skip: whether D has a number for each channel of a head.
    spike: a position and its step; u is 0 there.
    wide: names of the operand, in either scan, whose numbers have 12 bits, or all bits of the dtype.
    gates: what z is drawn from. scale: a power of two, that of C.
    grouped: whether the scan's B and C have an axis of groups where there is one group.
    shared: whether every row has the same B and C, which are stored once.
    documents: lengths of packed sequences; numbers: of each, in place of 0, 1, 2, …
    cuts: where the sequence is cut into pieces. last: whether the last state is asked for.
    """

    stage: str
    name: str
    asks: str
    length: int
    heads: int = 2
    channels: int = 2
    columns: int = 2
    batch: int = 1
    groups: int = 1
    decay: tuple[float, ...] = (KEEP,)
    step: tuple[float, ...] = (1,)
    u: int = 2
    values: tuple[float, ...] = ()
    b: int = 1
    c: int = 2
    bias: tuple[float, ...] = ()
    softplus: bool = False
    limit: tuple[float, float] | None = None
    skip: bool = False
    each_skip: bool = False
    gate: bool = False
    gates: tuple[float, ...] = (32, 64, 64, -128)
    scale: float = 1.0
    initial: int = 0
    shared: bool = False
    grouped: bool = False
    documents: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    cuts: tuple[int, ...] = ()
    chunk: int = 16
    last: bool = False
    dtype: torch.dtype = torch.float32
    only: str = ""
    spike: tuple[int, float] | None = None
    wide: tuple[str, ...] = ()


BOTH = (KEEP, ERASE)


def _narrow(dtype: torch.dtype) -> Iterator[Row]:
    """What is computed beside operands of a dtype has more bits than it, and is rounded to it once, at the end.

    Half holds no number beyond 65,504: C is scaled so that y stays below.
    """
    of, odd = name_of(dtype), (3.0, 5.0, 7.0)
    row = partial(Row, stage="one rounding", dtype=dtype, heads=4, channels=4, b=1, c=1)
    yield row(
        name=f"{of}, products", asks="Δ u, the state and the products of C with it are not rounded",
        length=2, step=odd, columns=2, wide=("u", "x"), last=True,
    )  # fmt: skip
    yield row(
        name=f"{of}, step", asks="Δ is not rounded, behind its bias and softplus", length=3, step=(32,),
        bias=(1,), softplus=True, columns=1, u=1, wide=("delta_bias", "dt_bias"), last=True,
    )  # fmt: skip
    yield row(
        name=f"{of}, write", asks="Δ u B is not rounded", length=2, step=odd, u=1, columns=1,
        wide=("B",), last=True,
    )  # fmt: skip
    yield row(
        name=f"{of}, skip", asks="D, float32, D u and the sum before it are not rounded", length=4, values=odd,
        step=(500, 508), columns=1, skip=True, wide=("D",),
    )  # fmt: skip
    yield row(
        name=f"{of}, gate", asks="what is gated is not rounded before", length=2, step=odd, columns=2,
        wide=("u", "x"), gate=True, gates=(33, 35, 45, 63), scale=2.0**-6,
    )  # fmt: skip
    yield row(
        name=f"{of}, initial state", asks="an initial state is float32", length=2, u=1, columns=2,
        initial=1, wide=("initial_state", "initial_states"), last=True,
    )  # fmt: skip


ROWS = (
    Row(stage="recurrence", name="one step", asks="y = C Δ u B", length=1, columns=1),
    Row(stage="recurrence", name="three steps", asks="a sum over steps, B and C each of its own step", length=3),
    Row(stage="recurrence", name="columns", asks="a sum over state columns", length=13, columns=4),
    Row(stage="step", name="bias", asks="Δ's bias, added once", length=5, columns=1, bias=(1, 2, 3), step=(1, 2)),
    Row(
        *(), stage="step", name="tiny step", asks="a step of 2^-20: nothing clamps it from below", length=5,
        step=(2**-20,), columns=1,
    ),
    Row(
        *(), stage="step", name="large step", asks="a step of 4096: nothing clamps it from above", length=5,
        step=(4096,), columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of 32", asks="softplus(x) = x for large x", length=5, step=(32,),
        softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of 4096", asks="softplus(x) without overflow: it is x", length=5,
        step=(4096,), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of -128", asks="softplus(x) = 0 for x ≤ −104: nothing is written",
        length=9, step=(-128, 32), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of -2^24", asks="softplus(x) = 0 as far below as float32 counts", length=5,
        step=(-(2.0**24), 32), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="bias, then softplus", asks="the bias comes before the softplus, and once", length=7,
        step=(-128,), bias=(-64, 160, 192), softplus=True, columns=1, heads=6,
    ),
    Row(
        *(), stage="step", name="softplus of 160 - 288", asks="softplus is large or small by Δ and its bias, not by Δ",
        length=7, step=(160, 320), bias=(-288,), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="limits", asks="Δ is clamped by its limits, after the softplus", length=7,
        step=(-128, 32, 256), limit=(2.0, 64.0), softplus=True, columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="limit from above", asks="Δ is clamped from above alone", length=7,
        step=(0, 32, 256), limit=(0.0, 64.0), columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="limit from below", asks="Δ is clamped from below alone", length=7, step=(0, 32, 256),
        limit=(2.0, math.inf), columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="negative step", asks="a step below 0: without a softplus nothing clamps it", length=7,
        step=(-3, 2), columns=1, only="selective_scan",
    ),
    Row(stage="decay", name="erase", asks="exp(ΔA) = 0 for ΔA ≤ −104", length=13, decay=(ERASE,)),
    Row(stage="decay", name="erase or keep", asks="exp(0) = 1: Δ = 0 keeps all", length=13, decay=BOTH, step=(0, 1)),
    Row(
        *(), stage="decay", name="erase after much", asks="exp(ΔA) = 0 exactly, not a small number", length=9,
        decay=(ERASE,), step=(0, 1), values=(2.0**14, -(2.0**14), 2.0**-6), columns=1,
    ),
    Row(stage="skip and gate", name="skip", asks="D u, each channel with its own D", length=5, skip=True, heads=5),
    Row(
        *(), stage="skip and gate", name="skip of channels", asks="D u, each channel of a head with its own D",
        length=5, skip=True, heads=3, each_skip=True, only="ssd",
    ),
    Row(
        *(), stage="skip and gate", name="skip of 40 channels", asks="D of channels beyond a tile of 32", length=5,
        skip=True, heads=2, channels=40, each_skip=True, only="ssd",
    ),
    Row(stage="skip and gate", name="gate", asks="a factor silu(z)", length=7, gate=True),
    Row(stage="skip and gate", name="skip and gate", asks="the gate acts on C·h + D u", length=7, skip=True, gate=True),
    Row(
        *(), stage="batch", name="batch", asks="each row has its own B, C, Δ and state", length=9, batch=3,
        decay=BOTH, step=(0, 1), skip=True,
    ),
    Row(
        *(), stage="batch", name="one B for all rows", asks="B and C that all rows share: a stride of 0 between rows",
        length=9, batch=3, shared=True,
    ),
    Row(
        *(), stage="batch", name="17 rows", asks="rows beyond a tile of 16", length=5, batch=17, decay=BOTH,
        step=(0, 1), u=1,
    ),
    Row(stage="batch", name="gates of a batch", asks="each row has its own z", length=5, batch=3, gate=True),
    Row(stage="groups", name="two groups", asks="heads h/g·i … share group i", length=9, heads=8, groups=2, batch=2),
    Row(
        *(), stage="groups", name="one group with an axis", asks="B and C of one group, (b, 1, n, l)", length=5,
        grouped=True, only="selective_scan",
    ),
    Row(
        *(), stage="groups", name="groups of three", asks="a group that ends inside of a vector of channels or heads",
        length=9, heads=6, channels=1, groups=2,
    ),
    Row(
        *(), stage="groups", name="four groups", asks="heads h/g·i … share group i", length=12, heads=8, groups=4,
        decay=BOTH, step=(0, 1), skip=True,
    ),
    Row(
        *(), stage="groups", name="eight groups", asks="more than four groups", length=9, heads=8, groups=8,
        decay=BOTH, step=(0, 1),
    ),
    Row(
        *(), stage="occupancy", name="odd sizes", asks="the last channel, head and column of a tile", length=5,
        heads=7, channels=11, columns=19, batch=2, decay=BOTH, step=(0, 1), b=1, u=1, c=1, skip=True,
    ),
    Row(
        *(), stage="occupancy", name="heads of 128 channels", asks="channels of a head beyond a tile of 64", length=3,
        heads=2, channels=128, columns=2, u=1, c=1, only="ssd",
    ),
    Row(
        *(), stage="occupancy", name="many channels", asks="the last channel and head of a tile", length=3, heads=33,
        channels=4, columns=1, step=(1,), skip=True,
    ),
    Row(
        *(), stage="occupancy", name="bias of many channels", asks="the bias of heads and channels beyond a tile",
        length=3, heads=40, channels=2, columns=1, bias=(1, 2, 3), u=1,
    ),
    Row(
        *(), stage="occupancy", name="many columns", asks="the last column of a tile", length=3, heads=1, channels=2,
        columns=65, u=1, c=1,
    ),
    Row(
        *(), stage="occupancy", name="128 columns", asks="128 columns, as layers have them", length=5, heads=1,
        channels=2, columns=128, u=1, c=1, decay=BOTH, step=(0, 1),
    ),
    Row(
        *(), stage="occupancy", name="256 columns", asks="columns beyond the 128 of most tiles", length=2, heads=1,
        channels=2, columns=256, u=1, c=1,
    ),
    Row(
        *(), stage="occupancy", name="98,304 inputs", asks="places of operands beyond 2^16", length=16, heads=512,
        channels=4, columns=1, batch=3, decay=BOTH, step=RARELY,
    ),
    Row(
        *(), stage="chunk", name="16 and one", asks="a second chunk of one step", length=17, decay=BOTH,
        step=RARELY,
    ),
    Row(stage="chunk", name="chunks of 16", asks="many chunks, the last one full", length=64, decay=BOTH, step=RARELY),
    Row(
        *(), stage="chunk", name="300", asks="chunks of 16 … 256, the last not full", length=300, decay=BOTH,
        step=RARELY, heads=3,
    ),
    Row(
        *(), stage="chunk", name="chunks of 37", asks="a chunk size that is no power of two", length=100, chunk=37,
        decay=BOTH, step=RARELY,
    ),
    Row(
        *(), stage="chunk", name="chunks of 256", asks="a chunk size of 256", length=300, chunk=256, decay=BOTH,
        step=RARELY, groups=2, heads=4,
    ),
    Row(stage="last state", name="state after one", asks="the state after the last step", length=1, last=True),
    Row(
        *(), stage="last state", name="state after 13", asks="the state after the last step, not of padding behind it",
        length=13, last=True, decay=BOTH, step=(0, 1),
    ),
    Row(
        *(), stage="last state", name="state after 40", asks="the state after the last chunk, not the one before",
        length=40, last=True, decay=BOTH, step=(0, 0, 1),
    ),
    Row(
        *(), stage="last state", name="state, softplus", asks="padding behind the last step: softplus(0) is no 0",
        length=13, last=True, step=(32,), bias=(32,), softplus=True, decay=(ERASE,), columns=1, batch=2,
    ),
    Row(
        *(), stage="last state", name="state, limits", asks="padding behind the last step is not clamped from below",
        length=13, last=True, step=(-128, 32), limit=(2.0, 64.0), softplus=True, decay=BOTH, columns=1, heads=4,
        only="ssd",
    ),
    Row(
        *(), stage="initial state", name="kept", asks="the initial state, of which nothing fades", length=5,
        initial=25, last=True, batch=3,
    ),
    Row(
        *(), stage="initial state", name="erased", asks="the first step's decay acts on the initial state", length=9,
        initial=25, decay=BOTH, step=(0, 1), last=True,
    ),
    Row(
        *(), stage="initial state", name="through chunks", asks="the initial state reaches later chunks", length=75,
        initial=25, decay=BOTH, step=RARELY, last=True, batch=2, skip=True,
    ),
    Row(
        *(), stage="initial state", name="chunks of 32", asks="a chunk size of 32, with all around it",
        length=100, chunk=32, decay=BOTH, step=RARELY, skip=True, gate=True, initial=25, last=True, only="ssd",
    ),
    Row(
        *(), stage="initial state", name="chunks of 128", asks="a chunk size of 128, with all around it",
        length=300, chunk=128, decay=BOTH, step=RARELY, skip=True, gate=True, initial=25, last=True, only="ssd",
    ),
    Row(
        *(), stage="continuation", name="odd cuts", asks="a state handed from piece to piece", length=75,
        cuts=(1, 3, 40, 41), decay=BOTH, step=RARELY, last=True, batch=2,
    ),
    Row(
        *(), stage="packed", name="three documents", asks="a document begins with an empty state", length=30,
        documents=(7, 3, 20), decay=(KEEP,), step=(0, 1),
    ),
    Row(
        *(), stage="packed", name="documents after a state", asks="the initial state is that of the first document",
        length=40, documents=(16, 1, 15, 8), decay=(KEEP,), step=(0, 1), initial=25, last=True,
    ),
    Row(
        *(), stage="packed", name="documents over chunks", asks="documents that end inside chunks, and at their ends",
        length=100, documents=(5, 11, 1, 40, 43), decay=BOTH, step=RARELY, last=True, skip=True,
    ),
    Row(
        *(), stage="packed", name="numbers that fall", asks="a document begins wherever the number is another one",
        length=30, documents=(7, 3, 8, 12), numbers=(65796, 260, 4, 0), decay=(KEEP,), step=(0, 1),
    ),
    Row(stage="precision", name="wide u", asks="all bits of u or x", length=3, u=1, columns=1, c=1, wide=("u", "x")),
    Row(stage="precision", name="wide B", asks="all bits of B", length=3, columns=1, u=1, c=1, wide=("B",)),
    Row(stage="precision", name="wide C", asks="all bits of C", length=3, columns=1, u=1, wide=("C",)),
    Row(stage="precision", name="wide step", asks="all bits of Δ", length=3, columns=1, u=1, c=1, wide=("delta", "dt")),
    Row(
        *(), stage="precision", name="wide bias", asks="all bits of Δ's bias", length=3, columns=1, u=1, c=1, bias=(1,),
        wide=("delta_bias", "dt_bias"),
    ),
    Row(
        *(), stage="precision", name="wide skip", asks="all bits of D", length=3, columns=1, u=1, c=1, skip=True,
        wide=("D",),
    ),
    Row(
        *(), stage="precision", name="wide gate", asks="all bits of z", length=3, columns=1, u=1, c=1, gate=True,
        wide=("z",),
    ),
    Row(
        *(), stage="precision", name="wide state", asks="all bits of a state of 16", length=12, u=9000, columns=1, c=1,
        initial=60000, last=True, chunk=4,
    ),
    Row(
        *(), stage="precision", name="wide over chunks", asks="all bits of a state, where chunks meet", length=75,
        u=30000, columns=1, c=1, last=True, step=(0, 1),
    ),
    Row(
        *(), stage="precision", name="wide in pieces", asks="all bits of a state that is handed on", length=40,
        u=3001, columns=1, c=1, last=True, cuts=(3, 17), batch=2, groups=2,
    ),
    Row(
        *(), stage="precision", name="a step of 2^24", asks="exponents are added up in each chunk, not from 0",
        length=300, decay=(ERASE,), spike=(255, 2.0**24), u=1, b=1, c=1,
    ),
    Row(
        *(), stage="dtype", name="bfloat16", asks="operands in bfloat16", length=20, decay=BOTH, step=(0, 1),
        dtype=BF16, skip=True,
    ),
    Row(
        *(), stage="dtype", name="float16", asks="operands in float16", length=20, decay=BOTH, step=(0, 1),
        dtype=torch.half, skip=True,
    ),
    Row(
        *(), stage="dtype", name="bfloat16, long state", asks="a state beyond 256 beside bfloat16 operands", length=40,
        u=100, dtype=BF16, columns=1, c=1, last=True,
    ),
    Row(
        *(), stage="dtype", name="bfloat16, carried", asks="a state beyond 256, where blocks of positions meet",
        length=300, heads=8, channels=4, u=100, dtype=BF16, columns=1, c=1, last=True,
    ),
    Row(
        *(), stage="dtype", name="float16, carried", asks="a state beyond 2048, where blocks of positions meet",
        length=300, heads=8, channels=4, u=1000, dtype=torch.half, columns=1, c=1, last=True,
    ),
) + tuple(row for dtype in (BF16, torch.half) for row in _narrow(dtype))  # fmt: skip

FULL_ROWS = (
    Row(
        *(), stage="chunk", name="2500", asks="chunks of up to 2048", length=2500, decay=BOTH, step=RARELY,
        chunk=256,
    ),
    Row(
        *(), stage="continuation", name="late cuts", asks="pieces longer than a chunk", length=700, cuts=(301, 338),
        decay=BOTH, step=RARELY, last=True, chunk=256,
    ),
    Row(
        *(), stage="occupancy", name="wide layer", asks="the last channel, head and column of a tile", length=4,
        heads=9, channels=64, columns=16, groups=3, u=1, c=1, skip=True,
    ),
)  # fmt: skip


def scan_cases(op: str, full: bool = False) -> Iterator[Case]:
    for row in ROWS + (FULL_ROWS if full else ()):
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
    borders = {"cut": list(row.cuts), "document": list(accumulate(row.documents))[:-1]}
    if op == "ssd":
        borders["chunk"] = list(range(row.chunk, row.length, row.chunk))
    found = {what: places for what, places in borders.items() if places}
    return case(
        op, row.stage, row.name, row.asks, inputs, options, last_state=row.last, borders=found, dtype=row.dtype,
        documents=row.documents if row.batch == 1 and not row.initial else (),
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
