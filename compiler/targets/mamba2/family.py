"""Hugging Face's `Mamba2ForCausalLM`, whose blocks normalise their gated output."""

from __future__ import annotations

from compiler.artifact.config import mamba2_config
from compiler.targets.family import Family, least_width
from compiler.targets.mamba2.emit import HEAD_DIMS, Mamba2Sizes, padded_channels, sizes


class Mamba2Family(Family):
    model_type = "mamba2"
    printer = "mamba2"
    inner_norm = True

    def size(self, blocks, n_lanes):
        least = [sizes(block, n_lanes) for block in blocks]
        d_model = least_width(n_lanes)
        while True:
            for headdim in HEAD_DIMS:
                # Two more heads at most hold the ballast of the gated norm.
                if all(padded_channels(block, headdim) + 2 * headdim <= 2 * d_model for block in blocks):
                    return Mamba2Sizes(d_model, 2 * d_model, max(s.d_state for s in least), headdim, least[0].d_conv)
            d_model *= 2

    def config(self, size, vocab, layers, end, largest_step):
        sizes = {"d_model": size.d_model, "d_state": size.d_state, "head_dim": size.headdim, "d_conv": size.d_conv}
        return mamba2_config(vocab=vocab, layers=layers, end=end, largest_step=largest_step, **sizes)


FAMILY = Mamba2Family()
