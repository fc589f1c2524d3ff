"""A layer of one position: a gated MLP, as `mamba_ssm.modules.mlp.GatedMLP` has it.

    out(t) = Σ_c out_c · <value_c, lanes(t)> · silu(<gate_c, lanes(t)>)

silu stands for relu: every <gate_c, lanes> is 0, at least 20.1 or at most −104, where the two agree bit for bit
(exactness E1). With <value_c, lanes> a constant this is a ReLU network of depth 2, the f of paper D between two
mixers. A block without a state whose gates are always open is such a layer, number by number: what its convolution
adds to a feature is read off the lane that holds 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from compiler.exactness.levels import OFF
from compiler.ir.block import SelectiveBlock, rectified
from compiler.ir.coordinate import Coordinate


@dataclass(frozen=True, eq=False)
class FeedForward:
    """coordinates: H hidden numbers; value, gate, out: (H × lanes) csr; lanes: what its L lanes hold."""

    coordinates: tuple[Coordinate, ...]
    value: sparse.csr_array
    gate: sparse.csr_array
    out: sparse.csr_array
    lanes: tuple[Coordinate, ...]

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The names of its coordinates, by kind."""
        return {"hidden": tuple(coordinate.name for coordinate in self.coordinates)}

    def run(self, lanes: np.ndarray) -> np.ndarray:
        """What the layer adds to the lanes: (batch, time, L) float64 to the same shape.

        UnsafePreactivation where silu is not relu.
        """
        flat = lanes.reshape(-1, lanes.shape[-1]).T
        hidden = (self.value @ flat) * rectified((self.gate @ flat).T, self.names["hidden"], "gate").T
        return np.asarray((self.out.T @ hidden).T).reshape(lanes.shape)

    def bounds(self, lane_bounds: np.ndarray) -> np.ndarray:
        """A bound on |value·relu(gate)| of each hidden number, from bounds of the lanes: (H,)."""
        return (abs(self.value) @ lane_bounds) * (abs(self.gate) @ lane_bounds)

    def verify(self) -> None:
        """Raise ValueError unless every part has the shape that the others ask for and holds numbers."""
        shape = (len(self.coordinates), len(self.lanes))
        for name in ("value", "gate", "out"):
            part = getattr(self, name)
            if part.shape != shape:
                raise ValueError(f"{name} of a gated MLP has shape {part.shape}, and its other parts ask for {shape}")
            if not np.isfinite(part.data).all():
                raise ValueError(f"{name} of a gated MLP holds an infinity or a NaN")


def feed_forward_of(block: SelectiveBlock, one: int | None) -> FeedForward | None:
    """The same layer as a gated MLP; None where the block keeps a state, looks back, or gates by what it reads.

    one: the lane that holds 1 at every position; None where there is none.
    """
    features, channels = block.features, block.channels
    if one is None or block.d_state or not _of_one_position(block, one):
        return None
    pick = sparse.csr_array(sparse.diags_array(features.taps[:, 0]) @ features.rows)
    bias = sparse.csr_array(
        (features.bias, (np.arange(len(features.bias)), np.full(len(features.bias), one))), shape=pick.shape
    )
    gate = sparse.csr_array(pick + bias)[channels.feature]
    value = sparse.csr_array(sparse.diags_array(channels.skip) @ channels.gate)
    layer = FeedForward(channels.coordinates, value, sparse.csr_array(gate), channels.out, block.lanes)
    layer.verify()
    return layer


def _of_one_position(block: SelectiveBlock, one: int) -> bool:
    """No tap behind the present one, no step, and gates that are a positive power of two wherever the sequence is."""
    features, channels = block.features, block.channels
    now = not features.taps[:, 1:].any()
    idle = not channels.writes.any() and bool((channels.delta_bias <= OFF).all())
    whole = not (features.real or channels.real_gates or channels.real_steps or channels.curved_gates)
    open_ = bool((channels.gate.indices == one).all() and (np.diff(channels.gate.indptr) == 1).all())
    powers = np.frexp(channels.gate.data)[0] == 0.5
    return now and idle and whole and open_ and bool(powers.all())
