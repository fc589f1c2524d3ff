"""`OlmoHybridForCausalLM` as a host: β up to 2, so that a circuit's states can be swapped."""

from __future__ import annotations

from compiler.graft.families.delta import DeltaHost
from compiler.graft.families.family import BRANCH

_OUT = "o_proj.weight"  # the library's name of what the compiler calls out_proj


class OlmoHybridHost(DeltaHost):
    model_type = "olmo_hybrid"
    class_name = "OlmoHybridForCausalLM"
    target = "gated-deltanet"
    largest_beta = 2

    def refused(self, config):
        if not config.linear_allow_neg_eigval:
            return f"its linear_allow_neg_eigval is false, and β must reach 2; {BRANCH}"
        return super().refused(config)

    def in_parts(self, state, sizes):
        return {"out_proj.weight" if name == _OUT else name: tensor for name, tensor in state.items()}

    def in_library(self, parts):
        return {_OUT if name == "out_proj.weight" else name: tensor for name, tensor in parts.items()}
