"""Sizes of a direct sum: how wide the stream and the mixers must be to hold host and circuit side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from compiler.exactness.ballast import squares
from compiler.graft.errors import GraftError
from compiler.ir.block import SelectiveBlock
from compiler.targets.mamba import emit as mamba
from compiler.targets.mamba2 import emit as mamba2
from compiler.targets.mamba2.emit import Mamba2Sizes
from compiler.targets.sizes import MambaSizes, Sizes

MOST_WIDTH = 1 << 20


@dataclass(frozen=True)
class Widths:
    """Of one model: d_model, d_inner, d_state, taps of the convolution, and dt_rank (Mamba) or headdim (Mamba-2)."""

    d_model: int
    d_inner: int
    d_state: int
    d_conv: int
    rank: int

    @classmethod
    def of(cls, config: Any) -> Widths:
        """Of a model by its configuration."""
        inner = int(config.expand * config.hidden_size)
        rank = config.time_step_rank if config.model_type == "mamba" else config.head_dim
        return cls(config.hidden_size, inner, config.state_size, config.conv_kernel, int(rank))


def is_exact(narrow: int, wide: int) -> bool:
    """Whether √(narrow/wide) is a power of two, so that the host's norms are scaled without rounding."""
    ratio, rest = divmod(wide, narrow)
    return rest == 0 and ratio & (ratio - 1) == 0 and isqrt(ratio) ** 2 == ratio


def wide_sizes(config: Any, blocks: Sequence[SelectiveBlock], n_lanes: int, width: int | None) -> Widths:
    """The sizes of the direct sum: maxima of both, in the least d_model = 4^k · (host's d_model) that has room.

    blocks: the circuit's, its cancelling channel included; n_lanes: its lanes without the ballast. width: another
    d_model, which must have room too. GraftError names the least that would do.
    """
    host = Widths.of(config)
    expand = host.d_inner // host.d_model
    if width is not None:
        if width > MOST_WIDTH or not _fits(config, host, blocks, n_lanes, width):
            least = next(
                (w for w in range(host.d_model + n_lanes, MOST_WIDTH) if _fits(config, host, blocks, n_lanes, w)), None
            )
            raise GraftError(
                f"width is {width}, and host and circuit do not fit into it; the least that holds them is {least}."
            )
        wide = width
    else:
        wide = 4 * host.d_model
        while not _fits(config, host, blocks, n_lanes, wide):
            wide *= 4
            if wide > MOST_WIDTH:
                raise GraftError(f"host and circuit would need a d_model beyond {MOST_WIDTH}; take a smaller circuit.")
    state = max(host.d_state, *(block.d_state for block in blocks))
    conv = max(host.d_conv, *(block.features.taps.shape[1] for block in blocks))
    rank = host.rank
    if config.model_type == "mamba":
        rank = max(rank, *(mamba.sizes(block, n_lanes).dt_rank for block in blocks))
    return Widths(wide, expand * wide, state, conv, rank)


def _fits(config: Any, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int, wide: int) -> bool:
    """Room in the stream and in every mixer, whole heads, and a mean that is exact on a GPU too, where it multiplies
    by 1/d_model.
    """
    inner = host.d_inner // host.d_model * wide
    if host.d_model + n_lanes + len(squares(wide)) > wide or not _mean_is_exact(wide):
        return False
    if config.model_type == "mamba":
        return all(mamba.sizes(block, n_lanes).d_inner <= inner for block in blocks)
    room = inner - 4 * host.rank  # the ballast of the inner norm: at most four channels, in heads of their own
    fits = all(mamba2.padded_channels(block, host.rank) <= room for block in blocks)
    return inner % host.rank == 0 and fits and _mean_is_exact(inner)


def _mean_is_exact(width: int) -> bool:
    return np.float32(width) * (np.float32(1) / np.float32(width)) == np.float32(1)


def module_sizes(config: Any, wide: Widths) -> Sizes:
    """The sizes as the target's printer takes them."""
    if config.model_type == "mamba":
        return MambaSizes(wide.d_model, wide.d_inner, wide.d_state, wide.rank, wide.d_conv)
    return Mamba2Sizes(wide.d_model, wide.d_inner, wide.d_state, wide.rank, wide.d_conv)
