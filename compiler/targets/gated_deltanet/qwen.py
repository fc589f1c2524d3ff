"""Hugging Face's `Qwen3_5ForCausalLM` (model_type `qwen3_5_text`), whose β reaches 1: it overwrites and never reflects.

Its norms multiply by 1 + w, which no K of ours fits. So w = 0, a norm gives what stands on the lanes over K, and the
maps behind it multiply K back. Queries, keys and values are one map there. The MLPs are silent, and so is a layer of
attention, without which transformers' caches do not count positions: their weights are 0.
"""

from __future__ import annotations

import torch

from compiler.layout import joined
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, Shape, mixer_prefix, norm_name
from compiler.targets.gated_deltanet.family import (
    LIBRARY_EMBEDDING,
    LIBRARY_NORM,
    SILENT_WIDTH,
    DeltaFamily,
    library_layer_norm,
    library_mixer,
)

ALL_THREE = "in_proj_qkv.weight"
JOINED = ("q_proj.weight", "k_proj.weight", "v_proj.weight")
_MAPS = {"g_proj.weight": "in_proj_z.weight", "b_proj.weight": "in_proj_b.weight", "a_proj.weight": "in_proj_a.weight"}
_OTHERS = {"o_norm.weight": "norm.weight"} | {n: n for n in ("A_log", "dt_bias", "conv1d.weight", "out_proj.weight")}
NAMES = _MAPS | _OTHERS  # ours and the library's, of all but those three


class QwenFamily(DeltaFamily):
    model_type = "qwen3_5_text"
    class_name = "Qwen3_5ForCausalLM"
    printer = "gated-deltanet-qwen"
    largest_beta = 1
    head_dim = 4 * SILENT_WIDTH

    def output_name(self, layer):
        return f"{library_mixer(layer)}out_proj.weight"

    def mixer_names(self, config):
        ours = self.mixer_shapes(config)
        shapes = {theirs: ours[name] for name, theirs in NAMES.items()}
        return shapes | {ALL_THREE: (self.convolved(config), config["hidden_size"])}

    def attention_shapes(self, config):
        width, head = config["hidden_size"], config["head_dim"]
        shapes: dict[str, Shape] = {f"self_attn.{name}_norm.weight": (head,) for name in "qk"}
        shapes |= {f"self_attn.{name}_proj.weight": (head, width) for name in "kv"}
        shapes |= {"self_attn.q_proj.weight": (2 * head, width), "self_attn.o_proj.weight": (width, head)}
        return shapes | {"input_layernorm.weight": (width,)}

    def in_library(self, config, tensors, layout):
        norm = tensors[FINAL_NORM]
        level, last = float(norm.max()), float(norm[-1])
        head = tensors[HEAD] * level
        head[:, -1] = tensors[HEAD][:, -1] * last  # what the special tokens read is no lane: the norm gives 1/last
        found = {LIBRARY_EMBEDDING: tensors[EMBEDDING], LIBRARY_NORM: torch.zeros_like(norm), HEAD: head}
        axes = {
            LIBRARY_EMBEDDING: layout.axes[EMBEDDING],
            HEAD: layout.axes[HEAD],
            LIBRARY_NORM: layout.axes[FINAL_NORM],
        }
        for i in range(self.layers(config)):
            ours, theirs = mixer_prefix(i), library_mixer(i)
            found[library_layer_norm(i)] = torch.zeros_like(norm)
            axes[library_layer_norm(i)] = layout.axes[norm_name(i)]
            found[f"{theirs}{ALL_THREE}"] = level * torch.cat([tensors[f"{ours}{name}"] for name in JOINED])
            parts = [layout.axes[f"{ours}{name}"] for name in JOINED]
            axes[f"{theirs}{ALL_THREE}"] = (joined(*(rows for rows, _ in parts)), parts[0][1])
            for name, renamed in NAMES.items():
                factor = level if name in _MAPS else 1.0
                found[f"{theirs}{renamed}"] = factor * tensors[f"{ours}{name}"]
                axes[f"{theirs}{renamed}"] = layout.axes[f"{ours}{name}"]
        return self.with_silent(config, found, axes)

    def in_house(self, config, tensors):
        """With norms of 1 and the maps as they are, which is the same model."""
        names = {LIBRARY_EMBEDDING: EMBEDDING, LIBRARY_NORM: FINAL_NORM}
        ours = {theirs: own for own, theirs in NAMES.items()}
        rows = self._rows(config)
        found = {}
        for name, tensor in self.without_silent(config, tensors).items():
            place, _, rest = name.removeprefix("model.layers.").partition(".")
            if name.endswith("input_layernorm.weight"):
                found[norm_name(int(place))] = 1 + tensor
            elif name.endswith(ALL_THREE):
                prefix = mixer_prefix(int(place))
                found |= {f"{prefix}{n}": part for n, part in zip(JOINED, tensor.split(rows), strict=True)}
            elif rest.startswith("linear_attn."):
                part = rest.removeprefix("linear_attn.")
                found[f"{mixer_prefix(int(place))}{ours.get(part, part)}"] = tensor
            else:
                found[names.get(name, name)] = 1 + tensor if name == LIBRARY_NORM else tensor
        return found


FAMILY = QwenFamily()
