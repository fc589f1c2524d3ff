"""Blocks in a Mamba-2 of several groups: each group has B and C of its own, and so holds a share of the columns.

Channel c of a block gives y_c = Σ_n C_n h_cn + D_c x̂_c. The columns n are dealt out to the groups, in order. A channel
that writes stands in every group, over the columns of that group; what leaves it is added up by out_proj, behind equal
gates. D, and channels that never write, stand in the first group alone. So each group is a block that a Mamba-2 of one
group holds (`share`), and the tensors of all are one module's (`place`): d_state is that of the block divided by the
groups, and no number is rounded that was not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from compiler.ir.block import SelectiveBlock
from compiler.layout import Axis, Emission, Layout
from compiler.targets.mamba2.emit import HEAD_DIMS, Mamba2Sizes, padded_channels


@dataclass(frozen=True)
class GroupedSizes(Mamba2Sizes):
    """Sizes of a Mamba2 whose d_inner channels stand in ngroups groups, each with d_state columns of its own."""

    ngroups: int = 1

    @property
    def convolved(self) -> int:
        return self.d_inner + 2 * self.ngroups * self.d_state

    @property
    def share(self) -> Mamba2Sizes:
        """The sizes of one group alone."""
        return Mamba2Sizes(self.d_model, self.d_inner // self.ngroups, self.d_state, self.headdim, self.d_conv)


def shares(block: SelectiveBlock, n_groups: int) -> list[SelectiveBlock]:
    """The block as one block for each group, over the same lanes; what they add to the lanes is what the block does."""
    each = -(-block.d_state // n_groups)
    everyone, writers = np.arange(len(block.channels.names)), np.flatnonzero(block.channels.writes)
    return [_share(block, writers if g else everyone, g * each, (g + 1) * each, g == 0) for g in range(n_groups)]


def _share(block: SelectiveBlock, kept: np.ndarray, start: int, stop: int, first: bool) -> SelectiveBlock:
    channels, columns = block.channels, block.columns
    place = {int(c): i for i, c in enumerate(kept)}
    of = lambda marked: frozenset(place[c] for c in marked if c in place)
    return replace(
        block,
        channels=replace(
            channels,
            coordinates=tuple(channels.coordinates[c] for c in kept),
            feature=channels.feature[kept],
            delta_features=channels.delta_features[kept],
            delta_lanes=channels.delta_lanes[kept],
            delta_bias=channels.delta_bias[kept],
            decay=tuple(channels.decay[c] for c in kept),
            skip=channels.skip[kept] if first else np.zeros(len(kept)),
            gate=channels.gate[kept],
            out=channels.out[kept],
            real_gates=of(channels.real_gates),
            real_steps=of(channels.real_steps),
            curved_gates=of(channels.curved_gates),
        ),
        columns=replace(
            columns,
            coordinates=columns.coordinates[start:stop],
            write=columns.write[start:stop],
            read=columns.read[start:stop],
        ),
    )


def sizes(block: SelectiveBlock, n_lanes: int, n_groups: int) -> GroupedSizes:
    """The least sizes of a Mamba2 with so many groups that holds the block."""
    parts = shares(block, n_groups)
    least = _channels(parts, 1)
    headdim = next(p for p in HEAD_DIMS if _channels(parts, p) == least)
    columns = max(1, *(part.d_state for part in parts))
    return GroupedSizes(n_lanes, n_groups * least, columns, headdim, block.features.taps.shape[1], n_groups)


def packaged(size: GroupedSizes, block: SelectiveBlock) -> GroupedSizes:
    """d_inner a multiple of d_model and of the groups, with the largest heads that fit into each group."""
    step = int(np.lcm(size.d_model, size.ngroups))
    inner = -(-size.d_inner // step) * step
    group, parts = inner // size.ngroups, shares(block, size.ngroups)
    headdim = next(p for p in HEAD_DIMS if group % p == 0 and _channels(parts, p) <= group)
    return replace(size, d_inner=inner, headdim=headdim)


def _channels(parts: Sequence[SelectiveBlock], headdim: int) -> int:
    """How many channels each group needs, in whole heads."""
    return max(1, *(padded_channels(part, headdim) for part in parts))


def place(shares: Sequence[Emission], size: GroupedSizes) -> Emission:
    """One module out of what is printed for each group."""
    where = [_places(size, g) for g in range(size.ngroups)]
    tensors, axes = {}, {}
    for name, share in shares[0].tensors.items():
        of_group = [at[name] for at in where]
        shape = [n if d is None else size.ngroups * len(d) for d, n in zip(of_group[0], share.shape, strict=True)]
        whole = torch.zeros(shape)
        for emission, at in zip(shares, of_group, strict=True):
            grid = [np.arange(n) if a is None else a for a, n in zip(at, shape, strict=True)]
            whole[np.ix_(*grid)] = emission.tensors[name]
        tensors[name] = whole
        axes[name] = tuple(
            _axis([e.layout.axes[name][d] for e in shares], [at[d] for at in of_group]) for d in range(len(shape))
        )
    return Emission(tensors, Layout(axes))


def share_of(tensors: Mapping[str, Tensor], size: GroupedSizes, group: int) -> dict[str, Tensor]:
    """The tensors that one group of a module computes with: a Mamba2 of one group."""
    found = {}
    for name, tensor in tensors.items():
        at = _places(size, group)[name]
        for axis, places in enumerate(at):
            tensor = tensor if places is None else tensor.index_select(axis, torch.from_numpy(places))
        found[name] = tensor
    return found


def _axis(parts: Sequence[Axis], places: Sequence[np.ndarray | None]) -> Axis:
    if places[0] is None:
        return parts[0]
    found = {int(at[i]): c for part, at in zip(parts, places, strict=True) for i, c in part.places.items()}  # type: ignore[index]
    return replace(parts[0], size=sum(part.size for part in parts), places=found)


def _places(size: GroupedSizes, group: int) -> dict[str, tuple[np.ndarray | None, ...]]:
    """Where the indices of a group's own tensors stand in the module's, by axis; None: all groups share the axis.

    in_proj rows are [z; x; B; C; dt], convolved channels [x; B; C], and each of these parts goes by group.
    """
    inner, n, heads = size.share.d_inner, size.d_state, size.share.d_inner // size.headdim

    def at(*parts: int) -> np.ndarray:
        ends = np.cumsum([0, *parts])
        spans = zip(ends, parts, strict=False)
        return np.concatenate([size.ngroups * end + group * part + np.arange(part) for end, part in spans])

    convolved, head = at(inner, n, n), at(heads)
    return {
        "in_proj.weight": (at(inner, inner, n, n, heads), None),
        "conv1d.weight": (convolved, None, None),
        "conv1d.bias": (convolved,),
        "dt_bias": (head,),
        "A_log": (head,),
        "D": (head,),
        "norm.weight": (at(inner),),
        "out_proj.weight": (None, at(inner)),
    }
