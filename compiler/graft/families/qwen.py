"""`Qwen3_5ForCausalLM` as a host: β up to 1, queries, keys and values in one map, and norms that multiply by 1 + w.

Where a norm shall multiply by 2^25 or more, w is that number: float32 rounds 1 + w to it.
"""

from __future__ import annotations

import torch

from compiler.graft.families.delta import DeltaHost
from compiler.targets.gated_deltanet.qwen import ALL_THREE, FAMILY, JOINED, NAMES


class QwenHost(DeltaHost):
    model_type = FAMILY.model_type
    class_name = FAMILY.class_name
    target = FAMILY.printer
    largest_beta = FAMILY.largest_beta
    unit = 1.0

    def in_parts(self, state, sizes):
        names = {theirs: ours for ours, theirs in NAMES.items()}
        keys = sizes.groups * sizes.d_state
        parts = state[ALL_THREE].split([keys, keys, sizes.d_inner])
        found = {names[name]: tensor for name, tensor in state.items() if name != ALL_THREE}
        return found | dict(zip(JOINED, parts, strict=True))

    def in_library(self, parts):
        found = {NAMES[name]: tensor for name, tensor in parts.items() if name not in JOINED}
        return found | {ALL_THREE: torch.cat([parts[name] for name in JOINED])}
