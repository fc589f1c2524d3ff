"""Hugging Face's `Mamba2ForCausalLM`, whose blocks normalise their gated output."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
import torch

from compiler.artifact.errors import CheckpointError
from compiler.errors import CompileError
from compiler.exactness.ballast import with_norm_ballast
from compiler.ir.block import SelectiveBlock
from compiler.layout import Emission, Layout
from compiler.targets.family import (
    Config,
    Family,
    Printer,
    Shape,
    checked_size,
    common_arguments,
    common_config,
    common_sizes,
    least_width,
)
from compiler.targets.mamba2.emit import HEAD_DIMS, padded_channels, sizes
from compiler.targets.mamba2.groups import GroupedSizes, place, shares
from compiler.targets.target import KERNEL_WIDTH

# Upper limits of the steps that act like infinity and are plain JSON, which all versions read. The first is held by
# every dtype (clamping float16 steps at more raises an error), the second is beyond every float32 step of ours.
NO_STEP_LIMIT, NO_LARGE_STEP_LIMIT = 65504.0, 1e30
LARGEST_CHUNK = 256  # as the checker has it: transformers' own default, and what longer ones take see CHUNK
CHUNK = 64  # transformers' own scan takes memory and time with its square, on a CPU, also for a prompt of one letter


def kernel_columns(columns: int, n_groups: int) -> int:
    """The least d_state from this one on with which B and C of all groups have whole `KERNEL_WIDTH`s of channels."""
    step = KERNEL_WIDTH // gcd(KERNEL_WIDTH, 2 * n_groups)
    return -(-columns // step) * step


class Mamba2Family(Family):
    model_type = "mamba2"
    class_name = "Mamba2ForCausalLM"
    printer = "mamba2"
    warnings = (
        "On a GPU set TRITON_F32_DEFAULT=ieee before mamba_ssm's kernels are first run: by default Triton multiplies "
        "in TF32, which holds integers up to 2^11 only.",
    )

    def __init__(self, n_groups: int = 1):
        self.n_groups = n_groups

    def size(self, blocks, n_lanes):
        """d_inner = 2 · d_model is a power of two, and must be a multiple of the groups, so these are one too.

        Columns are added, and smaller heads taken, until the CUDA kernels can read what in_proj gives.
        """
        parts = [part for block in blocks for part in shares(block, self.n_groups)]
        least = [sizes(part, n_lanes) for part in parts]
        if self.n_groups & (self.n_groups - 1):
            power = 1 << self.n_groups.bit_length()
            reason = (
                f"n_groups is {self.n_groups}, and d_inner of a language model is a power of two, of which each group "
                f"takes the same share; n_groups={power} is the next that can be saved (the bare stack takes any)"
            )
            raise CompileError([(None, reason)])
        columns = kernel_columns(max(s.d_state for s in least), self.n_groups)
        d_model = least_width(n_lanes)
        while not (headdims := self._headdims(parts, 2 * d_model)):
            d_model *= 2
        return GroupedSizes(d_model, 2 * d_model, columns, headdims[0], least[0].d_conv, self.n_groups)

    def _headdims(self, parts: Sequence[SelectiveBlock], inner: int) -> list[int]:
        """The sizes of heads that fit into d_inner: those first with which the kernels can read in_proj's rows."""
        group = inner // self.n_groups
        # Two more heads at most hold the ballast of the gated norm of each group.
        fits = [p for p in HEAD_DIMS if all(padded_channels(part, p) + 2 * p <= group for part in parts)]
        return sorted(fits, key=lambda headdim: inner // headdim % KERNEL_WIDTH != 0)

    def mixer(self, printer, block, size, one, bounds, format):
        """Each group is a Mamba-2 of one group whose gated norm its own ballast makes the identity."""
        parts = shares(block, size.ngroups)
        if len(parts) > 1 and (block.channels.skip[block.channels.writes] < 0).any():
            raise CompileError([(None, "with n_groups > 1 a state may exceed what it and a negative D add up to")])
        return place([self._share(printer, part, size.share, one, bounds, format) for part in parts], size)

    def _share(self, printer: Printer, block, size, one, bounds, format) -> Emission:
        (wider,), (ballast,) = with_norm_ballast([block], one, size.d_inner, bounds, format)
        lanes = np.arange(len(block.lanes))
        emission = printer.printed(wider, size, lanes, lanes)
        seats = printer.seats(wider, size)[: len(block.channels.names)]
        weight = torch.zeros(size.d_inner)
        weight[torch.from_numpy(seats)] = ballast.level
        layout = emission.layout | Layout({"norm.weight": (emission.layout.axes["out_proj.weight"][1],)})
        return Emission(emission.tensors | {"norm.weight": weight}, layout)

    def cautions(self, config):
        if config["n_groups"] == 1:
            return self.warnings
        return (
            *self.warnings,
            "Not for transformers up to 5.0 and mlx-lm: their norm is over all groups at once, which is wrong here.",
        )

    def config(self, size, vocab, layers, end, largest_step):
        sizes = {"d_model": size.d_model, "d_state": size.d_state, "head_dim": size.headdim, "d_conv": size.d_conv}
        sizes["n_groups"] = self.n_groups
        return mamba2_config(vocab=vocab, layers=layers, end=end, largest_step=largest_step, **sizes)

    def rewritten(self, config):
        sizes = common_sizes(config)
        step = NO_STEP_LIMIT if config["time_step_limit"] == [0.0, NO_LARGE_STEP_LIMIT] else 0.0
        chunk = checked_size("chunk_size", config["chunk_size"])
        if chunk > LARGEST_CHUNK:
            raise CheckpointError(f"chunk_size must be at most {LARGEST_CHUNK}, not {chunk}.")
        sizes |= {"head_dim": config["head_dim"], "n_groups": config["n_groups"]}
        return mamba2_config(chunk_size=chunk, largest_step=step, **sizes)

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
    n_groups: int = 1,
    chunk_size: int = CHUNK,
    end: int | None = None,
    largest_step: float = 0.0,
) -> dict[str, Any]:
    """config.json of a `Mamba2ForCausalLM` with n_groups of B and C; `largest_step` bounds every Δ of the weights.

    Raises CheckpointError for a size that is not a positive integer, a `head_dim` that does not divide
    expand · d_model, or groups that do not divide the heads.
    """
    config = common_config(FAMILY, vocab, d_model, d_state, layers, d_conv, expand, end)
    heads, rest = divmod(config["intermediate_size"], checked_size("head_dim", head_dim))
    if rest:
        raise CheckpointError(f"head_dim {head_dim} does not divide expand * d_model = {expand * d_model}.")
    if heads % checked_size("n_groups", n_groups):
        raise CheckpointError(f"n_groups {n_groups} does not divide the {heads} heads.")
    return config | {
        "chunk_size": checked_size("chunk_size", chunk_size),
        "head_dim": head_dim,
        "n_groups": n_groups,
        "num_heads": heads,
        "time_step_limit": [0.0, NO_STEP_LIMIT if largest_step < NO_STEP_LIMIT else NO_LARGE_STEP_LIMIT],
        "time_step_rank": -(-d_model // 16),  # read into the config by Hugging Face, used by nothing in Mamba-2
    }


FAMILY = Mamba2Family()
