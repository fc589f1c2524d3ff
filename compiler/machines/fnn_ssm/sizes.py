"""Sizes in the letters of paper D's class as we restore it: M, U, D, L, W, S, B of S(M, U, D, L, W, S, B)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from scipy import sparse

from compiler.machines.fnn_ssm.layers import Bank, Convolution, Network, over_channels
from compiler.machines.fnn_ssm.relu_network import ReluNetwork


@dataclass(frozen=True)
class PaperSizes:
    """M: layers; U: the longest window; D: channels or lanes, the most; L: matrices of a network; W: its width.

    S: entries of all networks that are not 0; B: the largest absolute value of a parameter; each: S network by network.
    """

    M: int
    U: int
    D: int
    L: int
    W: int
    S: int
    B: float
    each: tuple[int, ...]

    def to_json(self) -> dict[str, int | float | tuple[int, ...]]:
        return asdict(self)


def sizes(network: Network) -> PaperSizes:
    """The sizes of a network, its delays counted as the cosines and sines that they are made of."""
    parts = [_layer(convolution, feed) for convolution, feed in network.layers]
    lanes = [network.embedding.shape[1]]
    return PaperSizes(
        len(parts),
        max((c.window for c, _ in network.layers), default=0),
        max([*lanes, *(d for d, _, _, _ in parts)]),
        max((f.depth for _, f in network.layers), default=0),
        max([*lanes, *(w for _, w, _, _ in parts)]),
        sum(s for _, _, s, _ in parts),
        max([_largest(network.embedding), _largest(network.decoder), *(b for _, _, _, b in parts)]),
        tuple(s for _, _, s, _ in parts),
    )


def _layer(convolution: Convolution, network: ReluNetwork) -> tuple[int, int, int, float]:
    """(D, W, S, B) of one layer."""
    bank, whole = convolution.bank, over_channels(convolution, network)
    return (
        max(convolution.lanes, bank.channels, whole.outputs),
        whole.width,
        whole.nonzeros,
        max(float(whole.largest), _largest_filter(bank)),
    )


def _largest(matrix: sparse.csr_array) -> float:
    return float(np.abs(matrix.data).max(initial=0))


def _largest_filter(bank: Bank) -> float:
    """Of W^V (0 and 1), the filters' parameters and the skip."""
    numbers = [abs(float(x)) for f in bank.filters for x in (f.c1, f.a1, f.c2, f.a2)]
    return max([1.0, *numbers])
