"""Hugging Face's `Qwen3_5ForCausalLM` (model_type `qwen3_5_text`), whose β reaches 1: it overwrites and never reflects.

Its norms multiply by 1 + w, which no K of ours fits. So w = 0, a norm gives what stands on the lanes over K, and the
maps behind it multiply K back. Queries, keys and values are one map there. The MLPs are silent, and so is a layer of
attention, without which transformers' caches do not count positions: their weights are 0.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import shown
from compiler.artifact.tokenizer import special_ids
from compiler.layout import Layout, joined, numbers
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, Shape, checked_size, mixer_prefix, norm_name
from compiler.targets.gated_deltanet.heads import DeltaSizes
from compiler.targets.gated_deltanet.olmo_hybrid import LONGEST, SILENT_WIDTH, DeltaFamily

_MIXER = "model.layers.{}.linear_attn."
_JOINED = ("q_proj.weight", "k_proj.weight", "v_proj.weight")
_MAPS = {"g_proj.weight": "in_proj_z.weight", "b_proj.weight": "in_proj_b.weight", "a_proj.weight": "in_proj_a.weight"}
_OTHERS = {"o_norm.weight": "norm.weight"} | {n: n for n in ("A_log", "dt_bias", "conv1d.weight", "out_proj.weight")}


class QwenFamily(DeltaFamily):
    model_type = "qwen3_5_text"
    class_name = "Qwen3_5ForCausalLM"
    printer = "gated-deltanet-qwen"
    largest_beta = 1

    def config(self, size, vocab, layers, end, largest_step):
        return qwen_config(size, vocab, layers, end)

    def rewritten(self, config):
        eos, vocab = config["eos_token_id"], checked_size("vocab", config["vocab_size"])
        if type(eos) is not int:
            raise CheckpointError(f"the config has eos_token_id = {shown(eos)}, expected an integer.")
        size = self.size_of(config)
        layers = checked_size("num_hidden_layers", config["num_hidden_layers"]) - 1
        return qwen_config(size, vocab, layers, None if eos == vocab - 3 else eos)

    def output_name(self, layer):
        return f"{_MIXER.format(layer)}out_proj.weight"

    def tensor_shapes(self, config):
        width, vocab = config["hidden_size"], config["vocab_size"]
        shapes: dict[str, Shape] = dict.fromkeys(("model.embed_tokens.weight", HEAD), (vocab, width))
        shapes["model.norm.weight"] = (width,)
        ours = self.mixer_shapes(config)
        for i in range(self.layers(config)):
            mixer = _MIXER.format(i)
            shapes |= {f"{mixer}{theirs}": ours[name] for name, theirs in (_MAPS | _OTHERS).items()}
            shapes[f"{mixer}in_proj_qkv.weight"] = (self.convolved(config), width)
            shapes[f"model.layers.{i}.input_layernorm.weight"] = (width,)
        return shapes | self._silent(config)

    def _silent(self, config) -> dict[str, Shape]:
        """The tensors that are 0: MLPs, the layer of attention that caches ask for, and the norms at them."""
        width, count, head = config["hidden_size"], self.layers(config), config["head_dim"]
        attention = f"model.layers.{count}.self_attn."
        shapes: dict[str, Shape] = {f"{attention}{name}_norm.weight": (head,) for name in ("q", "k")}
        shapes |= {f"{attention}{name}_proj.weight": (head, width) for name in ("k", "v")}
        shapes |= {f"{attention}q_proj.weight": (2 * head, width), f"{attention}o_proj.weight": (width, head)}
        shapes[f"model.layers.{count}.input_layernorm.weight"] = (width,)
        for i in range(count + 1):
            layer = f"model.layers.{i}."
            shapes |= {f"{layer}mlp.{name}_proj.weight": (SILENT_WIDTH, width) for name in ("gate", "up")}
            shapes[f"{layer}mlp.down_proj.weight"] = (width, SILENT_WIDTH)
            shapes[f"{layer}post_attention_layernorm.weight"] = (width,)
        return shapes

    def in_library(self, config, tensors, layout):
        norm = tensors[FINAL_NORM]
        level, last = float(norm.max()), float(norm[-1])
        head = tensors[HEAD] * level
        head[:, -1] = tensors[HEAD][:, -1] * last  # what the special tokens read is no lane: the norm gives 1/last
        found = {
            "model.embed_tokens.weight": tensors[EMBEDDING],
            "model.norm.weight": torch.zeros_like(norm),
            HEAD: head,
        }
        axes = {"model.embed_tokens.weight": layout.axes[EMBEDDING], HEAD: layout.axes[HEAD]}
        axes["model.norm.weight"] = layout.axes[FINAL_NORM]
        for i in range(self.layers(config)):
            ours, theirs = mixer_prefix(i), _MIXER.format(i)
            found[f"model.layers.{i}.input_layernorm.weight"] = torch.zeros_like(norm)
            axes[f"model.layers.{i}.input_layernorm.weight"] = layout.axes[norm_name(i)]
            found[f"{theirs}in_proj_qkv.weight"] = level * torch.cat([tensors[f"{ours}{name}"] for name in _JOINED])
            parts = [layout.axes[f"{ours}{name}"] for name in _JOINED]
            axes[f"{theirs}in_proj_qkv.weight"] = (joined(*(rows for rows, _ in parts)), parts[0][1])
            for name, renamed in (_MAPS | _OTHERS).items():
                factor = level if name in _MAPS else 1.0
                found[f"{theirs}{renamed}"] = factor * tensors[f"{ours}{name}"]
                axes[f"{theirs}{renamed}"] = layout.axes[f"{ours}{name}"]
        for name, shape in self._silent(config).items():
            found[name] = torch.zeros(shape)
            axes[name] = tuple(
                numbers("place", size, lambda i: "0: this part of the layer is silent") for size in shape
            )
        return found, Layout(axes)

    def in_house(self, config, tensors):
        """With norms of 1 and the maps as they are, which is the same model."""
        silent = self._silent(config)
        self.check_silent(silent, tensors)
        names = {"model.embed_tokens.weight": EMBEDDING, "model.norm.weight": FINAL_NORM}
        rows = self._rows(config)
        found = {}
        for name, tensor in tensors.items():
            place, _, rest = name.removeprefix("model.layers.").partition(".")
            if name in silent:
                continue
            if name.endswith("input_layernorm.weight"):
                found[norm_name(int(place))] = 1 + tensor
            elif name.endswith("in_proj_qkv.weight"):
                prefix = mixer_prefix(int(place))
                found |= {f"{prefix}{n}": part for n, part in zip(_JOINED, tensor.split(rows), strict=True)}
            elif rest.startswith("linear_attn."):
                ours = {theirs: own for own, theirs in (_MAPS | _OTHERS).items()}
                part = rest.removeprefix("linear_attn.")
                found[f"{mixer_prefix(int(place))}{ours.get(part, part)}"] = tensor
            else:
                found[names.get(name, name)] = 1 + tensor if name == "model.norm.weight" else tensor
        return found


def qwen_config(size: DeltaSizes, vocab: int, layers: int, end: int | None) -> dict[str, Any]:
    """config.json of a `Qwen3_5ForCausalLM` of so many mixers; CheckpointError for a size that is none."""
    ids = special_ids(checked_size("vocab", vocab), end)
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "dtype": "float32",
        "eos_token_id": ids["eos"],
        "head_dim": 4 * SILENT_WIDTH,
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
        "model_type": "qwen3_5_text",
        "num_attention_heads": 1,
        "num_hidden_layers": layers + 1,
        "num_key_value_heads": 1,
        "pad_token_id": ids["pad"],
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "use_cache": True,
        "vocab_size": vocab,
    }


FAMILY = QwenFamily()
