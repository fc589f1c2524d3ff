"""The type of the real blocks: what circuits and certificates read of `mamba_ssm.Mamba`, `Mamba2` and our own modules.

torch gives every attribute of a module the type "tensor or module". This class says which it is. Nothing inherits from
it and nothing is an instance of it: `as_block` and `Stack.blocks` only give modules this type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn


class Convolution(nn.Conv1d):
    """A convolution that has a bias, as ours always have."""

    if TYPE_CHECKING:
        bias: Tensor


class Block(nn.Module):
    """What a real block has; some attributes are of one kind of block only, and `hasattr` asks for these first."""

    in_proj: nn.Linear
    conv1d: Convolution
    out_proj: nn.Linear
    A_log: nn.Parameter
    D: nn.Parameter
    d_inner: int
    d_state: int
    d_conv: int
    # Mamba
    x_proj: nn.Linear
    dt_proj: nn.Linear
    dt_rank: int
    # Mamba-2, and S4D for dt_bias
    dt_bias: nn.Parameter
    norm: nn.Module
    rmsnorm: bool
    D_has_hdim: bool
    dt_limit: tuple[float, float]
    d_ssm: int
    ngroups: int
    nheads: int
    headdim: int
    chunk_size: int
    activation: str
    # S4D
    B: nn.Parameter
    C: nn.Parameter

    if TYPE_CHECKING:

        def __call__(self, u: Tensor) -> Tensor: ...

        def step(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...

        def chunk(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...


def as_block(module: nn.Module) -> Block:
    """The module under the type of real blocks."""
    return cast(Block, module)
