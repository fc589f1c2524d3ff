"""Gadget of sums of products of real numbers, behind a real gate."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from compiler.analysis.domains import Domains
from compiler.analysis.scale import half_scale
from compiler.errors import CompileError
from compiler.exactness.levels import GATE, HALF, LARGEST_RATE, LARGEST_SCALED_SUM, ON
from compiler.gadgets.gadget import Entry, Gadget, Operands
from compiler.gadgets.parts import column_gain, constant_column, places, read_gain, targets
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lattice.domain import power_of_two
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.ports import CONSTANT_COLUMN, Ports


class ScaledSum(Gadget):
    """gate·Σ value·weight in a state that never fades: Δ = softplus(±R·weight), x̂ = half(value), z = ±S·gate.

    softplus(u) − softplus(−u) = u, so the four channels (Δ±, z±) of each half of the value sum to R·S times
    the product. The step is right within an absolute error of about 2^−22/R of the weight (softplus of a small
    number is near ln 2), so R is as large as the range of float32 leaves room for. Exact on integers.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        value, weight, gate = stream.inputs
        return [(value, "written"), (weight, "linear"), (gate, "lanes")]

    def column_group(self, stream: Stream) -> tuple:
        return CONSTANT_COLUMN

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        value, weight, gate = stream.inputs
        constant_column(builder)
        ids, unit = builder.written(value, wanted)
        level = half_scale(builder.domains.of(gate), HALF)
        rate = step_rate(stream, builder.domains)
        row = builder.on_lanes(gate, np.flatnonzero(wanted))
        target = targets(stream, wanted, builder)
        gain = column_gain(builder) * ON * GATE / (rate * level)
        for step_sign in (1.0, -1.0):
            delta = _steps(builder, weight, wanted, step_sign * rate)
            for gate_sign in (1.0, -1.0):
                out = (target, step_sign * gate_sign * unit * gain)
                z = (row * gate_sign * level).tocsr()
                builder.add_channels(places(stream, wanted), ids, out, z, real_gate=True, real_step=True, **delta)

    def claims(self, stream: Stream, domains: Domains) -> Iterator[tuple[str, Fraction]]:
        value, weight = (domains.of(s) for s in stream.inputs[:2])
        if value.step * weight.step:
            yield "its state", domains.sum_bound(stream) / (value.step * weight.step)

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        return [Entry(None, np.arange(count), 0, read_gain(target))]


def step_rate(stream: Stream, domains: Domains) -> float:
    """R of a scaled sum: the largest power of two up to 2^60 that leaves a factor of 2^8 below the largest float32."""
    gate = domains.of(stream.inputs[2])
    reach = max(domains.sum_bound(stream), Fraction(1)) * max(gate.bound, Fraction(1)) * HALF**2
    scale = Fraction(operation_of(stream.inputs[0], ops.Half).scale) * Fraction(half_scale(gate, HALF)) / HALF**2
    rate = min(LARGEST_RATE, LARGEST_SCALED_SUM / power_of_two(reach * scale))
    if rate < HALF:
        reason = f"its sums can reach {float(reach / HALF**2):.3g}, which leaves no range for Δ; declare smaller bounds"
        raise CompileError([(stream, reason)])
    return float(rate)


def _steps(builder: BlockBuilder, weight: Stream, wanted: np.ndarray, rate: float) -> dict:
    """The Δ port of one channel per wanted number: rate·weight."""
    parts, bias = builder.linear(weight, np.flatnonzero(wanted))
    return {"delta_features": [(row, feature, rate * w) for row, feature, w in parts], "delta_bias": rate * bias}
