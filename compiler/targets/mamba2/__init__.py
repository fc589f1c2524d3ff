"""Target `mamba_ssm.Mamba2`: heads share Δ, A and D; B and C are one rectified row for each column, nothing after.

Δ is linear in the present lanes, without the convolution. Where a key or query is signed, a memory is
rewritten in non-negative columns (`signed_keys`). With n_groups, its columns are dealt out to groups (`groups`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler.gadgets.inner_product import sum_of_products
from compiler.ir.block import SelectiveBlock
from compiler.language import operations as ops
from compiler.targets.refuse import column_groups, column_steps, steps_from_features
from compiler.targets.target import KERNEL_COLUMNS, Target


class Mamba2(Target):
    name = "mamba2"
    folder = __name__
    step = "lanes"
    column = "written"
    chunk = 256
    channels_last = True
    reals = (ops.Shift, ops.Cumsum, ops.SumWhere, ops.Latch, ops.MemoryRead)
    lacks = {
        ops.SelectiveSum: "its scan adds up steps over chunks, and no error of a factor that changes is proved there",
    }

    def __init__(self, n_groups: int = 1):
        self.n_groups = n_groups
        self.max_d_state = KERNEL_COLUMNS * n_groups  # of a block: each group has as many as the kernels take

    def in_groups(self, n_groups):
        return self if n_groups == self.n_groups else Mamba2(n_groups)

    def _signed_memory(self, stream, inputs, fitter):
        value, key, query = inputs
        if min(fitter.domains.of(s).lo for s in (key, query)) >= 0:
            return None
        from compiler.targets.mamba2.signed_keys import signed_memory

        return fitter.fitted_parts(signed_memory(value, key, query))

    rewritings = {ops.Dot: sum_of_products, ops.MemoryRead: _signed_memory}

    @staticmethod
    def without_place(block: SelectiveBlock):
        yield from column_groups(block)
        yield from column_steps(block)
        yield from steps_from_features(block)
        for port, matrix in (("B", block.columns.write), ("C", block.columns.read)):
            single = (np.diff(matrix.indptr) == 1).all() and (matrix.data == 1).all()
            if not single:
                yield f"a linear map at {port}: each column must be one rectified row with weight 1"

    def sizes(self, block, n_lanes):
        from compiler.targets.mamba2 import groups
        from compiler.targets.mamba2.emit import sizes

        return sizes(block, n_lanes) if self.n_groups == 1 else groups.sizes(block, n_lanes, self.n_groups)

    def sizes_of(self, fields):
        from compiler.targets.mamba2.emit import Mamba2Sizes
        from compiler.targets.mamba2.groups import GroupedSizes

        return (GroupedSizes if "ngroups" in fields else Mamba2Sizes)(**fields)

    def packaged(self, size, block):
        """d_inner is a multiple of d_model, with the largest heads that fit into it."""
        from compiler.targets.mamba2 import groups
        from compiler.targets.mamba2.emit import HEAD_DIMS, padded_channels

        if self.n_groups > 1:
            return groups.packaged(size, block)
        inner = -(-size.d_inner // size.d_model) * size.d_model
        fits = [p for p in HEAD_DIMS if inner % p == 0 and padded_channels(block, p) <= inner]
        return replace(size, d_inner=inner, headdim=fits[0] if fits else 1)

    def emit(self, block, size, lane_in, lane_out):
        from compiler.targets.mamba2 import groups
        from compiler.targets.mamba2.emit import emit

        self.verify(block)
        if self.n_groups == 1:
            return emit(block, size, lane_in, lane_out)
        parts = groups.shares(block, self.n_groups)
        return groups.place([emit(part, size.share, lane_in, lane_out) for part in parts], size)

    def printed(self, block, size, lane_in, lane_out):
        """With groups, each of them is read back and holds its share of the block."""
        if self.n_groups == 1:
            return super().printed(block, size, lane_in, lane_out)
        from compiler.exactness.read_back import check_read_back
        from compiler.targets.mamba2 import groups

        emission = self.emit(block, size, lane_in, lane_out)
        for g, part in enumerate(groups.shares(block, self.n_groups)):
            check_read_back(self.read(groups.share_of(emission.tensors, size, g), size), part, lane_in, lane_out)
        return emission

    def read(self, tensors, size):
        from compiler.targets.mamba2.read import read

        return read(tensors, size.headdim)

    def module(self, size, index):
        from compiler.runtime import real_block
        from compiler.targets.mamba2.groups import GroupedSizes

        arguments = {"d_state": size.d_state, "d_conv": size.d_conv, "expand": size.d_inner // size.d_model}
        arguments |= {"ngroups": size.ngroups} if isinstance(size, GroupedSizes) else {}
        return real_block("mamba2", size.d_model, index, arguments | {"headdim": size.headdim, "rmsnorm": False})

    def seats(self, block, module):
        from compiler.targets.mamba2.emit import channel_seats

        if self.n_groups > 1:
            raise ValueError(
                f"with n_groups = {self.n_groups} a channel stands in every group; n_groups=1 shows one place"
            )
        return channel_seats(block, module.headdim)

    def convolved(self, size):
        """B and C are convolved as x is."""
        return size.d_inner + 2 * self.n_groups * size.d_state

    def projected(self, size):
        return size.d_inner + self.convolved(size) + size.d_inner // size.headdim

    def runs(self, module):
        from compiler.runtime import is_real_block

        return is_real_block(module, "mamba2")

    def state_shape(self, module):
        return module.nheads, module.headdim, module.d_state

    def advance(self, module, u, window, state):
        from compiler.targets.mamba2.chunk import mamba2_chunk

        return mamba2_chunk(module, u, window, state)

    def inside(self, module, u):
        from compiler.targets.mamba2.inside import mamba2_inside

        return mamba2_inside(module, u)

    @property
    def family(self):
        from compiler.targets.mamba2.family import FAMILY, Mamba2Family

        return FAMILY if self.n_groups == 1 else Mamba2Family(self.n_groups)


TARGET = Mamba2()
