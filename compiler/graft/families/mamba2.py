"""`Mamba2ForCausalLM` as a host: heads in groups with B and C of their own, and a gated norm over each group.

The host's channels, heads and columns have the first places of their group, so that every group is wider by the same
factor. The circuit stands in the first group alone; the others are zeros in its layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compiler.analysis.affine_form import ONE
from compiler.exactness.ballast import squares, with_norm_ballast
from compiler.exactness.levels import OFF
from compiler.graft.errors import GraftError
from compiler.graft.families.family import BRANCH, NO_MEAN, NO_ROOM, HostFamily, mean_is_exact
from compiler.graft.widen import convolution, placed, widened_norm
from compiler.graft.widths import Widths
from compiler.targets import target_of
from compiler.targets.mamba2.emit import Mamba2Sizes, channel_seats, padded_channels
from compiler.targets.mamba2.family import NO_LARGE_STEP_LIMIT, kernel_columns

_Spans = list[tuple[int, int, int]]


class Mamba2Host(HostFamily):
    model_type = "mamba2"
    class_name = "Mamba2ForCausalLM"
    target = "mamba2"
    rank_name = "head_dim"

    def refused(self, config):
        limit = config.time_step_limit
        if len(limit) != 2 or not (limit[0] <= 0 and limit[1] >= 1e3):
            return (
                f"its time_step_limit is {list(limit)}, which would clamp the circuit's steps of up to 128 and "
                f"more; it must be [0, infinity], otherwise {BRANCH}"
            )
        return None

    def widths(self, config):
        inner = int(config.expand * config.hidden_size)
        sizes = config.hidden_size, inner, config.state_size, config.conv_kernel, config.head_dim
        return Widths(*sizes, config.n_groups)

    def columns(self, host, blocks, n_lanes):
        return kernel_columns(max(host.d_state, *(block.d_state for block in blocks)), host.groups), host.rank

    def misfit(self, host, blocks, n_lanes, inner):
        if inner % (host.rank * host.groups):
            return f"whose {inner} channels are no whole heads of {host.rank} in each group ({host.groups} in all)"
        group = inner // host.groups
        room = group - -(-len(squares(group)) // host.rank) * host.rank  # the ballast of the inner norm, in whole heads
        if not mean_is_exact(group):
            return f"whose mixers have a norm over {group} channels, {NO_MEAN}"
        return None if all(padded_channels(block, host.rank) <= room for block in blocks) else NO_ROOM

    def widened(self, state: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """in_proj rows are [z; x; B; C; dt], convolved channels [x; B; C]; all but z, B and C by head."""
        inner, wider, n, wide_n = host.d_inner, wide.d_inner, host.d_state, wide.d_state
        groups = host.groups, wide.groups
        channels = _spans(inner // host.groups, wider // wide.groups, host.groups)
        heads = _spans(inner // host.groups // host.rank, wider // wide.groups // wide.rank, host.groups)
        columns = _spans(n, wide_n, host.groups)
        count, wide_count = (2 * g * size for g, size in zip(groups, (n, wide_n), strict=True))
        convolved = channels + _moved(columns, inner, wider)
        convolved += _moved(columns, inner + count // 2, wider + wide_count // 2)
        rows = channels + _moved(convolved, inner, wider) + _moved(heads, 2 * inner + count, 2 * wider + wide_count)
        wide_heads = wider // wide.rank
        height = 2 * wider + wide_count + wide_heads
        result = {
            "in_proj.weight": placed(state["in_proj.weight"], (height, wide.d_model), {0: rows}),
            "dt_bias": placed(state["dt_bias"], (wide_heads,), {0: heads}, OFF),
            "A_log": placed(state["A_log"], (wide_heads,), {0: heads}),
            "D": placed(state["D"], (wide_heads,), {0: heads}),
            "out_proj.weight": placed(state["out_proj.weight"], (wide.d_model, wider), {1: channels}),
        } | convolution(state, {0: convolved}, wider + wide_count, host, wide)
        if "norm.weight" in state:
            result["norm.weight"] = placed(widened_norm(state["norm.weight"], inner, wider), (wider,), {0: channels})
        if "in_proj.bias" in state:
            result["in_proj.bias"] = placed(state["in_proj.bias"], (height,), {0: rows})
            result["out_proj.bias"] = placed(state["out_proj.bias"], (wide.d_model,), {})
        return result

    def placed_norms(self, layer: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """The norm inside of the mixer is widened by the same factor."""
        result, name = super().placed_norms(layer, host, wide), "mixer.norm.weight"
        channels = _spans(host.d_inner // host.groups, wide.d_inner // wide.groups, host.groups)
        return result | {name: placed(layer[name], (wide.d_inner,), {0: channels})}

    def circuit_mixers(self, plan):
        wide = plan.wide
        group = Widths(wide.d_model, wide.d_inner // wide.groups, wide.d_state, wide.d_conv, wide.rank)
        bounds = np.append(plan.bounds, np.array(plan.ballast.factors) * plan.ballast.level)
        one = int(plan.compiled.lanes.index[ONE][0])
        blocks, norms = with_norm_ballast(plan.blocks, one, group.d_inner, bounds, plan.compiled.context.format)
        _check_absorbed(plan.epsilons["layer_norm_epsilon"], min(norm.level for norm in norms))
        size = Mamba2Sizes(group.d_model, group.d_inner, group.d_state, group.rank, group.d_conv)
        mixers = []
        for own, block, norm in zip(plan.blocks, blocks, norms, strict=True):
            tensors = target_of(self.target).printed(block, size, plan.places, plan.places).tensors
            seats = channel_seats(block, group.rank)[: len(own.channels.names)]
            mixer = self.widened(tensors, group, wide)
            mixer["norm.weight"] = torch.zeros(wide.d_inner)
            mixer["norm.weight"][torch.from_numpy(seats)] = norm.level
            mixers.append(mixer)
        return mixers

    def config(self, config: Any, host: Widths, wide: Widths) -> dict[str, Any]:
        low, high = config.time_step_limit
        return {"num_heads": wide.d_inner // wide.rank, "time_step_limit": (low, min(high, NO_LARGE_STEP_LIMIT))}


def _check_absorbed(epsilon: float, level: float) -> None:
    """GraftError where ε is seen beside the ballast of a norm inside of a mixer, in float32."""
    if epsilon > level**2 * 2.0**-24:
        raise GraftError(
            f"the host's layer_norm_epsilon, {epsilon:.3g} in the direct sum, is seen beside the ballast of {level:g} "
            f"in a mixer's norm; at most {level**2 * 2.0**-24:.3g} vanishes there, so {BRANCH}."
        )


def _spans(narrow: int, wide: int, groups: int) -> _Spans:
    """The first places of each group: (first here, first there, how many)."""
    return [(g * narrow, g * wide, narrow) for g in range(groups)]


def _moved(spans: Sequence[tuple[int, int, int]], here: int, there: int) -> _Spans:
    return [(a + here, b + there, count) for a, b, count in spans]
