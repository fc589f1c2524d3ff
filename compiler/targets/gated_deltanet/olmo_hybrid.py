"""Hugging Face's `OlmoHybridForCausalLM`, whose β reaches 2. The library wants a layer of attention in each model."""

from __future__ import annotations

from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, Config, Shape, mixer_prefix, norm_name
from compiler.targets.gated_deltanet.family import (
    LIBRARY_EMBEDDING,
    LIBRARY_NORM,
    SILENT_WIDTH,
    DeltaFamily,
    library_layer_norm,
    library_mixer,
)

NAMES = {"out_proj.weight": "o_proj.weight"}  # ours and the library's; the others are the same


class OlmoHybridFamily(DeltaFamily):
    model_type = "olmo_hybrid"
    class_name = "OlmoHybridForCausalLM"
    printer = "gated-deltanet"
    largest_beta = 2
    head_dim = SILENT_WIDTH
    own_entries = {"linear_allow_neg_eigval": True, "rope_parameters": None}

    def output_name(self, layer):
        return f"{library_mixer(layer)}o_proj.weight"

    def mixer_names(self, config):
        return {NAMES.get(name, name): shape for name, shape in self.mixer_shapes(config).items()}

    def attention_shapes(self, config):
        width = config["hidden_size"]
        shapes: dict[str, Shape] = {f"self_attn.{name}_proj.weight": (SILENT_WIDTH, width) for name in "qkv"}
        shapes["self_attn.o_proj.weight"] = (width, SILENT_WIDTH)
        shapes |= {f"self_attn.{name}_norm.weight": (SILENT_WIDTH,) for name in "qk"}
        return shapes | {"post_feedforward_layernorm.weight": (width,)}

    def _renamed(self, config: Config) -> dict[str, str]:
        """Our names of the tensors that are not silent, and the library's."""
        found = {EMBEDDING: LIBRARY_EMBEDDING, FINAL_NORM: LIBRARY_NORM, HEAD: HEAD}
        for i in range(self.layers(config)):
            found[norm_name(i)] = library_layer_norm(i)
            for name in self.mixer_shapes(config):
                found[f"{mixer_prefix(i)}{name}"] = f"{library_mixer(i)}{NAMES.get(name, name)}"
        return found

    def in_library(self, config, tensors, layout):
        names = self._renamed(config)
        renamed = {names[name]: tensor for name, tensor in tensors.items()}
        return self.with_silent(config, renamed, {names[name]: axes for name, axes in layout.axes.items()})

    def in_house(self, config, tensors):
        """Silent tensors must be 0, and are left out; CheckpointError for another."""
        ours = {theirs: name for name, theirs in self._renamed(config).items()}
        return {ours.get(name, name): tensor for name, tensor in self.without_silent(config, tensors).items()}


FAMILY = OlmoHybridFamily()
