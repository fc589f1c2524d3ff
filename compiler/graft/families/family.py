"""What a host family is, and what all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from compiler.graft.widen import placed, widened_norm
from compiler.graft.widths import Widths
from compiler.ir.block import SelectiveBlock

if TYPE_CHECKING:
    from compiler.graft.placement import Placement

NO_ROOM = "and host and circuit do not fit into it"
NO_MEAN = "over which no mean of equal numbers is exact"
BRANCH = "graft it as a side branch (mode branch)"


class HostFamily:
    """Language models of one class.

    model_type: what their config.json calls them.
    class_name: the class of transformers.
    target:     what a circuit is compiled for, so that its blocks stand in their mixers.
    rank_name:  what `Widths.rank` is.
    embedding, final_norm, layers: the library's names of these tensors, and what the names of a layer's begin with.
    unit:       what a norm adds to its weight before it multiplies by it.
    epsilons:   the entries of config.json that its norms add to a mean square, that of the stream first.
    """

    model_type: ClassVar[str]
    class_name: ClassVar[str]
    target: ClassVar[str]
    rank_name: ClassVar[str]
    embedding: ClassVar[str] = "backbone.embeddings.weight"
    final_norm: ClassVar[str] = "backbone.norm_f.weight"
    layers: ClassVar[str] = "backbone.layers."
    unit: ClassVar[float] = 0.0
    epsilons: ClassVar[tuple[str, ...]] = ("layer_norm_epsilon",)

    def refused(self, config: Any) -> str | None:
        """Why a direct sum cannot hold a host of this configuration, beyond what no family takes; None where it can."""
        return None

    def widths(self, config: Any) -> Widths:
        """The sizes of a model by its configuration."""
        raise NotImplementedError

    def columns(self, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int) -> tuple[int, int]:
        """(d_state, rank) of mixers that hold the host's and these blocks over n_lanes lanes."""
        raise NotImplementedError

    def unsuited(self, host: Widths, d_model: int) -> str | None:
        """Why no direct sum has this d_model, as the end of "width is 47, …"; None where some circuit's may."""
        return None if mean_is_exact(d_model) else NO_MEAN

    def misfit(self, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int, inner: int) -> str | None:
        """Why these blocks cannot stand in mixers with so many channels, in the same way; None where they can."""
        raise NotImplementedError

    def wide(self, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int, d_model: int, d_conv: int) -> Widths:
        """The sizes of the direct sum, of which the stream and the convolution are chosen already."""
        state, rank = self.columns(host, blocks, n_lanes)
        return Widths(d_model, host.d_inner // host.d_model * d_model, state, d_conv, rank, host.groups)

    def scale(self, host: Widths, wide: Widths) -> float:
        """What the host's numbers are multiplied by in the stream of the direct sum."""
        return 1.0

    def epsilon(self, config: Any) -> float:
        """What the norms of the stream add to the mean square."""
        return getattr(config, self.epsilons[0])

    def wide_epsilons(self, config: Any, host: Widths, wide: Widths) -> dict[str, float]:
        """All of `epsilons` in the direct sum; config: the host's."""
        return {self.epsilons[0]: self.epsilon(config) * host.d_model / wide.d_model}

    def backbone(self, model: Any) -> Any:
        """The module that has the layers."""
        return model.backbone

    def last_norm(self, model: Any) -> Tensor:
        """What the last norm of a model multiplies by: (d_model,), float64."""
        return self.unit + model.get_parameter(self.final_norm).detach().double()

    def placed_norms(self, layer: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """Of a layer, by their names: the weights of the norms that are scaled by √(d/D), at their places in the direct
        sum and not yet scaled.
        """
        return {"norm.weight": placed(layer["norm.weight"], (wide.d_model,), {})}

    def unscaled_norms(self, model: Any) -> list[Tensor]:
        """What those norms of a model's stream multiply by whose weights stay in the direct sum, as their product is
        scaled: float64.
        """
        return []

    def host_norm(self, weight: Tensor, host: Widths, wide: Widths) -> Tensor:
        """The weight of a norm of the stream in the direct sum."""
        return widened_norm(weight, host.d_model, wide.d_model)

    def widened_layer(self, layer: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """The tensors of a layer of the wide sizes that computes what the host's does."""
        mixer = {name.removeprefix("mixer."): t for name, t in layer.items() if name.startswith("mixer.")}
        result = {f"mixer.{name}": tensor for name, tensor in self.widened(mixer, host, wide).items()}
        return result | {"norm.weight": self.host_norm(layer["norm.weight"], host, wide)}

    def circuit_layer(self, mixer: Mapping[str, Tensor], norm: Tensor, config: Any) -> dict[str, Tensor]:
        """The tensors of a layer of the circuit: of its mixer, by the compiler's names, and of the norm before it."""
        result = dict(mixer)
        if config.use_bias:
            for name in ("in_proj", "out_proj"):
                result[f"{name}.bias"] = torch.zeros(len(mixer[f"{name}.weight"]))
        return {f"mixer.{name}": tensor for name, tensor in result.items()} | {"norm.weight": norm}

    def widened(self, state: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """The tensors of a mixer of the wide sizes that computes what the host's does."""
        raise NotImplementedError

    def circuit_mixers(self, plan: Placement) -> list[dict[str, Tensor]]:
        """The tensors of the circuit's mixers, one for each of plan.blocks, which see its lanes as they are."""
        raise NotImplementedError

    def config(self, config: Any, host: Widths, wide: Widths) -> dict[str, Any]:
        """What the configuration of the wide model says of its mixers, where it is not the host's."""
        raise NotImplementedError

    def sizes_told(self, config: Any, blocks: int, host: Widths, wide: Widths) -> dict[str, Any]:
        """What it says of the other sizes; blocks: the layers of the circuit."""
        return {
            "state_size": wide.d_state,
            "conv_kernel": wide.d_conv,
            "use_conv_bias": True,
            **self.wide_epsilons(config, host, wide),
        }

    def complete(self, model: Any, host: Any) -> None:
        """Give a direct sum what the class keeps beside its weights and does not save."""


def mean_is_exact(width: int) -> bool:
    """Whether a mean over so many equal numbers is exact on a GPU too, where it multiplies by 1/width."""
    return np.float32(width) * (np.float32(1) / np.float32(width)) == np.float32(1)
