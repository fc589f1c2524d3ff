"""What the families of Gated DeltaNets share: their configs, and the parts of their layers that are silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from compiler.artifact.errors import CheckpointError
from compiler.artifact.tokenizer import special_ids
from compiler.layout import Axis, Layout, numbers
from compiler.targets.family import HEAD, Config, Family, Shape, checked_size, least_width, letters_of
from compiler.targets.gated_deltanet.heads import DeltaSizes, sizes

SILENT_WIDTH = 2  # of the MLP and of the head of the attention: rotary embeddings want pairs
LONGEST = 1 << 20  # positions that the config names; nothing depends on it without rotary embeddings
LIBRARY_EMBEDDING, LIBRARY_NORM = "model.embed_tokens.weight", "model.norm.weight"


class DeltaFamily(Family):
    """What the families of Gated DeltaNets share.

    A layer is the mixer behind a norm, then an MLP behind another, which is silent here: its weights are 0. The last
    layer is one of attention, which is silent, too.

    largest_beta: their β is at most this; head_dim: of the attention; own_entries: of config.json, beyond those of all.
    """

    largest_beta: ClassVar[int]
    head_dim: ClassVar[int]
    own_entries: ClassVar[Mapping[str, Any]] = {}
    warnings = (
        "Gated DeltaNet's norm of each head rests on a constant of 2^48, which float16 does not hold: load it in "
        "float32 or bfloat16.",
    )

    def size(self, blocks, n_lanes):
        return sizes(blocks, least_width(n_lanes), self.largest_beta)

    def config(self, size, vocab, layers, end, largest_step):
        return self._config(size, vocab, layers, end)

    def rewritten(self, config):
        vocab, end = letters_of(config)
        layers = checked_size("num_hidden_layers", config["num_hidden_layers"]) - 1
        return self._config(self.size_of(config), vocab, layers, end)

    def _config(self, size: DeltaSizes, vocab: int, layers: int, end: int | None) -> dict[str, Any]:
        """config.json of so many mixers; CheckpointError for a size that is none."""
        ids = special_ids(checked_size("vocab", vocab), end)
        return {
            "architectures": [self.class_name],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": None,
            "dtype": "float32",
            "eos_token_id": ids["eos"],
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": checked_size("d_model", size.d_model),
            "intermediate_size": SILENT_WIDTH,
            "layer_types": ["linear_attention"] * checked_size("layers", layers) + ["full_attention"],
            "linear_conv_kernel_dim": checked_size("d_conv", size.d_conv),
            "linear_key_head_dim": checked_size("d_state", size.d_state),
            "linear_num_key_heads": checked_size("heads", size.heads),
            "linear_num_value_heads": size.heads,
            "linear_value_head_dim": checked_size("headdim", size.headdim),
            "max_position_embeddings": LONGEST,
            "model_type": self.model_type,
            "num_attention_heads": 1,
            "num_hidden_layers": layers + 1,
            "num_key_value_heads": 1,
            "pad_token_id": ids["pad"],
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False,
            "use_cache": True,
            "vocab_size": vocab,
            **self.own_entries,
        }

    def layers(self, config):
        return config["layer_types"].count("linear_attention")

    def epsilon(self, config):
        return config["rms_norm_eps"]

    def stream_name(self, blocks):
        return f"model.layers.{blocks - 1}" if blocks else "model.embed_tokens"

    def told_sizes(self, config):
        size = self.size_of(config)
        told = {"d_model": size.d_model, "d_inner": size.d_inner, "d_state": size.d_state}
        return told | {"layers": self.layers(config)}

    def kernel_sizes(self, config):
        return None

    def convolved(self, config):
        return sum(self._rows(config))

    def _rows(self, config: Config) -> tuple[int, int, int]:
        """Rows of queries, of keys and of values."""
        keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
        return keys, keys, config["linear_num_value_heads"] * config["linear_value_head_dim"]

    def mixer_shapes(self, config: Config) -> dict[str, Shape]:
        """By our names; the library's are those that `in_library` gives."""
        (queries, keys, values), width = self._rows(config), config["hidden_size"]
        heads = config["linear_num_value_heads"]
        return {
            "A_log": (heads,),
            "dt_bias": (heads,),
            "q_proj.weight": (queries, width),
            "k_proj.weight": (keys, width),
            "v_proj.weight": (values, width),
            "a_proj.weight": (heads, width),
            "b_proj.weight": (heads, width),
            "g_proj.weight": (values, width),
            "out_proj.weight": (width, values),
            "conv1d.weight": (queries + keys + values, 1, config["linear_conv_kernel_dim"]),
            "o_norm.weight": (config["linear_value_head_dim"],),
        }

    def size_of(self, config: Config) -> DeltaSizes:
        """The sizes of a mixer; CheckpointError or KeyError where the config has none."""
        heads, headdim = (checked_size(k, config[k]) for k in ("linear_num_value_heads", "linear_value_head_dim"))
        rows, taps = (checked_size(k, config[k]) for k in ("linear_key_head_dim", "linear_conv_kernel_dim"))
        return DeltaSizes(config["hidden_size"], heads * headdim, rows, headdim, taps, self.largest_beta)

    def mixer_names(self, config: Config) -> Mapping[str, Shape]:
        """The library's names of a mixer's tensors, within the mixer, and their shapes."""
        raise NotImplementedError

    def attention_shapes(self, config: Config) -> dict[str, Shape]:
        """The tensors of the silent layer, within the layer, but for its MLP and the norm before that."""
        raise NotImplementedError

    def tensor_shapes(self, config):
        width, vocab = config["hidden_size"], config["vocab_size"]
        shapes: dict[str, Shape] = {LIBRARY_EMBEDDING: (vocab, width), HEAD: (vocab, width), LIBRARY_NORM: (width,)}
        for i in range(self.layers(config)):
            shapes |= {f"{library_mixer(i)}{name}": shape for name, shape in self.mixer_names(config).items()}
            shapes[library_layer_norm(i)] = (width,)
        return shapes | self.silent_shapes(config)

    def silent_shapes(self, config: Config) -> dict[str, Shape]:
        """The tensors that are 0: MLPs, attention, and the norms at them."""
        width, count = config["hidden_size"], self.layers(config)
        shapes = {f"model.layers.{count}.{name}": shape for name, shape in self.attention_shapes(config).items()}
        for i in range(count + 1):
            layer = f"model.layers.{i}."
            shapes |= {f"{layer}mlp.{name}_proj.weight": (SILENT_WIDTH, width) for name in ("gate", "up")}
            shapes[f"{layer}mlp.down_proj.weight"] = (width, SILENT_WIDTH)
            shapes[f"{layer}post_attention_layernorm.weight"] = (width,)
        return shapes

    def with_silent(
        self, config: Config, tensors: dict[str, Tensor], axes: dict[str, tuple[Axis, ...]]
    ) -> tuple[dict[str, Tensor], Layout]:
        """The tensors of the library, of which these are not silent, and their layout."""
        shapes = self.silent_shapes(config)
        explained = {name: tuple(numbers("place", size, _silence) for size in shape) for name, shape in shapes.items()}
        return tensors | {name: torch.zeros(shape) for name, shape in shapes.items()}, Layout(axes | explained)

    def without_silent(self, config: Config, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors that are not silent; CheckpointError where one that must be 0 is not."""
        silent = self.silent_shapes(config)
        for name in silent:
            if name in tensors and tensors[name].any():
                raise CheckpointError(f"the tensor {name} must be 0, for that part of the model is silent.")
        return {name: tensor for name, tensor in tensors.items() if name not in silent}

    def module(self, config, index):
        from compiler.targets.gated_deltanet.mixer import empty_mixer

        return empty_mixer(self.size_of(config))


def library_mixer(layer: int) -> str:
    """What the library's names of a mixer's tensors begin with."""
    return f"model.layers.{layer}.linear_attn."


def library_layer_norm(layer: int) -> str:
    """The library's name of the norm before a mixer."""
    return f"model.layers.{layer}.input_layernorm.weight"


def _silence(place: int) -> str:
    return "0: this part of the layer is silent"
