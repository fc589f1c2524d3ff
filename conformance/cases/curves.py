"""Cases between the exact ones: exp, softplus and silu along their curves, and a half-life.

No two implementations agree there to the last bit, so each case has a tolerance: some units in the last place of
float32, well below an exp in half precision, a softplus that gives up at 8, or a relative error of 1e-5 in each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from conformance.cases.draw import BF16, assemble, case, name_of
from conformance.loader import Case

ULP = 2.0**-23
UNITS = 4 * ULP  # a few in the last place of float32
EXPONENTS = [-(2.0**-k) for k in range(22, 0, -1)] + [-1.0 - 0.25 * k for k in range(70)] + [-40.0, -80.0]
STEPS = [-16.0 + 0.25 * k for k in range(161)]
GATES = [-20.0 + 0.5 * k for k in range(81)]
HALF_LIVES = [241 / 2**16, 1 / 64, 1 / 128, 5 / 2**12]
HALF_LIFE_LENGTH = 192
LONG_RATES = [-(1 + 2**-9 + 2**-11) / 4, -(1 + 2**-9 + 2**-11) / 8]  # of more bits than bfloat16 has
SIGMOID = 2.0**-25
"""How far a sigmoid may be off where it is near 0: (1 + tanh(z/2))/2 is half of what is left beside −1, where numbers
are 2^-24 apart, and of these tanh may take a neighbour. Then silu(z) is off by z times that."""
COLUMNS = 40  # beyond two tiles of 16, and no power of two


def half_a_unit(dtype: torch.dtype) -> float:
    """The most that one rounding to a dtype changes, as a part of the number, and what float32 may add."""
    return torch.finfo(dtype).eps / 2 * (1 + 2.0**-10)


def curve_cases(op: str) -> Iterator[Case]:
    softplus = {"delta_softplus" if op == "selective_scan" else "dt_softplus": True}
    plain: dict[str, bool] = dict.fromkeys(softplus, False)
    chunk = {"chunk_size": 64} if op == "ssd" else {}

    exponents = torch.tensor(EXPONENTS)
    kept = _operands(op, 2, exponents, torch.ones(len(EXPONENTS)), once=True)
    yield case(
        *(op, "accuracy", "curve of exp", "exp to a few units in the last place", kept, plain | chunk),
        relative=_by_channel(op, 4 * ULP + 2 * ULP * exponents.abs()),
        absolute=2.0**-126,
    )
    rows, read = _columns(op)
    yield case(
        *(op, "accuracy", "exp of every column", "exp to a few units in the last place, in each state column"),
        *(rows, plain | chunk),
        relative=4 * ULP + 2 * ULP * (read[:, :, None] if op == "ssd" else read.T),
        absolute=2.0**-126,
    )
    rates = -torch.tensor(HALF_LIVES)
    fading = _operands(op, HALF_LIFE_LENGTH, rates, torch.ones(len(HALF_LIVES)), once=True)
    steps = torch.arange(1, HALF_LIFE_LENGTH + 1) * 4 * ULP
    yield case(
        *(op, "accuracy", "half-life", "a decay near 1 that keeps its half-life over 192 steps", fading, plain | chunk),
        relative=steps[:, None, None] if op == "ssd" else steps,
    )
    long = _operands(op, HALF_LIFE_LENGTH, torch.tensor(LONG_RATES), torch.ones(len(LONG_RATES)), once=True)
    yield case(
        *(op, "dtype", "rates beside bfloat16", "A in float32 beside bfloat16 operands", long, plain | chunk),
        relative=2.0**-7,
        absolute=2.0**-126,
        dtype=BF16,
    )
    raw = torch.tensor(STEPS)
    driven = _operands(op, 1, torch.full((len(STEPS),), -0.0), raw, once=False)
    yield case(
        *(op, "accuracy", "curve of softplus", "softplus to a few units in the last place, also in (8, 20)"),
        *(driven, softplus | chunk),
        relative=8 * ULP,
        absolute=2.0**-22,
    )
    gates = torch.tensor(GATES)
    ones = torch.ones(len(GATES))
    gated = _operands(op, 1, torch.full((len(GATES),), -0.0), ones, once=False, z=gates[None, None, :, None])
    yield case(
        *(op, "accuracy", "curve of silu", "silu to a few units in the last place", gated, plain | chunk),
        relative=16 * ULP,
        absolute=_by_channel(op, gates.abs() * SIGMOID),
    )
    yield from (_silu_rounded_once(op, dtype, plain | chunk) for dtype in (BF16, torch.half))


def _silu_rounded_once(op: str, dtype: torch.dtype, options: dict[str, Any]) -> Case:
    """Of 3, 5 and 7 times silu a second rounding shows; z is held to what the dtype has."""
    gates = torch.tensor([gate for gate in GATES if abs(gate) < 8]).to(dtype).float()
    level = torch.full((len(gates),), -0.0)
    inputs = _operands(op, 1, level, torch.ones(len(gates)), once=False, z=gates[None, None, :, None])
    name = "u" if op == "selective_scan" else "x"
    inputs[name] = inputs[name] * torch.tensor([3.0, 5.0, 7.0])[torch.arange(len(gates)) % 3][:, None]
    return case(
        *(op, "one rounding", f"{name_of(dtype)}, curve of silu", "silu(z) is not rounded", inputs, options),
        relative=half_a_unit(dtype),
        absolute=2.0**-24,
        dtype=dtype,
    )


def _operands(op: str, length: int, A: Tensor, dt: Tensor, once: bool, **more: Tensor) -> dict[str, Tensor]:
    """A channel, or head of one channel, for each A and dt, with one column; u is 1, and 0 from the second step on if
    `once`.
    """
    width = len(A)
    u = torch.ones(1, length, width, 1)
    if once:
        u[:, 1:] = 0
    ones = torch.ones(1, length, 1, 1)
    return assemble(op, u, dt.expand(1, length, width)[..., None], A[:, None, None], ones, ones, **more)


def _columns(op: str) -> tuple[dict[str, Tensor], Tensor]:
    """One write into every column, one decay, then one column after the other is read, and how large the exponent is
    of what a position reads: (positions, channels).
    """
    exponents = torch.tensor(EXPONENTS[::13])
    length, width = COLUMNS + 2, len(exponents)
    A = exponents[(torch.arange(width)[:, None] + torch.arange(COLUMNS) * (op != "ssd")) % width]
    u, dt = torch.zeros(1, length, width, 1), torch.zeros(1, length, width, 1)
    u[:, 0], dt[:, :2] = 1, 1
    column = (torch.arange(length) - 2).clamp(min=0)
    C = torch.eye(COLUMNS)[column][None, :, None]
    return assemble(op, u, dt, A[:, None], torch.ones_like(C), C), A[:, column].abs().T


def _by_channel(op: str, values: Tensor) -> Tensor:
    """A number for each channel against y: (b, d, l) of the scan, (b, l, h, p) of ssd."""
    return values[:, None]
