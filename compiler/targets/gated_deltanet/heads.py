"""Which heads of a Gated DeltaNet hold the channels of a block.

A head has one key, one query, one β and one decay. Channels of one column group share as many heads as they need, all
with the same keys. Channels without a state stand in heads that forget at every step: S = k vᵀ with k = q = e_0, which
passes v on. Every head that holds data has ballast columns a_i·K, so that its norm divides by K, and the norm's weight
K multiplies back (E7 of docs/exactness.md). A head that reflects puts out a constant or nothing, so its only channel
stands at all a_i and is the ballast itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.exactness.ballast import squares
from compiler.ir.block import SelectiveBlock
from compiler.targets.family import power_of_two
from compiler.targets.sizes import Sizes

BALLAST = 2.0**48  # K: K² absorbs the squares of more than 2^10 channels of 2^24 quanta at their levels of 32 a quantum
LEVEL = 64.0  # of constants in keys, queries and the input of β
RAISED = 2.0**16  # V of a head that reflects, in levels: beside the mean square of what it reads, ε = 1e-5 is lost
WIDEST_HEAD = 1 << 8


@dataclass(frozen=True)
class DeltaSizes(Sizes):
    """Sizes of a Gated DeltaNet: d_inner = heads · headdim columns of values, d_state rows of keys in each head.

    largest_beta: β is σ(b) times this, 1 or 2.
    """

    headdim: int
    d_conv: int = 4
    largest_beta: int = 2

    @property
    def heads(self) -> int:
        return self.d_inner // self.headdim

    @property
    def convolved(self) -> int:
        return self.d_inner + 2 * self.heads * self.d_state  # values, queries and keys


@dataclass(frozen=True, eq=False)
class Head:
    """columns: which of the block's; channels: which of the block's, at values[i] of the head each.

    beta: 0 where nothing is kept (the head passes on what it reads).
    """

    columns: np.ndarray
    channels: np.ndarray
    values: np.ndarray
    beta: float

    @property
    def reflects(self) -> bool:
        return self.beta == 2


def factors(headdim: int) -> tuple[int, ...]:
    """The a_i of the ballast in a head of so many columns: Σ a_i² = headdim."""
    return squares(headdim)


def heads_of(block: SelectiveBlock, headdim: int) -> list[Head]:
    """The heads of a block: those without a state first, then each column group's."""
    of_channels, of_columns, betas = block.heads
    found = []
    room = headdim - len(factors(headdim))
    for group in (-1, *np.unique(of_columns).tolist()):
        members = np.flatnonzero(of_channels == group)
        own = np.flatnonzero(of_columns == group)
        beta = 0.0 if group < 0 else float(betas[own[0]])
        most = 1 if beta == 2 else room
        for start in range(0, len(members), max(most, 1)):
            part = members[start : start + most]
            values = np.arange(len(part)) + (0 if beta == 2 else headdim - room)
            found.append(Head(own, part, values, beta))
    return found


def height(block: SelectiveBlock, channel: int) -> float:
    """V, the x̂ of a channel that stands for a flag: what its gate and its out row undo."""
    weights = np.abs(block.channels.out[[channel]].data)
    gate = np.abs(block.channels.gate[[channel]].data)
    return float(1 / (weights[0] * gate[0]))


def one_lane(block: SelectiveBlock) -> int:
    """The lane that holds 1."""
    return next(i for i, lane in enumerate(block.lanes) if lane.stream is ONE)


def power_of_four(n: int) -> int:
    """The least power of four that is at least n: 1/√d_k is then dyadic."""
    power = power_of_two(n)
    return power if power.bit_length() % 2 else 2 * power


def sizes(blocks: Sequence[SelectiveBlock], d_model: int, largest_beta: int) -> DeltaSizes:
    """The least sizes that hold any of the blocks: as few weights as heads of one width can have."""
    headdim, count = best_headdim(blocks)
    rows, taps = max(map(key_rows, blocks)), blocks[0].features.taps.shape[1]
    return DeltaSizes(d_model, headdim * count, rows, headdim, taps, largest_beta)


def key_rows(block: SelectiveBlock) -> int:
    """d_k: a power of four that holds the largest column group."""
    groups = np.bincount(block.heads[1]) if block.d_state else np.ones(1, dtype=int)
    return power_of_four(int(groups.max()))


def best_headdim(blocks: Sequence[SelectiveBlock]) -> tuple[int, int]:
    """(columns of values of a head, heads that hold any of the blocks): a power of two, with the fewest weights.

    A head has a row of weights for each column of its keys and queries, and two and a column for each of its values.
    """
    tried = []
    headdim, keyed = 1, max(map(key_rows, blocks))
    only_reflect = all((b.heads[0] >= 0).all() and (b.heads[2] == 2).all() for b in blocks)
    while headdim <= WIDEST_HEAD:
        if headdim > len(factors(headdim)) or only_reflect:
            count = max(1, *(len(heads_of(block, headdim)) for block in blocks))
            tried.append((count * (2 * keyed + 3 * headdim), count, headdim))
        headdim *= 2
    _, count, headdim = min(tried)
    return headdim, count
