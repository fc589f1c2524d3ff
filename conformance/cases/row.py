"""A case of a scan before its numbers are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import torch

KEEP, ERASE = -0.0, -256.0
RARELY = (0, 0, 0, 0, 0, 0, 0, 1)
NEIGHBOURS = (2**8, 2**8 + 1, 2**11, 2**11 + 1, 2**24, 2**24 + 1)
"""Numbers of documents: of each two, bfloat16, float16 or float32 has one only."""


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
