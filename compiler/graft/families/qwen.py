"""`Qwen3_5ForCausalLM` as a host: β up to 1, queries, keys and values in one map, and norms that multiply by 1 + w.

Where a norm shall multiply by 2^25 or more, w is that number: float32 rounds 1 + w to it.
"""

from __future__ import annotations

import torch

from compiler.graft.families.delta import ROWS, DeltaHost

_MAPS = {"g_proj.weight": "in_proj_z.weight", "b_proj.weight": "in_proj_b.weight", "a_proj.weight": "in_proj_a.weight"}
_MAPS["o_norm.weight"] = "norm.weight"
_JOINED = "in_proj_qkv.weight"


class QwenHost(DeltaHost):
    model_type = "qwen3_5_text"
    class_name = "Qwen3_5ForCausalLM"
    target = "gated-deltanet-qwen"
    largest_beta = 1
    unit = 1.0

    def in_parts(self, state, sizes):
        names = {theirs: ours for ours, theirs in _MAPS.items()}
        keys = sizes.groups * sizes.d_state
        parts = state[_JOINED].split([keys, keys, sizes.d_inner])
        found = {names.get(name, name): tensor for name, tensor in state.items() if name != _JOINED}
        return found | {f"{name}_proj.weight": part for name, part in zip(ROWS, parts, strict=True)}

    def in_library(self, parts):
        joined = [f"{name}_proj.weight" for name in ROWS]
        found = {_MAPS.get(name, name): tensor for name, tensor in parts.items() if name not in joined}
        return found | {_JOINED: torch.cat([parts[name] for name in joined])}
