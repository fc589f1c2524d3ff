"""Hugging Face's `MambaForCausalLM`, which holds the blocks of mamba and of s4d."""

from __future__ import annotations

from typing import Any

from compiler.targets.family import (
    Config,
    Family,
    Shape,
    checked_size,
    common_arguments,
    common_config,
    common_sizes,
    least_width,
    power_of_two,
)
from compiler.targets.mamba.emit import sizes
from compiler.targets.sizes import MambaSizes


class MambaFamily(Family):
    model_type = "mamba"
    class_name = "MambaForCausalLM"
    printer = "mamba"
    warnings = (
        "Continue a sequence token by token or compute it in one pass: continuing from a cache with several tokens "
        "at once is wrong for Mamba in transformers itself, whatever the weights.",
        "Give cached steps of your own no attention mask: transformers multiplies the step by the mask of the whole "
        "prompt, and padding in front then changes it. `generate()` gives none.",
    )

    def size(self, blocks, n_lanes):
        least = [sizes(block, n_lanes) for block in blocks]
        inner = max(s.d_inner for s in least)
        d_model = max(least_width(n_lanes), power_of_two(-(-inner // 2)))
        state, rank = max(s.d_state for s in least), max(s.dt_rank for s in least)
        return MambaSizes(d_model, 2 * d_model, state, rank, least[0].d_conv)

    def config(self, size, vocab, layers, end, largest_step):
        sizes = {"d_model": size.d_model, "d_state": size.d_state, "dt_rank": size.dt_rank, "d_conv": size.d_conv}
        return mamba_config(vocab=vocab, layers=layers, end=end, **sizes)

    def rewritten(self, config):
        return mamba_config(dt_rank=config["time_step_rank"], **common_sizes(config))

    def mixer_shapes(self, config: Config) -> dict[str, Shape]:
        """x_proj rows are [dt; B; C], in_proj rows [x; z]."""
        width, inner = config["hidden_size"], config["expand"] * config["hidden_size"]
        states, rank = config["state_size"], config["time_step_rank"]
        return {
            "A_log": (inner, states),
            "D": (inner,),
            "conv1d.weight": (inner, 1, config["conv_kernel"]),
            "conv1d.bias": (inner,),
            "dt_proj.weight": (inner, rank),
            "dt_proj.bias": (inner,),
            "in_proj.weight": (2 * inner, width),
            "out_proj.weight": (width, inner),
            "x_proj.weight": (rank + 2 * states, inner),
        }

    def convolved(self, config):
        return config["intermediate_size"]

    def module(self, config, index):
        from compiler.runtime import real_block

        arguments = common_arguments(config) | {"dt_rank": config["time_step_rank"]}
        return real_block("mamba", config["hidden_size"], index, arguments)


def mamba_config(
    *,
    vocab: int,
    d_model: int,
    d_state: int,
    dt_rank: int,
    layers: int,
    d_conv: int = 4,
    expand: int = 2,
    end: int | None = None,
) -> dict[str, Any]:
    """config.json of a `MambaForCausalLM`; raises CheckpointError for a size that is not a positive integer.

    `expand=2` is the only value that llama.cpp reads.
    """
    return common_config(FAMILY, vocab, d_model, d_state, layers, d_conv, expand, end) | {
        "time_step_rank": checked_size("dt_rank", dt_rank),
    }


FAMILY = MambaFamily()
