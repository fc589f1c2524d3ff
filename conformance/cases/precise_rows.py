"""Cases of the two scans whose operands have more bits than 8, or another dtype than float32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from conformance.cases.draw import BF16, name_of
from conformance.cases.row import BOTH, ERASE, Row


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


PRECISE_ROWS = (
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
        *(), stage="precision", name="step of 2^17", asks="a step beyond 65,504, the largest number of float16",
        length=5, step=(2.0**17,), columns=1,
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
        *(), stage="precision", name="wide over 1,024", asks="all bits of a state, after up to 1,024 positions",
        length=1040, u=30000, columns=1, c=1, last=True, step=(0, 1), only="selective_scan",
    ),
    *(
        Row(
            *(), stage="precision", name=f"wide over chunks of {size}", asks=f"all bits of a state, after {size} "
            "positions", length=2 * size + 3, u=30000, columns=1, c=1, last=True, step=(0, 1), chunk=size, only="ssd",
        )
        for size in (8, 32, 64, 128, 256)
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
