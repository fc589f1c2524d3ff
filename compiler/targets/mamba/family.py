"""Hugging Face's `MambaForCausalLM`, which holds the blocks of mamba and of s4d."""

from __future__ import annotations

from compiler.artifact.config import mamba_config
from compiler.targets.family import Family, least_width, power_of_two
from compiler.targets.mamba.emit import sizes
from compiler.targets.sizes import MambaSizes


class MambaFamily(Family):
    model_type = "mamba"
    printer = "mamba"

    def size(self, blocks, n_lanes):
        least = [sizes(block, n_lanes) for block in blocks]
        inner = max(s.d_inner for s in least)
        d_model = max(least_width(n_lanes), power_of_two(-(-inner // 2)))
        state, rank = max(s.d_state for s in least), max(s.dt_rank for s in least)
        return MambaSizes(d_model, 2 * d_model, state, rank, least[0].d_conv)

    def config(self, size, vocab, layers, end, largest_step):
        sizes = {"d_model": size.d_model, "d_state": size.d_state, "dt_rank": size.dt_rank, "d_conv": size.d_conv}
        return mamba_config(vocab=vocab, layers=layers, end=end, **sizes)


FAMILY = MambaFamily()
