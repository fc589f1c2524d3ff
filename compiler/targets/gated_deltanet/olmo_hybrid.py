"""Hugging Face's `OlmoHybridForCausalLM`, whose β reaches 2.

A layer is the mixer behind a norm, then an MLP behind another, which is silent here: its weights are 0. The library
wants a layer of attention, too: a silent one stands last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import shown
from compiler.artifact.tokenizer import special_ids
from compiler.layout import Layout, numbers
from compiler.targets.family import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    Config,
    Family,
    Shape,
    checked_size,
    least_width,
    mixer_prefix,
    norm_name,
)
from compiler.targets.gated_deltanet.heads import DeltaSizes, best_headdim, key_rows

SILENT_WIDTH = 2  # of the MLP and of the head of the attention: rotary embeddings want pairs
LONGEST = 1 << 20  # positions that the config names; nothing depends on it without rotary embeddings
_MIXER = "model.layers.{}.linear_attn."
_MLP = {"gate_proj": (SILENT_WIDTH, 0), "up_proj": (SILENT_WIDTH, 0), "down_proj": (0, SILENT_WIDTH)}  # 0: d_model


class DeltaFamily(Family):
    """What both families of Gated DeltaNets share. largest_beta: their β is at most this."""

    largest_beta: int
    warnings = (
        "Gated DeltaNet's norm of each head rests on a constant of 2^48, which float16 does not hold: load it in "
        "float32 or bfloat16.",
    )

    def size(self, blocks, n_lanes):
        headdim, count = best_headdim(blocks)
        rows, taps = max(map(key_rows, blocks)), blocks[0].features.taps.shape[1]
        return DeltaSizes(least_width(n_lanes), headdim * count, rows, headdim, taps, self.largest_beta)

    def layers(self, config):
        return config["layer_types"].count("linear_attention")

    def epsilon(self, config):
        return config["rms_norm_eps"]

    def stream_name(self, blocks):
        return f"model.layers.{blocks - 1}" if blocks else "model.embed_tokens"

    def told_sizes(self, config):
        inner = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        told = {"d_model": config["hidden_size"], "d_inner": inner, "d_state": config["linear_key_head_dim"]}
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

    @staticmethod
    def check_silent(silent: Mapping[str, Shape], tensors: Mapping[str, Tensor]) -> None:
        """CheckpointError where a part that must be silent is not 0."""
        for name in silent:
            if name in tensors and tensors[name].any():
                raise CheckpointError(f"the tensor {name} must be 0, for that part of the model is silent.")

    def module(self, config, index):
        from compiler.targets.gated_deltanet.mixer import GatedDeltaNet

        with torch.device("meta"):
            return GatedDeltaNet(
                config["hidden_size"],
                config["linear_num_value_heads"],
                config["linear_key_head_dim"],
                config["linear_value_head_dim"],
                config["linear_conv_kernel_dim"],
                self.largest_beta,
            )


class OlmoHybridFamily(DeltaFamily):
    model_type = "olmo_hybrid"
    class_name = "OlmoHybridForCausalLM"
    printer = "gated-deltanet"
    largest_beta = 2
    _names = {"out_proj.weight": "o_proj.weight"}

    def config(self, size, vocab, layers, end, largest_step):
        return olmo_config(size, vocab, layers, end)

    def rewritten(self, config):
        eos, vocab = config["eos_token_id"], checked_size("vocab", config["vocab_size"])
        if type(eos) is not int:
            raise CheckpointError(f"the config has eos_token_id = {shown(eos)}, expected an integer.")
        size = self.size_of(config)
        layers = checked_size("num_hidden_layers", config["num_hidden_layers"]) - 1
        return olmo_config(size, vocab, layers, None if eos == vocab - 3 else eos)

    def output_name(self, layer):
        return f"{_MIXER.format(layer)}o_proj.weight"

    def tensor_shapes(self, config):
        width, vocab, count = config["hidden_size"], config["vocab_size"], self.layers(config)
        shapes: dict[str, Shape] = dict.fromkeys(("model.embed_tokens.weight", HEAD), (vocab, width))
        shapes["model.norm.weight"] = (width,)
        for i in range(count):
            for name, shape in self.mixer_shapes(config).items():
                shapes[f"{_MIXER.format(i)}{self._names.get(name, name)}"] = shape
            shapes[f"model.layers.{i}.input_layernorm.weight"] = (width,)
        return shapes | self._silent(config)

    def _silent(self, config: Config) -> dict[str, Shape]:
        """The tensors that are 0: MLPs, attention, and the norms at them."""
        width, count = config["hidden_size"], self.layers(config)
        shapes: dict[str, Shape] = {}
        for i in range(count + 1):
            layer = f"model.layers.{i}."
            shapes |= {
                f"{layer}mlp.{name}.weight": (rows or width, columns or width) for name, (rows, columns) in _MLP.items()
            }
            shapes[f"{layer}post_attention_layernorm.weight"] = (width,)
        last = f"model.layers.{count}."
        for name in ("q", "k", "v"):
            shapes[f"{last}self_attn.{name}_proj.weight"] = (SILENT_WIDTH, width)
        shapes[f"{last}self_attn.o_proj.weight"] = (width, SILENT_WIDTH)
        shapes |= {f"{last}self_attn.{name}_norm.weight": (SILENT_WIDTH,) for name in ("q", "k")}
        return shapes | {f"{last}post_feedforward_layernorm.weight": (width,)}

    def _renamed(self, config: Config) -> dict[str, str]:
        """Our names of the tensors that are not silent, and the library's."""
        found = {EMBEDDING: "model.embed_tokens.weight", FINAL_NORM: "model.norm.weight", HEAD: HEAD}
        for i in range(self.layers(config)):
            found[norm_name(i)] = f"model.layers.{i}.input_layernorm.weight"
            for name in self.mixer_shapes(config):
                found[f"{mixer_prefix(i)}{name}"] = f"{_MIXER.format(i)}{self._names.get(name, name)}"
        return found

    def in_library(self, config, tensors, layout):
        names = self._renamed(config)
        silent = self._silent(config)
        axes = {names[name]: axes for name, axes in layout.axes.items()}
        for name, shape in silent.items():
            axes[name] = tuple(
                numbers("place", size, lambda i: "0: this part of the layer is silent") for size in shape
            )
        kept = {names[name]: tensor for name, tensor in tensors.items()}
        return kept | {name: torch.zeros(shape) for name, shape in silent.items()}, Layout(axes)

    def in_house(self, config: Config, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Silent tensors must be 0, and are left out; CheckpointError for another."""
        self.check_silent(self._silent(config), tensors)
        library = {theirs: ours for ours, theirs in self._renamed(config).items()}
        rest = {name: t for name, t in tensors.items() if name not in self._silent(config)}
        return {library.get(name, name): t for name, t in rest.items()}


def olmo_config(size: DeltaSizes, vocab: int, layers: int, end: int | None) -> dict[str, Any]:
    """config.json of an `OlmoHybridForCausalLM` of so many mixers; CheckpointError for a size that is none."""
    ids = special_ids(checked_size("vocab", vocab), end)
    return {
        "architectures": ["OlmoHybridForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "dtype": "float32",
        "eos_token_id": ids["eos"],
        "head_dim": SILENT_WIDTH,
        "hidden_act": "silu",
        "hidden_size": checked_size("d_model", size.d_model),
        "intermediate_size": SILENT_WIDTH,
        "layer_types": ["linear_attention"] * checked_size("layers", layers) + ["full_attention"],
        "linear_allow_neg_eigval": True,
        "linear_conv_kernel_dim": checked_size("d_conv", size.d_conv),
        "linear_key_head_dim": checked_size("d_state", size.d_state),
        "linear_num_key_heads": checked_size("heads", size.heads),
        "linear_num_value_heads": size.heads,
        "linear_value_head_dim": checked_size("headdim", size.headdim),
        "max_position_embeddings": LONGEST,
        "model_type": "olmo_hybrid",
        "num_attention_heads": 1,
        "num_hidden_layers": layers + 1,
        "num_key_value_heads": 1,
        "pad_token_id": ids["pad"],
        "rms_norm_eps": 1e-6,
        "rope_parameters": None,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": vocab,
    }


FAMILY = OlmoHybridFamily()
