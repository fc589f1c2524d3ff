"""Gadgets of numbers that need not lie on a lattice: inner products and scaled sums.

They are exact on integers and right within the error bounds that their docstrings state on
real numbers; products of two are in `gadgets.product`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from compiler.analysis.domains import Domains, power_of_two
from compiler.analysis.scale import half_scale
from compiler.errors import CompileError
from compiler.exactness.levels import GATE, HALF, LARGEST_RATE, LARGEST_SCALED_SUM, ON
from compiler.gadgets.parts import column_entries, column_gain, constant_column, names, targets
from compiler.ir.builder import BlockBuilder
from compiler.language.stream import Stream


def inner_product(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Σ_n a_n·b_n in one channel: x̂ = 32 everywhere, B = a/128, C = b/32, Δ = 128 and A = −1.

    Δ·|A| = 128 erases the state at every position, so h_n = 128·(a_n/128)·32 and y = Σ a_n b_n; gate 32.
    B and C are linear in x̂, hence signed.
    """
    a, b = stream.inputs
    write = [(r, f, w / ON) for r, f, w in column_entries(builder, a)]
    read = [(r, f, w / GATE) for r, f, w in column_entries(builder, b)]
    builder.set_columns([f"{stream.label}.column[{n}]" for n in range(a.width)], write, read)
    out = (targets(stream, wanted, builder), np.array([1 / GATE]))
    builder.add_channels(
        names(stream, wanted), np.array([builder.constant()]), out, builder.always_open(1, GATE), ON, decay=1.0
    )


def scaled_sum(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """gate·Σ value·weight in a state that never fades: Δ = softplus(±R·weight), x̂ = half(value), z = ±S·gate.

    softplus(u) − softplus(−u) = u, so the four channels (Δ±, z±) of each half of the value sum to R·S times
    the product. The step is right within an absolute error of about 2^−22/R of the weight (softplus of a small
    number is near ln 2), so R is as large as the range of float32 leaves room for.
    """
    value, weight, gate = stream.inputs
    constant_column(builder)
    ids, unit = builder.written(value, wanted)
    level = half_scale(builder.domains.of(gate), HALF)
    rate = step_rate(stream, builder.domains)
    row = builder.on_lanes(gate)[np.flatnonzero(wanted)]
    target = targets(stream, wanted, builder)
    gain = column_gain(builder) * ON * GATE / (rate * level)
    for step_sign in (1.0, -1.0):
        delta = _steps(builder, weight, wanted, step_sign * rate)
        for gate_sign in (1.0, -1.0):
            out = (target, step_sign * gate_sign * unit * gain)
            z = (row * gate_sign * level).tocsr()
            builder.add_channels(names(stream, wanted), ids, out, z, real_gate=True, real_step=True, **delta)


def step_rate(stream: Stream, domains: Domains) -> float:
    """R of a scaled sum: the largest power of two up to 2^60 that leaves a factor of 2^8 below the largest float32."""
    gate = domains.of(stream.inputs[2])
    reach = max(domains.sum_bound(stream), Fraction(1)) * max(gate.bound, Fraction(1)) * HALF**2
    scale = Fraction(stream.inputs[0].operation.scale) * Fraction(half_scale(gate, HALF)) / HALF**2
    rate = min(LARGEST_RATE, LARGEST_SCALED_SUM / power_of_two(reach * scale))
    if rate < HALF:
        raise CompileError(
            [
                (
                    stream,
                    f"its sums can reach {float(reach / HALF**2):.3g}, which leaves no range for Δ; declare smaller bounds",
                )
            ]
        )
    return float(rate)


def _steps(builder: BlockBuilder, weight: Stream, wanted: np.ndarray, rate: float) -> dict:
    """The Δ port of one channel per wanted number: rate·weight."""
    rows = np.flatnonzero(wanted)
    seat = np.full(weight.width, -1)
    seat[rows] = np.arange(len(rows))
    parts, bias = builder.linear(weight)
    entries = [(seat[r][seat[r] >= 0], f[seat[r] >= 0], rate * w[seat[r] >= 0]) for r, f, w in parts]
    return {"delta_features": entries, "delta_bias": rate * bias[rows]}
