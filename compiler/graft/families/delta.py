"""Hosts with the gated delta rule: how layers of `OlmoHybridForCausalLM` and `Qwen3_5ForCausalLM` are widened.

The host's numbers stand in the stream times s = √(D/d), a power of two: what writes to the stream writes s times as
much, and what reads it reads 1/s of that. So a norm over D places has the mean that it had over d, beside the same ε,
and its weights stay. This holds for norms before a layer and for those behind one, and no norm inside of a layer sees
anything of it: those of queries and keys, and that of the heads, whose ε may be fixed in the class.

A circuit stands in heads of the host's size beside the host's. The size of a head's keys scales what is read, so that
it must be a power of four, and no other can be given to the host: what its heads put out would be scaled beside that ε.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor

from compiler.exactness.ballast import squares
from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.graft.errors import GraftError
from compiler.graft.families.family import BRANCH, HostFamily, mean_is_exact
from compiler.graft.widen import placed, times
from compiler.graft.widths import Widths, is_exact
from compiler.ir.block import SelectiveBlock
from compiler.targets import target_of
from compiler.targets.gated_deltanet.heads import DeltaSizes, heads_of, key_rows, power_of_four

ROWS = ("q", "k", "v")  # in the order of the convolution


class DeltaHost(HostFamily):
    """writes: the tensors of a layer that write to the stream, but for the mixer's; reads: those that read it;
    largest_beta: of its heads.
    """

    embedding = "model.embed_tokens.weight"
    final_norm = "model.norm.weight"
    layers = "model.layers."
    rank_name = "head_dim"
    epsilons = ("rms_norm_eps",)
    largest_beta: ClassVar[int]
    writes: ClassVar[tuple[str, ...]] = ("self_attn.o_proj.weight", "self_attn.o_proj.bias", "mlp.down_proj.weight")
    reads: ClassVar[tuple[str, ...]] = (
        *(f"self_attn.{name}_proj.weight" for name in ROWS),
        *(f"mlp.{name}_proj.weight" for name in ("gate", "up")),
    )

    def refused(self, config):
        rows, values = config.linear_key_head_dim, config.linear_value_head_dim
        if rows != power_of_four(rows):
            return (
                f"its linear_key_head_dim is {rows}, and √{rows} is no power of two, so no head of it reads a "
                f"circuit's state exactly; {BRANCH}"
            )
        if values <= len(squares(values)) or not mean_is_exact(values):
            return f"its linear_value_head_dim is {values}, over which no norm beside data is exact; {BRANCH}"
        return None

    def widths(self, config):
        values = config.linear_value_head_dim
        return Widths(
            config.hidden_size,
            config.linear_num_value_heads * values,
            config.linear_key_head_dim,
            config.linear_conv_kernel_dim,
            values,
            config.linear_num_key_heads,
        )

    def unsuited(self, host, d_model):
        if not is_exact(host.d_model, d_model):
            return (
                f"where the host's lanes stand times √({d_model}/{host.d_model}), which must be a power of two; take "
                "4^k times the host's width"
            )
        return super().unsuited(host, d_model)

    def misfit(self, host, blocks, n_lanes, inner):
        return None  # a mixer takes as many heads as are needed

    def wide(self, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int, d_model: int, d_conv: int) -> Widths:
        """With the host's heads, or as many more as the circuit has; GraftError where these are too small for it."""
        rows = max(map(key_rows, blocks))
        if rows > host.d_state:
            raise GraftError(
                f"the circuit needs keys of {rows} numbers, and the host's linear_key_head_dim is {host.d_state}; take "
                f"a circuit with fewer places, or {BRANCH}."
            )
        keys = max(host.groups, *(len(heads_of(block, host.rank)) for block in blocks))
        values = keys * (host.d_inner // host.rank // host.groups)
        return Widths(d_model, values * host.rank, host.d_state, d_conv, host.rank, keys)

    def scale(self, host, wide):
        return (wide.d_model / host.d_model) ** 0.5

    def wide_epsilons(self, config, host, wide):
        return {self.epsilons[0]: self.epsilon(config)}

    def backbone(self, model):
        return model.model

    def host_norm(self, weight: Tensor, host: Widths, wide: Widths) -> Tensor:
        return placed(weight, (wide.d_model,), {}, -self.unit)

    def placed_norms(self, layer: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        return {}  # they stay as they are

    def unscaled_norms(self, model: Any) -> list[Tensor]:
        weights = [w for name, w in model.named_parameters() if name.endswith("layernorm.weight")]
        return [self.last_norm(model), *(self.unit + weight.detach().double() for weight in weights)]

    # Layers of the host ------------------------------------------------------------------------------------------

    def widened_layer(self, layer: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """A layer of either kind: its mixer or attention, its MLP and its norms."""
        prefix, result = "linear_attn.", {}
        mixer = {n.removeprefix(prefix): t for n, t in layer.items() if n.startswith(prefix)}
        if mixer:
            result = {f"{prefix}{n}": t for n, t in self._widened_mixer(mixer, host, wide).items()}
        for name, tensor in layer.items():
            if name.startswith(prefix):
                continue
            if name in self.writes:
                result[name] = self._written(name, tensor, host, wide)
            elif name in self.reads:
                result[name] = self._read(name, tensor, host, wide)
            elif name.endswith("layernorm.weight"):
                result[name] = self.host_norm(tensor, host, wide)
            else:
                result[name] = tensor  # biases of what is read, and norms inside of the attention
        return result

    def _read(self, name: str, tensor: Tensor, host: Widths, wide: Widths) -> Tensor:
        return placed(times(name, tensor, 1 / self.scale(host, wide)), (len(tensor), wide.d_model), {})

    def _written(self, name: str, tensor: Tensor, host: Widths, wide: Widths) -> Tensor:
        return placed(times(name, tensor, self.scale(host, wide)), (wide.d_model, *tensor.shape[1:]), {})

    def _widened_mixer(self, state: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        own = self.in_parts(state, host)
        heads, rows = wide.d_inner // wide.rank, _rows(wide)
        result = {f"{n}_proj.weight": self._taller(n, own, rows[n], host, wide) for n in (*ROWS, "g")}
        result |= {f"{n}_proj.weight": self._taller(n, own, heads, host, wide) for n in "ab"}
        out = times("out_proj.weight", own["out_proj.weight"], self.scale(host, wide))
        result["out_proj.weight"] = placed(out, (wide.d_model, wide.d_inner), {})
        result |= {name: placed(own[name], (heads,), {}) for name in ("A_log", "dt_bias")}
        result["conv1d.weight"] = _convolution(own["conv1d.weight"], host, wide)
        result["o_norm.weight"] = own["o_norm.weight"]
        return self.in_library(result)

    def _taller(self, part: str, own: Mapping[str, Tensor], rows: int, host: Widths, wide: Widths) -> Tensor:
        read = self._read(f"{part}_proj.weight", own[f"{part}_proj.weight"], host, wide)
        return placed(read, (rows, wide.d_model), {})

    def in_parts(self, state: Mapping[str, Tensor], sizes: Widths) -> dict[str, Tensor]:
        """The tensors of a mixer by the names of the compiler."""
        raise NotImplementedError

    def in_library(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """And back."""
        raise NotImplementedError

    # Layers of the circuit ---------------------------------------------------------------------------------------

    def circuit_mixers(self, plan):
        return [self._emitted(plan, block) for block in plan.blocks]

    def _emitted(self, plan, block) -> dict[str, Tensor]:
        """In the first of the value heads that share a key head, by the names of the compiler."""
        wide = plan.wide
        count = len(heads_of(block, wide.rank))
        size = DeltaSizes(wide.d_model, count * wide.rank, wide.d_state, wide.rank, wide.d_conv, self.largest_beta)
        own = target_of(self.target).printed(block, size, plan.places, plan.places).tensors
        heads = wide.d_inner // wide.rank
        share = heads // wide.groups
        head = {0: [(i, i * share, 1) for i in range(count)]}
        value = {0: [(i * wide.rank, i * share * wide.rank, wide.rank) for i in range(count)]}
        narrow = Widths(wide.d_model, count * wide.rank, wide.d_state, wide.d_conv, wide.rank, count)
        rows = _rows(wide)
        result = {f"{n}_proj.weight": placed(own[f"{n}_proj.weight"], (rows[n], wide.d_model), {}) for n in "qk"}
        result |= {f"{n}_proj.weight": placed(own[f"{n}_proj.weight"], (rows["v"], wide.d_model), value) for n in "vg"}
        result |= {f"{n}_proj.weight": placed(own[f"{n}_proj.weight"], (heads, wide.d_model), head) for n in "ab"}
        result["out_proj.weight"] = placed(own["out_proj.weight"], (wide.d_model, rows["v"]), {1: value[0]})
        result["A_log"] = placed(own["A_log"], (heads,), head, KEEP_LOG)
        result["dt_bias"] = placed(own["dt_bias"], (heads,), head, OFF)
        result["conv1d.weight"] = _convolution(own["conv1d.weight"], narrow, wide, value[0])
        result["o_norm.weight"] = own["o_norm.weight"]
        return result

    def circuit_layer(self, mixer: Mapping[str, Tensor], norm: Tensor, config: Any) -> dict[str, Tensor]:
        """Its MLP is silent, as in a checkpoint of its own."""
        inner, width = config.intermediate_size, len(norm)
        result = {f"linear_attn.{name}": tensor for name, tensor in self.in_library(mixer).items()}
        result |= {f"mlp.{name}_proj.weight": torch.zeros(inner, width) for name in ("gate", "up")}
        result["mlp.down_proj.weight"] = torch.zeros(width, inner)
        silent = torch.full((width,), -self.unit)
        return result | {"input_layernorm.weight": norm, "post_attention_layernorm.weight": silent}

    # The configuration -------------------------------------------------------------------------------------------

    def config(self, config, host, wide):
        return {
            "head_dim": getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
            "linear_conv_kernel_dim": wide.d_conv,
            "linear_num_key_heads": wide.groups,
            "linear_num_value_heads": wide.d_inner // wide.rank,
        }

    def sizes_told(self, config, blocks: int, host, wide):
        return {"layer_types": ["linear_attention"] * blocks + list(config.layer_types)}

    def complete(self, model, host):
        """The frequencies of rotary embeddings: as the host has them, which may have been moved to another dtype."""
        model.model.rotary_emb = deepcopy(host.model.rotary_emb)


def _rows(sizes: Widths) -> dict[str, int]:
    """Rows of queries, keys, values and gates."""
    keys = sizes.groups * sizes.d_state
    return {"q": keys, "k": keys, "v": sizes.d_inner, "g": sizes.d_inner}


def _convolution(taps: Tensor, host: Widths, wide: Widths, values: list[tuple[int, int, int]] | None = None) -> Tensor:
    """The three parts at the beginnings of their places; the newest taps stand last. values: where those go instead."""
    few, many, here, there = _rows(host), _rows(wide), 0, 0
    spans = []
    for part in ROWS:
        own = values if part == "v" and values is not None else [(0, 0, few[part])]
        spans += [(a + here, b + there, count) for a, b, count in own]
        here, there = here + few[part], there + many[part]
    newest = taps.shape[2]
    return placed(taps, (there, 1, wide.d_conv), {0: spans, 2: [(0, wide.d_conv - newest, newest)]})
