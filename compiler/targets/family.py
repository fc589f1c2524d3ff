"""What a family of language models is: a library's model around the blocks of a target, described by a config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from compiler.ir.block import SelectiveBlock
    from compiler.targets.sizes import Sizes


class Family:
    """Language models with one size for all blocks.

    model_type: what their config.json calls them.
    printer:    the target that prints their blocks.
    inner_norm: whether each block normalises its gated output once more (`mixer.norm`).
    """

    model_type: ClassVar[str]
    printer: ClassVar[str]
    inner_norm: ClassVar[bool] = False

    def size(self, blocks: Sequence[SelectiveBlock], n_lanes: int) -> Sizes:
        """The least size that holds every block: d_model a power of two (the norm's mean is then exact), d_inner = 2 ·
        d_model.
        """
        raise NotImplementedError

    def config(self, size: Sizes, vocab: int, layers: int, end: int | None, largest_step: float) -> dict:
        """config.json; end: the id of the letter that ends a generation; largest_step bounds every Δ of the weights."""
        raise NotImplementedError


def power_of_two(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(0, (n - 1).bit_length())


def least_width(n_lanes: int) -> int:
    """The least d_model for so many lanes: two more for the ballast of the norm."""
    return power_of_two(max(n_lanes + 2, 16))
