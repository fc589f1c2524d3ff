"""Exact cases of the gated delta rule.

A write with a key of one place, β = 1, puts a value in the place of another; with β = 2 it turns the place's sign as
well, x → 2 v − x. A key of ½ at four places reflects: where the state holds (x, x) at two of them and (−x, −x) at the
other two, they change places, so a state of such pairs stays one of small integers for ever. Keys and queries have
the length 1 already, or, where they are normed, `LONG`. d_k is a power of 4, whose root is a power of two, but where
y is held to a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance.cases.curves import EXPONENTS, HALF_LIFE_LENGTH, HALF_LIVES, ULP, UNITS
from conformance.cases.draw import BF16, Draw, case, name_of
from conformance.cases.states import AFTER_A_STATE
from conformance.kernel.layouts import same_in_all_rows
from conformance.loader import Case

KEEP, ERASE = 0.0, -256.0
OVERWRITE, REFLECT = (1.0,), (2.0,)
ANY = (0.0, 1.0, 1.0, 2.0)
RARELY = (KEEP,) * 15 + (ERASE,)
LONG = 2.0**10


@dataclass(frozen=True, kw_only=True)
class Row:
    """A case before its numbers are drawn.

    heads: of q and k; values: channels of v; spread: heads of v for each of q and k.
    beta, g: what these are drawn from; in_turn: whether the heads have the values of g one after the other.
    swaps: keys of ½ at four places, over a state of pairs that the first steps write. places: how many places keys
    of one place are drawn from, as far apart as they can be. u: the largest v. normed: whether q and k are normed
    inside, and `LONG` times as long. wide: the operand whose numbers have 12 bits, or all bits of the dtype.
    near: how far y may be, as a part of it; slack: and how far beside.
    zeros: whether every third key and every fifth query is 0. level: a factor of all keys and queries.
    views: how operands lie in memory. shared: operands that are the same in every row.
    """

    stage: str
    name: str
    asks: str
    length: int
    heads: int = 2
    keys: int = 4
    values: int = 3
    spread: int = 1
    batch: int = 1
    beta: tuple[float, ...] = OVERWRITE
    g: tuple[float, ...] = (KEEP,)
    u: int = 2
    wide: str = ""
    places: int = 2
    swaps: bool = False
    normed: bool = False
    in_turn: bool = False
    near: float = 0.0
    slack: float = 0.0
    zeros: bool = False
    level: float = 1.0
    views: bool | str = False
    shared: str = ""
    initial: int = 0
    cuts: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    chunk: int = 64
    last: bool = False
    dtype: torch.dtype = torch.float32


def _narrow(dtype: torch.dtype) -> Iterator[Row]:
    """A state has more bits than the operands beside it."""
    of, row = name_of(dtype), partial(Row, stage="dtype", last=True, dtype=dtype)
    yield row(
        name=f"{of}, initial state", asks="an initial state is float32", length=3, initial=1, beta=(0.0,),
        wide="initial_state",
    )  # fmt: skip
    yield row(
        name=f"{of}, carried", asks="a state is float32 where chunks meet", length=150, initial=1, beta=(0.0,),
        wide="initial_state",
    )  # fmt: skip
    yield row(
        name=f"{of}, state", asks="a state is float32, and y is rounded once", length=5, u=1, places=1, beta=REFLECT,
        wide="v",
    )  # fmt: skip


ROWS = (
    Row(stage="recurrence", name="one step", asks="y = β v ⟨k, q⟩/√d_k, behind the write", length=1),
    Row(stage="recurrence", name="one step of 16", asks="q over the root of d_k = 16", length=1, keys=16, places=1),
    Row(stage="decay", name="kept", asks="exp(0) = 1: what is not written over stays bit for bit", length=9),
    Row(stage="decay", name="erased", asks="exp(g) = 0 for g ≤ −104", length=9, g=(ERASE,)),
    Row(stage="decay", name="erase or keep", asks="the decay acts before the write", length=13, g=(KEEP, ERASE)),
    Row(stage="write", name="overwrite", asks="β = 1: the place holds v, and nothing of before", length=12, places=1),
    Row(stage="write", name="nothing", asks="β = 0: nothing is written", length=12, beta=(0.0, 1.0)),
    Row(stage="write", name="reflect", asks="β = 2: x becomes 2 v − x", length=9, beta=REFLECT),
    Row(stage="write", name="any", asks="β of 0, 1 and 2, each of its own step and head", length=20, beta=ANY, heads=3),
    Row(
        *(), stage="write", name="swaps", asks="β = 2 and a key of ½ at four places: two pairs change places",
        length=30, beta=REFLECT, keys=16, swaps=True,
    ),
    Row(
        *(), stage="norm", name="norm", asks="q and k over the root of their sums of squares", length=12, normed=True,
        beta=ANY,
    ),
    Row(
        *(), stage="norm", name="zeros", asks="a key or a query of zeros stays one: epsilon below the root", length=15,
        normed=True, beta=ANY, zeros=True,
    ),
    Row(
        *(), stage="accuracy", name="short keys", asks="epsilon, added to the sum of squares", length=1, normed=True,
        places=1, level=2.0**-20, near=UNITS,
    ),
    Row(
        *(), stage="accuracy", name="root of 8", asks="q over the root of d_k = 8, no power of two", length=9, keys=8,
        beta=ANY, near=4 * UNITS,
    ),
    Row(
        *(), stage="accuracy", name="root of 96", asks="q over the root of d_k = 96", length=9, keys=96, beta=ANY,
        near=4 * UNITS,
    ),
    Row(
        *(), stage="accuracy", name="128 keys", asks="128 keys and channels, as layers have them", length=70, heads=1,
        keys=128, values=128, places=4, beta=ANY, initial=25, last=True, near=4 * UNITS,
        slack=4 * UNITS,
    ),
    Row(stage="batch", name="batch", asks="each row has its own k, β, g and state", length=9, batch=3, beta=ANY),
    Row(stage="batch", name="33 rows", asks="rows beyond a tile of 32", length=3, batch=33, beta=ANY, heads=1),
    Row(stage="groups", name="shared keys", asks="heads 2i, 2i + 1 of v share head i of q and k", length=9, spread=2),
    Row(
        *(), stage="occupancy", name="odd sizes", asks="the last head and channel of a tile", length=5, heads=5,
        values=19, keys=16, beta=ANY, batch=2,
    ),
    Row(
        *(), stage="occupancy", name="64 keys", asks="the last place of a key", length=60, heads=1, keys=64, places=64,
        values=2,
    ),
    Row(
        *(), stage="occupancy", name="256 keys", asks="places of a key beyond tiles of 64 and 128", length=60, heads=1,
        keys=256, places=256, values=2,
    ),
    Row(
        *(), stage="occupancy", name="160 channels", asks="channels of v beyond tiles of 32, 64 and 128", length=3,
        heads=1, values=160,
    ),
    Row(stage="chunk", name="16 and one", asks="a second chunk of one step", length=17, chunk=16, beta=ANY, g=RARELY),
    Row(stage="chunk", name="64 and one", asks="a second chunk of one step", length=65, beta=ANY, g=RARELY),
    Row(
        *(), stage="chunk", name="300", asks="many chunks, the last not full", length=300, beta=ANY, g=RARELY, heads=3,
    ),
    Row(
        *(), stage="chunk", name="300 swaps", asks="reflections over many chunks: entries of the inverse up to 2",
        length=300, beta=REFLECT, keys=16, swaps=True,
    ),
    Row(stage="last state", name="state after one", asks="the state after the last step", length=1, last=True),
    Row(stage="last state", name="state after 64", asks="a full chunk", length=64, beta=ANY, g=RARELY, last=True),
    Row(stage="last state", name="state after 128", asks="full chunks", length=128, beta=ANY, g=RARELY, last=True),
    Row(
        *(), stage="last state", name="state after 70", asks="the state after the last step, not of padding behind it",
        length=70, last=True, beta=ANY, g=RARELY,
    ),
    Row(
        *(), stage="initial state", name="carried", asks="the initial state, of which nothing fades", length=5,
        initial=25, last=True, batch=2,
    ),
    Row(
        *(), stage="initial state", name="through chunks", asks="the initial state reaches later chunks", length=150,
        initial=25, beta=ANY, last=True, places=1,
    ),
    Row(
        *(), stage="initial state", name="as many keys as values", asks="a state that is square, and not transposed",
        length=9, values=4, beta=ANY, initial=25,
    ),
    Row(
        *(), stage="continuation", name="odd cuts", asks="a state handed from piece to piece", length=75,
        cuts=(1, 3, 40, 64, 65), beta=ANY, g=RARELY, last=True, batch=2,
    ),
    Row(
        *(), stage="packed", name="three documents", asks="a document begins with an empty state", length=80,
        documents=(7, 64, 9), beta=ANY, places=4,
    ),
    Row(
        *(), stage="packed", name="a border at 2,049", asks="offsets are integers: bfloat16 and float16 have no 2,049",
        length=2060, documents=(2049, 2, 9), beta=ANY, places=4, heads=1,
    ),
    Row(
        *(), stage="packed", name=AFTER_A_STATE, asks="the initial state is that of the first document", length=80,
        documents=(7, 64, 9), beta=ANY, places=2, initial=25, last=True,
    ),
    Row(stage="precision", name="wide q", asks="all bits of q", length=3, places=1, wide="q"),
    Row(stage="precision", name="wide k", asks="all bits of k", length=1, places=1, wide="k"),
    Row(stage="precision", name="wide β", asks="all bits of β", length=1, places=1, wide="beta"),
    Row(
        *(), stage="precision", name="wide initial state", asks="all bits of the initial state", length=3, initial=1,
        last=True, beta=(0.0,), wide="initial_state",
    ),
    Row(stage="precision", name="wide v", asks="all bits of v", length=3, u=1, places=1, wide="v"),
    Row(
        *(), stage="precision", name="wide state", asks="all bits of a state of 13", length=70, u=4095,
        beta=(0.0, 0.0, 1.0),
    ),
    *(
        Row(
            *(), stage="precision", name=f"wide over chunks of {size}", asks=f"all bits of a state, after {size} "
            "positions", length=2 * size + 3, u=30000, beta=(0.0, 0.0, 1.0), chunk=size, last=True,
        )
        for size in (16, 128)
    ),
    Row(
        *(), stage="accuracy", name="curve of exp", asks="exp to a few units in the last place", length=1,
        heads=len(EXPONENTS), initial=25, beta=(0.0,), g=tuple(EXPONENTS), in_turn=True, near=UNITS * 16,
    ),
    Row(
        *(), stage="accuracy", name="half-life", asks="a decay near 1 that keeps its half-life over 192 steps",
        length=HALF_LIFE_LENGTH, initial=25, beta=(0.0,), g=tuple(-rate for rate in HALF_LIVES) + (-(2.0**-14),),
        near=HALF_LIFE_LENGTH * 4 * ULP,
    ),
    Row(stage="dtype", name="bfloat16", asks="operands in bfloat16", length=20, beta=ANY, g=(KEEP, ERASE), dtype=BF16),
    Row(
        *(), stage="dtype", name="float16", asks="operands in float16", length=20, beta=ANY, g=(KEEP, ERASE),
        dtype=torch.half,
    ),
) + tuple(row for dtype in (BF16, torch.half) for row in _narrow(dtype))  # fmt: skip


def delta_cases() -> Iterator[Case]:
    for row in ROWS:
        yield rendered(row)


def rendered(row: Row) -> Case:
    """The case of a row, its numbers drawn from its name."""
    draw = Draw(f"delta {row.name}")
    time, heads = (row.batch, row.length), row.heads * row.spread
    v = draw.integers((*time, heads, row.values), row.u)
    beta = draw.of(row.beta, (*time, heads))
    q, k = (_one_place(draw, row) for _ in range(2))
    if row.swaps:
        q, k, v = _pairs(draw, row)
        beta[:, : row.keys] = 1
    g = torch.tensor(row.g).expand(*time, heads).clone() if row.in_turn else draw.of(row.g, (*time, heads))
    inputs = {"q": q, "k": k, "v": v, "g": g, "beta": beta}
    if row.normed:
        inputs |= {"q": LONG * row.level * q, "k": LONG * row.level * k}
    if row.zeros:
        inputs["k"][:, ::3], inputs["q"][:, ::5] = 0, 0
    if row.initial:
        inputs["initial_state"] = draw.integers((row.batch, heads, row.keys, row.values), row.initial)
    if row.wide:
        inputs[row.wide] = inputs[row.wide] * draw.wide(row.wide, inputs[row.wide], row.dtype)
    if row.wide == "beta":  # between 0 and 2, as ever
        inputs["beta"] = inputs["beta"] / 2048
    inputs |= same_in_all_rows(inputs, row.shared)
    if row.documents:
        inputs["seq_idx"] = torch.tensor(
            [[i for i, length in enumerate(row.documents) for _ in range(length)]] * row.batch, dtype=torch.int32
        )
    options: dict[str, Any] = {"chunk_size": row.chunk, "use_qk_l2norm_in_kernel": row.normed}
    options |= {"cuts": list(row.cuts)} if row.cuts else {}
    options |= {"views": row.views} if row.views else {}
    options |= {"shared": row.shared} if row.shared else {}
    return case(
        "delta_rule", row.stage, row.name, row.asks, inputs, options, last_state=row.last, dtype=row.dtype,
        relative=row.near, absolute=row.slack,
        documents=row.documents if row.batch == 1 else (),
    )  # fmt: skip


def _one_place(draw: Draw, row: Row) -> Tensor:
    """One of `places` of a key, from its first to its last, 1 or −1."""
    number = draw.random.randint(row.places, size=(row.batch, row.length, row.heads))
    place = number * (row.keys - 1) // max(1, row.places - 1)
    sign = draw.of((1, -1), (row.batch, row.length, row.heads))
    return torch.eye(row.keys)[torch.from_numpy(place)] * sign[..., None]


def _pairs(draw: Draw, row: Row) -> tuple[Tensor, Tensor, Tensor]:
    """q reads a pair. First k and v write (x, x) to even pairs and (−x, −x) to odd ones, then k swaps two of these."""
    count, size = row.keys // 2, (row.batch, row.length, row.heads)
    member = torch.eye(count).repeat_interleave(2, 1)  # (pair, place)
    even, odd, read = (torch.from_numpy(draw.random.randint(count // 2, size=size)) for _ in range(3))
    k = (member[2 * even] + member[2 * odd + 1]) / 2
    k[:, : row.keys] = torch.eye(row.keys)[:, None]
    signs = torch.tensor([1.0, -1.0]).repeat(count // 2)[:, None, None]
    v = torch.zeros(row.batch, row.length, row.heads, row.values)
    x = draw.integers((row.batch, count, row.heads, row.values), 9) * signs
    v[:, : row.keys] = x.repeat_interleave(2, 1)
    return member[2 * read], k, v
