"""Ballast: constants in the residual stream that make RMSNorm the identity (exactness E7).

Lanes a_i·K with Σ a_i² = width fix the mean square at K², if everything else is too small
to change that sum: the norm then divides by K exactly, and its weight K multiplies back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import isqrt

import numpy as np
from scipy import sparse

from compiler.errors import CompileError
from compiler.exactness.levels import (
    BALLAST_MARGIN,
    CONSTANT,
    GATE,
    LARGEST_MARGIN,
    LARGEST_SQUARES,
    LEAST_BALLAST,
    OFF,
)
from compiler.formats import FLOAT32, Format
from compiler.ir.block import SelectiveBlock
from compiler.ir.coordinate import Coordinate
from compiler.ir.decay import KEEP


@dataclass(frozen=True)
class Ballast:
    """factors a_i (whole numbers) and the level K (a power of two)."""

    factors: tuple[float, ...]
    level: float


def squares(width: int) -> tuple[int, ...]:
    """The fewest whole numbers, largest first, whose squares add up to the width: at most four (Lagrange)."""
    if width < 1:
        raise ValueError(f"the width of a norm must be a positive integer, not {width}")
    factor = 1
    while width % 4 == 0:
        width, factor = width // 4, 2 * factor
    for count in (1, 2, 3, 4):
        for smaller in combinations_with_replacement(range(isqrt(width), 0, -1), count - 1):
            rest = width - sum(a * a for a in smaller)
            if rest > 0 and isqrt(rest) ** 2 == rest:
                return tuple(factor * a for a in sorted((*smaller, isqrt(rest)), reverse=True))
    raise AssertionError("four squares are always enough")


def choose_ballast(width: int, bounds: np.ndarray, format: Format) -> Ballast:
    """Ballast for a norm over `width` coordinates whose data stay within these bounds.

    Each a_i²K² must absorb the data on its own, because the order of the norm's sum is not ours. The sum over the
    ballast is then K² · width, of so few bits that it is exact in any order, and its mean is K².
    """
    factors = tuple(float(a) for a in squares(width))
    total = sum((Fraction(float(b)) ** 2 for b in bounds), Fraction(0))
    needed = format.absorbed * total / Fraction(factors[-1]) ** 2
    level = LEAST_BALLAST
    while Fraction(level) ** 2 < needed or level * factors[-1] < CONSTANT:
        level *= 2
    if Fraction(level) ** 2 * width >= LARGEST_SQUARES:
        reason = (
            f"the norm's ballast would need K = {level:g}, and K²·{width} must stay below 2^127, or float32 has no "
            f"room for the norm's sum of squares; {_remedy(level, width)}"
        )
        raise CompileError([(None, reason)])
    if level * factors[0] > format.largest:
        reason = (
            f"the norm's ballast would need a lane of {level * factors[0]:g}, and {format.name} ends at "
            f"{format.largest:g}; use float32"
        )
        raise CompileError([(None, reason)])
    return Ballast(factors, level)


def _remedy(level: float, width: int) -> str:
    """What fits, of counts, which no length beyond 2^24 lets grow exactly."""
    shorter = 2
    while Fraction(level / shorter) ** 2 * width >= LARGEST_SQUARES:
        shorter *= 2
    if shorter > FLOAT32.exact_integers:
        return "declare smaller bounds"
    return f"if a count is what grows, a max_length {shorter} times shorter may fit"


def with_margin(ballast: Ballast, width: int, finest: Fraction, format: Format) -> Ballast:
    """The ballast of a norm over `width` coordinates, multiples of `finest`, at up to BALLAST_MARGIN times its level.

    It absorbs data beyond the bounds that it was chosen for. So a proof from the weights may rest on coarser bounds
    than the compiler's. In float32 alone: narrower formats round the quotient, which hides more.
    """
    level = ballast.level
    for _ in range(BALLAST_MARGIN.bit_length() - 1 if format is FLOAT32 else 0):
        if Fraction(2 * level) ** 2 * width < LARGEST_MARGIN and holds_quotients(finest, 2 * level, format):
            level *= 2
    return replace(ballast, level=level)


def holds_quotients(finest: Fraction, level: float, format: Format) -> bool:
    """Whether the format holds what a norm divides by K: multiples of finest / K, of which none may be flushed to 0."""
    return finest >= Fraction(level) * Fraction(format.smallest)


def with_norm_ballast(
    blocks: Sequence[SelectiveBlock], one: int, d_inner: int, bounds: np.ndarray, format: Format
) -> tuple[list[SelectiveBlock], list[Ballast]]:
    """Mamba-2 blocks with the channels that make the gated norm over d_inner the identity; one: the lane that holds 1.

    A factor a_i is a channel of constant output a_i·K that goes to no lane. What a channel puts out is 0 or at least
    1 and is exact in p bits, so it is a multiple of 2^-p, which no K below 2^63 takes out of the format.
    """
    wider, chosen = [], []
    for block in blocks:
        ballast = choose_ballast(d_inner, block.bounds(bounds), format)
        ballast = with_margin(ballast, d_inner, Fraction(1, format.exact_integers), format)
        nowhere = sparse.csr_array((len(ballast.factors), len(block.lanes)))
        levels = np.array(ballast.factors) * ballast.level
        text = "a constant that makes the gated norm the identity"
        wider.append(with_constant_channels(block, one, levels, nowhere, "norm_ballast", text))
        chosen.append(ballast)
    return wider, chosen


def with_constant_channels(
    block: SelectiveBlock, one: int, levels: np.ndarray, out: sparse.csr_array, name: str, text: str
) -> SelectiveBlock:
    """The block with a channel of each constant output: x̂ = level (at least 32), D = 1/32, gate 32.

    one: the lane that holds 1; out: (constants × lanes), where each goes; name, text: of their coordinates.
    """
    channels, features = block.channels, block.features
    n_lanes, n_features, count = len(block.lanes), len(features.names), len(levels)

    def rows(weights) -> sparse.csr_array:
        return sparse.csr_array(
            (np.asarray(weights, dtype=float), (range(count), [one] * count)), shape=(count, n_lanes)
        )

    taps = np.zeros((count, features.taps.shape[1]))
    taps[:, 0] = 1
    places = tuple(Coordinate(f"{name}[{i}]", text=text) for i in range(count))
    more_features = replace(
        features,
        coordinates=features.coordinates + places,
        rows=sparse.csr_array(sparse.vstack([features.rows, rows(levels)])),
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
        group=None if channels.group is None else np.append(channels.group, np.full(count, -1)),
        skip=np.append(channels.skip, np.full(count, 1 / GATE)),
        gate=sparse.csr_array(sparse.vstack([channels.gate, rows(np.full(count, GATE))])),
        out=sparse.csr_array(sparse.vstack([channels.out, out])),
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
