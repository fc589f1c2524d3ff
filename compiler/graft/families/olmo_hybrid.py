"""`OlmoHybridForCausalLM` as a host: β up to 2, so that a circuit's states can be swapped."""

from __future__ import annotations

from compiler.graft.families.delta import DeltaHost
from compiler.graft.families.family import BRANCH
from compiler.targets.gated_deltanet.olmo_hybrid import FAMILY, NAMES


class OlmoHybridHost(DeltaHost):
    model_type = FAMILY.model_type
    class_name = FAMILY.class_name
    target = FAMILY.printer
    largest_beta = FAMILY.largest_beta

    def refused(self, config):
        if not config.linear_allow_neg_eigval:
            return f"its linear_allow_neg_eigval is false, and β must reach 2; {BRANCH}"
        return super().refused(config)

    def in_parts(self, state, sizes):
        names = {theirs: ours for ours, theirs in NAMES.items()}
        return {names.get(name, name): tensor for name, tensor in state.items()}

    def in_library(self, parts):
        return {NAMES.get(name, name): tensor for name, tensor in parts.items()}
