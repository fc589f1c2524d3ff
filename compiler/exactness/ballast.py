"""Ballast: constants in the residual stream that make RMSNorm the identity (exact-arithmetic E7).

Lanes a_i·K with Σ a_i² = width fix the mean square at K², if everything else is too small
to change that sum: the norm then divides by K exactly, and its weight K multiplies back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.linear_form import ONE
from compiler.driver import Compiled
from compiler.errors import CompileError
from compiler.exactness.levels import GATE, LARGEST_SQUARES, LEAST_BALLAST, OFF
from compiler.exactness.sums import channel_bounds
from compiler.formats import Format
from compiler.ir.block import SelectiveBlock
from compiler.ir.coordinate import Coordinate
from compiler.ir.decay import KEEP


@dataclass(frozen=True)
class Ballast:
    """factors a_i (powers of two) and the level K (a power of two)."""

    factors: tuple[float, ...]
    level: float


def choose_ballast(width: int, bounds: np.ndarray, format: Format) -> Ballast:
    """Ballast for a norm over `width` coordinates (a power of two) whose data stay within these bounds.

    One lane √width if that is a power of two, else two lanes √(width/2). Each a_i²K² must
    absorb the data on its own, because the order of the norm's sum is not ours.
    """
    exponent = width.bit_length() - 1
    factors = (2.0 ** (exponent // 2),) * (1 if exponent % 2 == 0 else 2)
    squares = sum((Fraction(float(b)) ** 2 for b in bounds), Fraction(0))
    needed = format.absorbed * squares / Fraction(factors[0]) ** 2
    level = LEAST_BALLAST
    while Fraction(level) ** 2 < needed:
        level *= 2
    if Fraction(level) ** 2 * width >= LARGEST_SQUARES:
        raise CompileError(
            [
                (
                    None,
                    (
                        f"the norm's ballast would need K = {level:g}, and K²·{width} must stay "
                        "below 2^127; shorten max_length"
                    ),
                )
            ]
        )
    if level * factors[0] > format.largest:
        reason = (
            f"the norm's ballast would need a lane of {level * factors[0]:g}, and {format.name} ends at "
            f"{format.largest:g}; use float32"
        )
        raise CompileError([(None, reason)])
    return Ballast(factors, level)


def with_norm_ballast(
    compiled: Compiled, d_inner: int, bounds: np.ndarray, format: Format
) -> tuple[list[SelectiveBlock], list[Ballast]]:
    """Mamba-2 blocks with the channels that make the gated norm over d_inner the identity."""
    blocks, chosen = [], []
    for block in compiled.blocks:
        ballast = choose_ballast(d_inner, channel_bounds(block, bounds), format)
        blocks.append(_with_constant_channels(block, compiled, ballast))
        chosen.append(ballast)
    return blocks, chosen


def _with_constant_channels(block: SelectiveBlock, compiled: Compiled, ballast: Ballast) -> SelectiveBlock:
    """The block with a channel of constant output a_i·K for each factor: x̂ = a_i·K, D = 1/32, gate 32."""
    channels, features = block.channels, block.features
    one = int(compiled.lanes.index[ONE][0])
    n_lanes, n_features, count = compiled.lanes.count, len(features.names), len(ballast.factors)

    def rows(weights) -> sparse.csr_array:
        return sparse.csr_array(
            (np.asarray(weights, dtype=float), (range(count), [one] * count)), shape=(count, n_lanes)
        )

    taps = np.zeros((count, features.taps.shape[1]))
    taps[:, 0] = 1
    places = tuple(
        Coordinate(f"norm_ballast[{i}]", text="a constant that makes the gated norm the identity") for i in range(count)
    )
    more_features = replace(
        features,
        coordinates=features.coordinates + places,
        rows=sparse.csr_array(sparse.vstack([features.rows, rows(np.array(ballast.factors) * ballast.level)])),
        taps=np.vstack([features.taps, taps]),
        bias=np.append(features.bias, np.zeros(count)),
    )
    wider = lambda m, extra: sparse.csr_array(sparse.vstack([_widened(m, n_features + count), extra]))
    more_channels = replace(
        channels,
        coordinates=channels.coordinates + places,
        feature=np.append(channels.feature, n_features + np.arange(count)),
        delta_features=wider(channels.delta_features, sparse.csr_array((count, n_features + count))),
        delta_lanes=sparse.csr_array(sparse.vstack([channels.delta_lanes, sparse.csr_array((count, n_lanes))])),
        delta_bias=np.append(channels.delta_bias, np.full(count, OFF)),
        decay=channels.decay + (KEEP,) * count,
        skip=np.append(channels.skip, np.full(count, 1 / GATE)),
        gate=sparse.csr_array(sparse.vstack([channels.gate, rows(np.full(count, GATE))])),
        out=sparse.csr_array(sparse.vstack([channels.out, sparse.csr_array((count, n_lanes))])),
    )
    columns = block.columns
    more_columns = replace(
        columns, write=_widened(columns.write, n_features + count), read=_widened(columns.read, n_features + count)
    )
    return SelectiveBlock(more_features, more_channels, more_columns, block.lanes)


def _widened(matrix: sparse.csr_array, width: int) -> sparse.csr_array:
    wide = matrix.copy()
    wide.resize(matrix.shape[0], width)
    return wide
