"""`MambaForCausalLM` as a host: Δ, B and C are linear in x̂, without norms inside of the mixer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from compiler.exactness.levels import OFF
from compiler.graft.families.family import NO_ROOM, HostFamily
from compiler.graft.widen import convolution, placed
from compiler.graft.widths import Widths
from compiler.targets import target_of
from compiler.targets.mamba.emit import sizes
from compiler.targets.sizes import MambaSizes


class MambaHost(HostFamily):
    model_type = "mamba"
    class_name = "MambaForCausalLM"
    target = "mamba"
    rank_name = "dt_rank"

    def widths(self, config):
        inner = int(config.expand * config.hidden_size)
        return Widths(config.hidden_size, inner, config.state_size, config.conv_kernel, int(config.time_step_rank))

    def columns(self, host, blocks, n_lanes):
        state = max(host.d_state, *(block.d_state for block in blocks))
        return state, max(host.rank, *(sizes(block, n_lanes).dt_rank for block in blocks))

    def misfit(self, host, blocks, n_lanes, inner):
        return None if all(sizes(block, n_lanes).d_inner <= inner for block in blocks) else NO_ROOM

    def widened(self, state: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """in_proj rows are [x; z], x_proj rows [dt; B; C]."""
        inner, wider, n, rank = host.d_inner, wide.d_inner, host.d_state, host.rank
        halves = {0: [(0, 0, inner), (inner, wider, inner)]}
        ports = {0: [(0, 0, rank), (rank, wide.rank, n), (rank + n, wide.rank + wide.d_state, n)]}
        result = {
            "in_proj.weight": placed(state["in_proj.weight"], (2 * wider, wide.d_model), halves),
            "x_proj.weight": placed(state["x_proj.weight"], (wide.rank + 2 * wide.d_state, wider), ports),
            "dt_proj.weight": placed(state["dt_proj.weight"], (wider, wide.rank), {}),
            "dt_proj.bias": placed(state["dt_proj.bias"], (wider,), {}, OFF),
            "A_log": placed(state["A_log"], (wider, wide.d_state), {}),
            "D": placed(state["D"], (wider,), {}),
            "out_proj.weight": placed(state["out_proj.weight"], (wide.d_model, wider), {}),
        } | convolution(state, {}, wider, host, wide)
        if "in_proj.bias" in state:
            result["in_proj.bias"] = placed(state["in_proj.bias"], (2 * wider,), halves)
            result["out_proj.bias"] = placed(state["out_proj.bias"], (wide.d_model,), {})
        return result

    def circuit_mixers(self, plan):
        return [self._emitted(plan, block) for block in plan.blocks]

    def _emitted(self, plan, block) -> dict[str, Tensor]:
        wide = plan.wide
        size = MambaSizes(wide.d_model, wide.d_inner, wide.d_state, wide.rank, wide.d_conv)
        return target_of(self.target).printed(block, size, plan.places, plan.places).tensors

    def config(self, config: Any, host: Widths, wide: Widths) -> dict[str, Any]:
        return {"time_step_rank": wide.rank, "intermediate_size": wide.d_inner}
