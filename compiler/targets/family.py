"""What a family of language models is: a library's model around the blocks of a target, described by a config.json.

Everything that depends on the family stands here and in the folders of the targets: the config, the names and shapes
of the tensors, the arguments of the module's class. The rest of the package asks `family_of(model_type)`.

Configs are written by hand because the defaults are traps for hand-built weights: a Hugging Face config without
explicit ids stops `generate()` at our token 0, the default `time_step_limit` cannot be read back by older versions,
and `tie_word_embeddings` defaults to true for one family and to false for the other. `bos_token_id` is null: nothing
may put a token in front of a circuit's input (left out, it would be 0, a letter). The vocabulary includes the special
tokens, which are its last ids; `end` is the id of the letter that ends a generation, if one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import shown
from compiler.artifact.tokenizer import special_ids

if TYPE_CHECKING:
    from torch import Tensor, nn

    from compiler.formats import Format
    from compiler.ir.block import SelectiveBlock
    from compiler.layout import Emission, Layout
    from compiler.targets.sizes import Sizes

LARGEST_SIZE = 1 << 31

Config = Mapping[str, Any]  # of config.json
Shape = tuple[int, ...]

EMBEDDING = "backbone.embeddings.weight"
FINAL_NORM = "backbone.norm_f.weight"
HEAD = "lm_head.weight"


class Printer(Protocol):
    """What a family asks of the target that prints its blocks."""

    def printed(self, block: SelectiveBlock, size: Sizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Emission: ...

    def seats(self, block: SelectiveBlock, module: Sizes) -> np.ndarray: ...


class Family:
    """Language models with one size for all blocks.

    model_type: what their config.json calls them.
    class_name: the library's class.
    printer:    the target that prints their blocks.
    warnings:   what a model card must say of them, beyond what it says of all.
    """

    model_type: ClassVar[str]
    class_name: ClassVar[str]
    printer: ClassVar[str]
    warnings: ClassVar[tuple[str, ...]] = ()

    def size(self, blocks: Sequence[SelectiveBlock], n_lanes: int) -> Sizes:
        """The least size that holds every block: d_model a power of two (the norm's mean is then exact), d_inner = 2 ·
        d_model.
        """
        raise NotImplementedError

    def mixer(
        self, printer: Printer, block: SelectiveBlock, size: Sizes, one: int, bounds: np.ndarray, format: Format
    ) -> Emission:
        """The tensors of a block's mixer, weights of a norm inside of it included, and their layout.

        printer: the target called `self.printer`. Lane i stands at coordinate i of d_model; one: the lane that holds 1;
        bounds: (lanes,) on |value|.
        """
        lanes = np.arange(len(block.lanes))
        return printer.printed(block, size, lanes, lanes)

    def config(self, size: Sizes, vocab: int, layers: int, end: int | None, largest_step: float) -> dict[str, Any]:
        """config.json; end: the id of the letter that ends a generation; largest_step bounds every Δ of the weights."""
        raise NotImplementedError

    def rewritten(self, config: Config) -> dict[str, Any]:
        """The config that we would write for the sizes of this one; CheckpointError or KeyError where there is none."""
        raise NotImplementedError

    def mixer_shapes(self, config: Config) -> dict[str, Shape]:
        """Shape of every tensor of a block, by its name in the mixer."""
        raise NotImplementedError

    def convolved(self, config: Config) -> int:
        """How many channels its convolution has."""
        raise NotImplementedError

    def projected(self, config: Config) -> int:
        """How many rows in_proj has: the convolution's channels are read inside of them."""
        return self.mixer_shapes(config)["in_proj.weight"][0]

    def module(self, config: Config, index: int) -> nn.Module:
        """An empty block of this config (parameters on the meta device), number `index` of its model."""
        raise NotImplementedError

    def layers(self, config: Config) -> int:
        """How many of its layers hold a block."""
        return config["num_hidden_layers"]

    def epsilon(self, config: Config) -> float:
        """What its norms add to the mean square."""
        return config["layer_norm_epsilon"]

    def output_name(self, layer: int) -> str:
        """The tensor that leads from the channels of a block to the lanes."""
        return f"{mixer_prefix(layer)}out_proj.weight"

    def stream_name(self, blocks: int) -> str:
        """The library's module whose output is the residual stream after so many blocks; 0: the embedding."""
        return f"backbone.layers.{blocks - 1}" if blocks else "backbone.embeddings"

    def told_sizes(self, config: Config) -> dict[str, int]:
        """The sizes that a manifest tells of a model."""
        names = {"d_model": "hidden_size", "d_inner": "intermediate_size", "d_state": "state_size"}
        return {ours: config[theirs] for ours, theirs in names.items()} | {"layers": self.layers(config)}

    def kernel_sizes(self, config: Config) -> tuple[int, int, int, int] | None:
        """(taps, columns, convolved channels, rows of in_proj) that mamba_ssm's CUDA kernels limit; None: no kernel of
        it runs the model.
        """
        return config["conv_kernel"], config["state_size"], self.convolved(config), self.projected(config)

    def in_library(self, config: Config, tensors: Mapping[str, Tensor], layout: Layout) -> tuple[dict, Layout]:
        """The tensors of a model and their layout by the library's names, from ours (those of `tensor_shapes` here)."""
        return dict(tensors), layout

    def in_house(self, config: Config, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of a model by our names, from the library's."""
        return dict(tensors)

    def cautions(self, config: Config) -> tuple[str, ...]:
        """What the model card of a model of this config warns of."""
        return self.warnings

    # Around the blocks every family is the same ------------------------------------------------------------------

    def tensor_shapes(self, config: Config) -> dict[str, Shape]:
        """Shape of every tensor of the model, by its name."""
        mixer = self.mixer_shapes(config)
        width, vocab = config["hidden_size"], config["vocab_size"]
        shapes: dict[str, Shape] = {EMBEDDING: (vocab, width)}
        for i in range(config["num_hidden_layers"]):
            shapes |= {f"{mixer_prefix(i)}{name}": shape for name, shape in mixer.items()}
            shapes[norm_name(i)] = (width,)
        return shapes | {FINAL_NORM: (width,), HEAD: (vocab, width)}


def norm_name(layer: int) -> str:
    """The tensor of the norm before a block."""
    return f"backbone.layers.{layer}.norm.weight"


def mixer_prefix(layer: int) -> str:
    """What the names of a block's tensors begin with."""
    return f"backbone.layers.{layer}.mixer."


def common_config(
    family: Family, vocab: int, d_model: int, d_state: int, layers: int, d_conv: int, expand: int, end: int | None
) -> dict[str, Any]:
    """The entries that the configs of all families have; CheckpointError for a size that is no positive integer."""
    ids = special_ids(checked_size("vocab", vocab), end)
    return {
        "architectures": [family.class_name],
        "bos_token_id": None,
        "conv_kernel": checked_size("d_conv", d_conv),
        "dtype": "float32",
        "eos_token_id": ids["eos"],
        "expand": checked_size("expand", expand),
        "hidden_act": "silu",
        "hidden_size": checked_size("d_model", d_model),
        "intermediate_size": expand * d_model,
        "layer_norm_epsilon": 1e-5,
        "model_type": family.model_type,
        "num_hidden_layers": checked_size("layers", layers),
        "pad_token_id": ids["pad"],
        "pad_vocab_size_multiple": 1,
        "residual_in_fp32": True,
        "state_size": checked_size("d_state", d_state),
        "tie_word_embeddings": False,
        "use_bias": False,
        "use_cache": True,
        "use_conv_bias": True,
        "vocab_size": vocab,
    }


def common_sizes(config: Config) -> dict[str, Any]:
    """What `common_config` was given, read off a config: KeyError for what it lacks."""
    vocab, end = letters_of(config)
    return {
        "vocab": vocab,
        "d_model": config["hidden_size"],
        "d_state": config["state_size"],
        "layers": config["num_hidden_layers"],
        "d_conv": config["conv_kernel"],
        "expand": config["expand"],
        "end": end,
    }


def letters_of(config: Config) -> tuple[int, int | None]:
    """The size of the vocabulary, and the id of the letter that ends a generation; CheckpointError for a bad entry."""
    vocab, eos = checked_size("vocab", config["vocab_size"]), config["eos_token_id"]
    if type(eos) is not int:
        raise CheckpointError(f"the config has eos_token_id = {shown(eos)}, expected an integer.")
    return vocab, None if eos == vocab - 3 else eos


def common_arguments(config: Config) -> dict[str, Any]:
    """The arguments that the classes of all families have."""
    return {
        "d_state": config["state_size"],
        "d_conv": config["conv_kernel"],
        "expand": config["expand"],
        "conv_bias": config["use_conv_bias"],
        "bias": config["use_bias"],
    }


def checked_size(name: str, value: int) -> int:
    """A size from a config; CheckpointError for one that is no positive integer, or too large for any machine."""
    if type(value) is not int or value < 1:
        raise CheckpointError(f"{name} must be a positive integer, not {shown(value)}.")
    if value > LARGEST_SIZE:
        raise CheckpointError(f"{name} must be at most {LARGEST_SIZE}, not {shown(value)}.")
    return value


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, (n - 1).bit_length())


def least_width(n_lanes: int) -> int:
    """The least d_model for so many lanes: two more for the ballast of the norm."""
    return power_of_two(max(n_lanes + 2, 16))
