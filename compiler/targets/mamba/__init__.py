"""Target `mamba_ssm.Mamba`: Δ, B and C are linear in x̂, and every channel has a step of its own."""

from __future__ import annotations

from compiler.ir.block import SelectiveBlock
from compiler.language.operations import Operation
from compiler.targets.refuse import column_steps, steps_from_lanes
from compiler.targets.sizes import MambaSizes
from compiler.targets.target import KERNEL_COLUMNS, Target


class Mamba(Target):
    name = "mamba"
    folder = __name__
    step = "linear"
    column = "linear"
    max_d_state = KERNEL_COLUMNS
    counts = True
    sums = True
    reals = (Operation,)

    @staticmethod
    def without_place(block: SelectiveBlock):
        yield from column_steps(block)
        yield from steps_from_lanes(block)

    def sizes_of(self, fields):
        return MambaSizes(**fields)

    def module(self, size, index):
        from compiler.runtime import real_block

        expand = (size.d_inner + 0.5) / size.d_model  # the half keeps int() from rounding down past d_inner
        arguments = {"d_state": size.d_state, "d_conv": size.d_conv, "expand": expand, "dt_rank": size.dt_rank}
        return real_block("mamba", size.d_model, index, arguments)

    def runs(self, module):
        from compiler.runtime import is_real_block

        return is_real_block(module, "mamba")

    def advance(self, module, u, window, state):
        from compiler.targets.mamba.chunk import mamba_chunk

        return mamba_chunk(module, u, window, state)

    def inside(self, module, u):
        from compiler.targets.mamba.inside import mamba_inside

        return mamba_inside(module, u)

    @property
    def family(self):
        from compiler.targets.mamba.family import FAMILY

        return FAMILY


TARGET = Mamba()
