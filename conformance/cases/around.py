"""Cases of what stands around a scan: the causal convolution and the gated RMSNorm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from conformance.cases.curves import GATES, SIGMOID, ULP, UNITS, half_a_unit
from conformance.cases.draw import BF16, Draw, case, name_of
from conformance.cases.row import NEIGHBOURS
from conformance.loader import Case


def conv_cases(full: bool = False) -> Iterator[Case]:
    """With an activation every sum is a multiple of 128, of which silu is 0 or the number itself."""
    yield _conv("window", "one position", "the last tap meets the present position", 1)
    yield _conv("window", "two positions", "a window that reaches before the first position finds zeros", 2)
    yield _conv("window", "taps", "taps in their order, reaching d_conv − 1 back", 9)
    yield _conv("window", "three taps", "as many taps as there are", 9, taps=3)
    yield _conv("window", "two taps", "as many taps as there are", 9, taps=2)
    yield _conv("window", "bias", "the bias of the convolution", 5, bias=True)
    yield _conv("window", "silu", "silu after the bias", 9, bias=True, silu=True)
    yield _conv("window", "swish", "swish, another name of silu", 9, bias=True, silu=True, activation="swish")
    yield _conv("batch", "batch", "rows of a batch do not meet", 7, batch=3, bias=True)
    yield _conv("batch", "33 rows", "rows beyond a tile of 32", 5, batch=33)
    yield _conv("window", "four positions", "as many positions as taps", 4, bias=True)
    yield _conv("occupancy", "300 channels", "channels beyond blocks of 128 and 256", 5, channels=300, bias=True)
    yield _conv("occupancy", "odd sizes", "the last channel of a tile", 6, channels=67, bias=True)
    yield _conv("last state", "short", "a window kept from fewer inputs than taps", 2, last=True)
    yield _conv("last state", "window kept", "the last d_conv − 1 inputs", 9, last=True, batch=2)
    yield _conv("chunk", "300", "where blocks of positions meet", 300, bias=True)
    yield _conv(
        "initial state", "window given", "inputs from before the first position", 7, initial=True, last=True, batch=3
    )
    cuts = [1, 2, 7, 18]
    yield _conv("continuation", "odd cuts", "a window handed from piece to piece", 21, cuts=cuts, last=True, batch=2)
    documents = {65796: 5, 260: 2, 4: 1, 0: 12}
    yield _conv("packed", "documents", "taps never reach into the document before", 20, documents=documents)
    near = dict(zip(NEIGHBOURS, (5, 2, 1, 4, 3, 5), strict=True))
    asks = "numbers are compared as int32: bfloat16, float16 and float32 take neighbours for one"
    yield _conv("packed", "large numbers that are neighbours", asks, 20, documents=near)
    yield _conv("precision", "wide inputs", "all bits of an input of 12", 7, wide="x")
    yield _conv("precision", "wide taps", "all bits of a tap of 12", 7, wide="weight")
    yield _conv("precision", "wide bias", "all bits of a bias of 12", 7, bias=True, wide="bias")
    wide = "all bits of an input of 12 from before the first position"
    yield _conv("precision", "wide window", wide, 7, initial=True, last=True, wide="initial_states")
    yield _conv("dtype", "bfloat16", "inputs in bfloat16", 9, bias=True, silu=True, dtype=BF16)
    yield _conv("dtype", "float16", "inputs in float16", 9, bias=True, silu=True, dtype=torch.half)
    yield _conv("dtype", "float16, window", "a window kept in float16", 9, last=True, dtype=torch.half, wide="x")
    yield _conv("dtype", "bfloat16, window", "a window kept in bfloat16", 9, last=True, dtype=BF16, wide="x")
    curve = "silu to a few units in the last place"
    for name in ("silu", "swish"):
        yield _conv(
            "accuracy", f"curve of {name}", curve, len(GATES), x=GATES, silu=True, near=16 * ULP, activation=name
        )
    for dtype, of in ((dtype, name_of(dtype)) for dtype in (BF16, torch.half)):
        asks = "a sum is not rounded before its silu"
        gates = [gate / 3 for gate in GATES if abs(gate) < 8]
        yield _conv(
            "one rounding", f"{of}, silu", asks, len(gates), x=gates, silu=True, near=half_a_unit(dtype), dtype=dtype
        )
        asks = "taps times inputs, their sum and the bias are rounded once"
        yield _conv(
            "one rounding", f"{of}, products", asks, 9, bias=True, silu=True, dtype=dtype, wide="x", positive=True
        )
    if full:
        yield _conv("chunk", "2500", "where blocks of positions meet", 2500, bias=True, silu=True)


def _conv(
    stage: str,
    name: str,
    asks: str,
    length: int,
    *,
    batch: int = 1,
    channels: int = 4,
    taps: int = 4,
    bias: bool = False,
    silu: bool = False,
    activation: str = "silu",
    initial: bool = False,
    cuts: list[int] | None = None,
    documents: dict[int, int] | None = None,
    last: bool = False,
    dtype: torch.dtype = torch.float32,
    wide: str = "",
    positive: bool = False,
    x: Sequence[float] = (),
    near: float = 0.0,
) -> Case:
    """wide: the operand whose numbers have 12 bits, or all bits of the dtype. positive: whether taps and bias are, so
    that silu leaves what it is given. x: the input of every channel, if it is given; y is then held to `near`, a part
    of it, or to 2^-24, or as far as a sigmoid may be off.
    """
    draw = Draw(f"conv {name}")
    scale = 128 if silu and not positive else 1
    inputs: dict[str, Tensor] = {
        "x": scale * draw.integers((batch, channels, length), 9 if dtype == torch.float32 else 2),
        "weight": draw.integers((channels, taps), 3),
    }
    if bias:
        inputs["bias"] = scale * draw.integers((channels,), 9)
    if initial:
        inputs["initial_states"] = draw.integers((batch, channels, taps - 1), 9)
    if wide:
        inputs[wide] = draw.wide(wide, inputs[wide], dtype)
    if positive:
        inputs |= {key: draw.of((3, 5, 7), tuple(inputs[key].shape)) for key in ("weight", "bias")}
    if x:
        inputs["x"] = torch.tensor(x).to(dtype).float().expand(batch, channels, length).clone()
        inputs["weight"] = torch.tensor([0.0, 0.0, 3.0, 5.0]).expand(channels, taps).clone() / 4
    if documents:  # how many positions have each number
        ids = [number for number, size in documents.items() for _ in range(size)]
        inputs["seq_idx"] = torch.tensor([ids] * batch, dtype=torch.int32)
    options: dict[str, Any] = {"activation": activation if silu else None} | ({"cuts": cuts} if cuts else {})
    sums = 1.25 * inputs["x"] + 0.75 * F.pad(inputs["x"], (1, 0))[..., :-1]
    near_0 = torch.clamp(sums.double().abs() * SIGMOID, min=2.0**-24)
    found = {"window": [taps - 1]} if taps > 1 else {}
    return case(
        "conv", stage, name, asks, inputs, options, last_state=last, borders=found, dtype=dtype, relative=near,
        absolute=near_0 if near else 0.0,
    )  # fmt: skip


def norm_cases(full: bool = False) -> Iterator[Case]:
    """Magnitudes that are one power of two in each group, so that the root mean square is one."""
    yield _norm("norm", "level", "x over the root of its mean square", [2.0**10])
    yield _norm("norm", "weight", "each channel's own weight", [2.0**10], weight=True)
    yield _norm("norm", "gate before", "silu(z) is a factor before the norm: its level is gone after", [2.0**6], z=True)
    yield _norm("norm", "gate after", "silu(z) is a factor after the norm", [2.0**10], z=True, before=True)
    rows = torch.ones(3, 8)
    rows[1] = 0
    yield _norm("norm", "a row of zeros", "epsilon: 0 divided by its root is 0", [2.0**10], rows=rows)
    for level in (-4, -8, -12):
        yield _norm("norm", f"epsilon beside 2^{level}", "epsilon, added to the mean square", [2.0**level], near=UNITS)
    given = "epsilon as it is given, and not 1e-5"
    yield _norm("norm", "another epsilon", given, [2.0**-4], near=UNITS, epsilon=1e-3)
    given = "an epsilon of 1e-10: nothing clamps it from below"
    yield _norm("norm", "a tiny epsilon", given, [2.0**-12], near=UNITS, epsilon=1e-10)
    given = "epsilon as it is given, and not 1e-5"
    for before in (False, True):
        name = f"another epsilon, gate {'after' if before else 'before'}"
        yield _norm("norm", name, given, [2.0**-9], near=16 * ULP, epsilon=1e-3, z=True, before=before)
    positions = 2.0 ** (torch.arange(133) % 5)[:, None]
    yield _norm("batch", "rows", "each position has its own mean, beyond a block of 128 too", [2.0**10], rows=positions)
    levels = [2.0**8, 2.0**12]
    yield _norm("groups", "two groups", "each group has its own mean", levels, group_size=8)
    levels = [2.0**14, 2.0**9, 2.0**12, 2.0**10]
    yield _norm("groups", "four groups", "each group has its own mean", levels, group_size=8, z=True, weight=True)
    levels = [2.0 ** (8 + i % 5) for i in range(16)]
    yield _norm("groups", "sixteen groups", "more than eight groups", levels, group_size=2, weight=True)
    yield _norm("groups", "a group of zeros", "epsilon, in each group", [2.0**8, 0.0], group_size=8, z=True)
    yield _norm(
        "occupancy", "wide", "every channel counts in the mean", [2.0**10], near=UNITS, width=320 if not full else 1536
    )
    for where in ("first", "last"):
        sparse = torch.zeros(3, _WIDEST)
        sparse[:, : _WIDEST // 4] = 2
        sparse = sparse if where == "first" else sparse.flip(1)
        asks = "the mean is over every channel, also where most are 0"
        yield _norm("occupancy", f"the {where} quarter", asks, [2.0**10], near=UNITS, width=_WIDEST, rows=sparse)
    yield _norm("occupancy", "odd", "a width that is no power of two", [2.0**10], near=UNITS, width=67, weight=True)
    yield _norm("precision", "wide weight", "all bits of a weight of 12", [2.0**10], weight=True, wide="weight")
    yield _norm("precision", "wide x", "all bits of an x of 12", [1.0], near=UNITS, wide="x")
    yield _norm("precision", "wide gate before", "all bits of a z of 12", [1.0], z=True, near=UNITS, wide="z")
    yield _norm("precision", "wide gate after", "all bits of a z of 12", [2.0**10], z=True, before=True, wide="z")
    yield _norm("dtype", "bfloat16", "operands in bfloat16, the mean in float32", [2.0**10], weight=True, dtype=BF16)
    yield _norm(
        "dtype", "float16", "operands in float16, the mean in float32", [2.0**10], weight=True, dtype=torch.half
    )
    curve = "silu to a few units in the last place, behind the norm"
    yield _norm("accuracy", "curve of silu", curve, [2.0**10], z=True, before=True, gates=GATES, near=16 * ULP)
    for dtype, of in ((dtype, name_of(dtype)) for dtype in (BF16, torch.half)):
        asks = "the mean, its root, x times it and the weight's product are rounded once"
        more: dict[str, Any] = {"width": 64, "near": half_a_unit(dtype), "wide": "x", "dtype": dtype, "weight": True}
        yield _norm("one rounding", f"{of}, wide x", asks, [1.0], **more)
        asks = "the norm is not rounded before it is gated"
        yield _norm(
            "one rounding", f"{of}, gate after", asks, [1.0], z=True, before=True, gates=(33.0, 45.0, 63.0), **more
        )
        asks = "what is gated is not rounded before its mean, nor is silu(z)"
        yield _norm(
            "one rounding", f"{of}, gate before", asks, [1.0], z=True, gates=(1.5, 2.75, 3.5), in_turn=True, **more
        )


_WIDEST = 4096  # channels of a layer


def _norm(
    stage: str,
    name: str,
    asks: str,
    levels: list[float],
    *,
    width: int = 8,
    group_size: int | None = None,
    rows: Tensor | None = None,
    weight: bool = False,
    z: bool = False,
    before: bool = False,
    gates: Sequence[float] = (32.0, 64.0),
    in_turn: bool = False,
    near: float = 0.0,
    epsilon: float = 1e-5,
    dtype: torch.dtype = torch.float32,
    wide: str = "",
) -> Case:
    """x is ± its group's level everywhere, times `rows` (rows, 1 or width). gates: z of one position after the other;
    in_turn: and of one channel after the other.

    near: how far y may be from it, as a part of it. wide: the operand whose numbers have 12 bits, or all of the dtype.
    """
    draw = Draw(f"norm {name}")
    width = group_size * len(levels) if group_size else width
    rows = torch.ones(max(3, len(gates)), 1) if rows is None else rows
    level = torch.tensor(levels).repeat_interleave(width // len(levels))
    inputs = {"x": (draw.integers((len(rows), width), 1) * level * rows)[None]}
    inputs["weight"] = draw.integers((width,), 9) if weight else torch.ones(width)
    if z:
        places = torch.arange(len(rows))[:, None] + torch.arange(width) * in_turn
        inputs["z"] = torch.tensor(gates)[places % len(gates)][None]
    if wide:
        inputs[wide] = draw.wide(wide, inputs[wide], dtype)
    options = {"eps": epsilon, "group_size": group_size or width, "norm_before_gate": before}
    # Along the curve x over its root is ±1.
    off = inputs["z"].double().abs() * SIGMOID if z and gates is GATES else 0.0
    return case("norm", stage, name, asks, inputs, options, relative=near, absolute=off, dtype=dtype)
