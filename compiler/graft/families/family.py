"""What a host family is, and what all of them share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compiler.graft.widths import Widths
from compiler.ir.block import SelectiveBlock

if TYPE_CHECKING:
    from torch import Tensor

    from compiler.graft.placement import Placement

BRANCH = "graft it as a side branch (mode branch)"


class HostFamily:
    """Language models of one class.

    model_type: what their config.json calls them.
    class_name: the class of transformers.
    target:     what a circuit is compiled for, so that its blocks stand in their mixers.
    rank_name:  what `Widths.rank` is.
    """

    model_type: ClassVar[str]
    class_name: ClassVar[str]
    target: ClassVar[str]
    rank_name: ClassVar[str]

    def refused(self, config: Any) -> str | None:
        """Why a direct sum cannot hold a host of this configuration, beyond what no family takes; None where it can."""
        return None

    def widths(self, config: Any) -> Widths:
        """The sizes of a model by its configuration."""
        raise NotImplementedError

    def columns(self, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int) -> tuple[int, int]:
        """(d_state, rank) of mixers that hold the host's and these blocks over n_lanes lanes."""
        raise NotImplementedError

    def fits(self, host: Widths, blocks: Sequence[SelectiveBlock], n_lanes: int, inner: int) -> bool:
        """Whether these blocks have room in mixers with so many channels."""
        raise NotImplementedError

    def widened(self, state: Mapping[str, Tensor], host: Widths, wide: Widths) -> dict[str, Tensor]:
        """The tensors of a mixer of the wide sizes that computes what the host's does."""
        raise NotImplementedError

    def circuit_mixers(self, plan: Placement) -> list[dict[str, Tensor]]:
        """The tensors of the circuit's mixers, one for each of plan.blocks, which see its lanes as they are."""
        raise NotImplementedError

    def config(self, config: Any, host: Widths, wide: Widths) -> dict[str, Any]:
        """What the configuration of the wide model says of its mixers, where it is not the host's."""
        raise NotImplementedError

    def complete(self, model: Any) -> None:
        """Give values to what the class keeps beside its weights and does not save."""


def mean_is_exact(width: int) -> bool:
    """Whether a mean over so many equal numbers is exact on a GPU too, where it multiplies by 1/width."""
    return np.float32(width) * (np.float32(1) / np.float32(width)) == np.float32(1)
