"""Hugging Face's `Mamba2ForCausalLM`, whose blocks normalise their gated output."""

from __future__ import annotations

from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.targets.family import (
    Config,
    Family,
    Shape,
    checked_size,
    common_arguments,
    common_config,
    common_sizes,
    least_width,
)
from compiler.targets.mamba2.emit import HEAD_DIMS, Mamba2Sizes, padded_channels, sizes

# Upper limits of the steps that act like infinity and are plain JSON, which all versions read. The first is held by
# every dtype (clamping float16 steps at more raises an error), the second is beyond every float32 step of ours.
NO_STEP_LIMIT, NO_LARGE_STEP_LIMIT = 65504.0, 1e30
LARGEST_CHUNK = 1 << 14  # programs pad every sequence to a multiple of chunk_size
CHUNK = 64  # transformers' own scan takes memory and time with its square, on a CPU, also for a prompt of one letter


class Mamba2Family(Family):
    model_type = "mamba2"
    class_name = "Mamba2ForCausalLM"
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

    def rewritten(self, config):
        sizes = common_sizes(config)
        step = NO_STEP_LIMIT if config["time_step_limit"] == [0.0, NO_LARGE_STEP_LIMIT] else 0.0
        chunk = checked_size("chunk_size", config["chunk_size"])
        if chunk > LARGEST_CHUNK:
            raise CheckpointError(f"chunk_size must be at most {LARGEST_CHUNK}, not {chunk}.")
        return mamba2_config(head_dim=config["head_dim"], chunk_size=chunk, largest_step=step, **sizes)

    def mixer_shapes(self, config: Config) -> dict[str, Shape]:
        """in_proj rows are [z; x; B; C; dt], convolved channels [x; B; C]."""
        width, inner = config["hidden_size"], config["expand"] * config["hidden_size"]
        heads, convolved = config["num_heads"], inner + 2 * config["n_groups"] * config["state_size"]
        return {
            "A_log": (heads,),
            "D": (heads,),
            "dt_bias": (heads,),
            "conv1d.weight": (convolved, 1, config["conv_kernel"]),
            "conv1d.bias": (convolved,),
            "in_proj.weight": (inner + convolved + heads, width),
            "norm.weight": (inner,),
            "out_proj.weight": (width, inner),
        }

    def convolved(self, config):
        return config["intermediate_size"] + 2 * config["n_groups"] * config["state_size"]

    def module(self, config, index):
        from compiler.runtime import real_block

        heads = {"headdim": config["head_dim"], "ngroups": config["n_groups"], "chunk_size": config["chunk_size"]}
        return real_block("mamba2", config["hidden_size"], index, common_arguments(config) | heads)


def mamba2_config(
    *,
    vocab: int,
    d_model: int,
    d_state: int,
    head_dim: int,
    layers: int,
    d_conv: int = 4,
    expand: int = 2,
    chunk_size: int = CHUNK,
    end: int | None = None,
    largest_step: float = 0.0,
) -> dict[str, Any]:
    """config.json of a `Mamba2ForCausalLM` with one group of B and C; `largest_step` bounds every Δ of the weights.

    Raises CheckpointError for a size that is not a positive integer or a `head_dim` that does not divide
    expand · d_model.
    """
    config = common_config(FAMILY, vocab, d_model, d_state, layers, d_conv, expand, end)
    heads, rest = divmod(config["intermediate_size"], checked_size("head_dim", head_dim))
    if rest:
        raise CheckpointError(f"head_dim {head_dim} does not divide expand * d_model = {expand * d_model}.")
    return config | {
        "chunk_size": checked_size("chunk_size", chunk_size),
        "head_dim": head_dim,
        "n_groups": 1,
        "num_heads": heads,
        "time_step_limit": [0.0, NO_STEP_LIMIT if largest_step < NO_STEP_LIMIT else NO_LARGE_STEP_LIMIT],
        "time_step_rank": -(-d_model // 16),  # read into the config by Hugging Face, used by nothing in Mamba-2
    }


FAMILY = Mamba2Family()
