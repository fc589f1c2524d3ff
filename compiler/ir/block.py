"""The block IR: one typed record per Mamba block, over named lanes.

Between the language and the weights stands this record. Targets print it as tensors,
`run` evaluates it, certificates read it. All numbers are dyadic and exact in float64.

    x̂_f(t)  = relu(bias_f + Σ_k taps[f, k] · <rows_f, lanes(t − k)>)             features
    Δ_c(t)  = softplus(delta_bias_c + <delta_features_c, x̂(t)> + <delta_lanes_c, lanes(t)>)
    h_cn(t) = exp(−Δ_c · rate_cn) · h_cn(t − 1) + Δ_c · B_n · x̂_c,   B = write · x̂,  C = read · x̂
    y_c(t)  = Σ_n C_n h_cn + skip_c · x̂_c
    out(t)  = Σ_c out_c · y_c · relu(<gate_c, lanes(t)>)

rate_cn is rate_c, but in a direct sum of column groups (E15), where a channel forgets in columns of other groups.

Where the columns carry a step of their own (Mamba-Δᵀ), the state is instead

    h_cn(t) = exp(−Δ_n) · h_cn(t − 1) + B_n · x̂_c,   Δ_n = softplus(step_bias_n + <step_n, x̂(t)>).

Where the columns have a β (gated delta rule), a state loses what it holds along B before it is written to:

    h_c(t)  = e · h_c(t − 1) + β · B · (x̂_c − <B, e · h_c(t − 1)>),   e = exp(−Δ_c · rate_c),   |B| is 1 or 0,

of each group of columns (a head) for the channels of this group alone, and |C| is 1 or 0.

silu and softplus stand for relu and for identity/0: every pre-activation is 0, at least 20.1 or at most −104, and
exp(−Δ · rate) is 1 or 0 unless a state fades on purpose, where the real functions agree with these bit for bit
(exactness E1, E2, E4). Rows marked `real` may have any pre-activation: they come in pairs ± of which only the
difference is read, and f(x) − f(−x) = x for all of these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import expit

from compiler.exactness.levels import KEPT, OFF, SAFE_NEGATIVE, SAFE_POSITIVE
from compiler.ir.coordinate import Coordinate
from compiler.ir.decay import FORGET, Fade, a_logs, rates


class _Named:
    """Parts whose places have coordinates."""

    coordinates: tuple[Coordinate, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(coordinate.name for coordinate in self.coordinates)


@dataclass(frozen=True, eq=False)
class Features(_Named):
    """Rectified rows.

    coordinates: F; rows: (F × lanes) csr; taps: (F × d_conv) by lag; bias: (F,); real: halves of real numbers.
    """

    coordinates: tuple[Coordinate, ...]
    rows: sparse.csr_array
    taps: np.ndarray
    bias: np.ndarray
    real: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Channels(_Named):
    """Channels with a state or a D path. Arrays over C channels; matrices (C × features) or (C × lanes).

    decay: what a step leaves of the state (rate_c above is its rate).
    real_gates, real_steps: the channels whose gate or Δ is half of a real number.
    curved_gates: the channels whose gate stands for silu itself where it is curved, not for relu.
    group: (C,) the group of columns that keeps each channel's state, −1 where it has none; None where a block has
        one group for all.
    """

    coordinates: tuple[Coordinate, ...]
    feature: np.ndarray
    delta_features: sparse.csr_array
    delta_lanes: sparse.csr_array
    delta_bias: np.ndarray
    decay: tuple[Fade, ...]
    skip: np.ndarray
    gate: sparse.csr_array
    out: sparse.csr_array
    real_gates: frozenset[int] = frozenset()
    real_steps: frozenset[int] = frozenset()
    curved_gates: frozenset[int] = frozenset()
    group: np.ndarray | None = None

    @property
    def writes(self) -> np.ndarray:
        """The channels that ever write to their state: (C,) mask."""
        fed = (np.diff(self.delta_features.indptr) > 0) | (np.diff(self.delta_lanes.indptr) > 0)
        return fed | (self.delta_bias > OFF)


@dataclass(frozen=True, eq=False)
class Columns(_Named):
    """State columns. coordinates: N; write, read: (N × features): B and C.

    step, step_bias: (N × features) and (N,), the columns' own Δ; None where Δ belongs to the channels.
    group: (N,) the group of each column, where a block is a direct sum of groups (E15); None where it has one.
    beta: (N,) the β of each column's group, where states follow the delta rule; None where they add.
    """

    coordinates: tuple[Coordinate, ...]
    write: sparse.csr_array
    read: sparse.csr_array
    step: sparse.csr_array | None = None
    step_bias: np.ndarray | None = None
    group: np.ndarray | None = None
    beta: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class SelectiveBlock:
    """A layer that selects what it stores: one Mamba block, whatever the target. lanes: what its L lanes hold."""

    features: Features
    channels: Channels
    columns: Columns
    lanes: tuple[Coordinate, ...]

    @property
    def d_state(self) -> int:
        return len(self.columns.names)

    @property
    def heads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where states follow the delta rule: the group of each channel (−1: no state) and the group and β of each
        column. ValueError where they add.
        """
        channels, columns = self.channels, self.columns
        if channels.group is None or columns.group is None or columns.beta is None:
            raise ValueError("the states of this block add; they do not follow the delta rule")
        return np.where(channels.writes, channels.group, -1), columns.group, columns.beta

    @property
    def foreign(self) -> np.ndarray | None:
        """Where a channel meets a column that does not keep its state, so that each step forgets: (C × N) mask; None
        where all columns are of one group.
        """
        if self.channels.group is None or self.columns.group is None or self.columns.beta is not None:
            return None
        own = self.channels.group[:, None]
        return (own >= 0) & (own != self.columns.group[None, :])

    @property
    def a_log(self) -> np.ndarray:
        """A_log of each channel in each column: (C × N), or (C × 1) where it is the same in all."""
        own = a_logs(self.channels.decay)[:, None]
        return own if self.foreign is None else np.where(self.foreign, FORGET.a_log, own)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The names of its coordinates, by kind."""
        return {"features": self.features.names, "channels": self.channels.names, "columns": self.columns.names}

    def run(self, lanes: np.ndarray) -> np.ndarray:
        """What the block adds to the lanes: (batch, time, L) float64 to the same shape.

        UnsafePreactivation where it is not exact.
        """
        return run(self, lanes)

    def bounds(self, lane_bounds: np.ndarray) -> np.ndarray:
        """A bound on |y·silu(z)| of each channel: no channel contributes more to its lane than the lane can hold; (C,).

        Channels do not cancel: each number has a lane of its own, and those that share one are products of the halves
        of a number, of which one is 0.
        """
        coo = self.channels.out.tocoo()
        result = np.zeros(len(self.channels.names))
        result[coo.row] = lane_bounds[coo.col] / np.abs(coo.data)
        return result

    def verify(self) -> None:
        """Raise ValueError unless every part has the shape that the others ask for and holds numbers."""
        features, channels, columns = self.features, self.channels, self.columns
        n_features, n_channels, n_columns = (len(part.names) for part in (features, channels, columns))
        n_lanes = len(self.lanes)
        shapes = {
            "rows": (features.rows, (n_features, n_lanes)),
            "taps": (features.taps, (n_features, features.taps.shape[-1])),
            "bias": (features.bias, (n_features,)),
            "feature": (channels.feature, (n_channels,)),
            "delta_features": (channels.delta_features, (n_channels, n_features)),
            "delta_lanes": (channels.delta_lanes, (n_channels, n_lanes)),
            "delta_bias": (channels.delta_bias, (n_channels,)),
            "decay": (rates(channels.decay), (n_channels,)),
            "skip": (channels.skip, (n_channels,)),
            "gate": (channels.gate, (n_channels, n_lanes)),
            "out": (channels.out, (n_channels, n_lanes)),
            "write": (columns.write, (n_columns, n_features)),
            "read": (columns.read, (n_columns, n_features)),
        }
        if channels.group is not None and columns.group is not None:
            shapes |= {"group": (channels.group, (n_channels,)), "group of columns": (columns.group, (n_columns,))}
        if columns.beta is not None:
            shapes["beta"] = columns.beta, (n_columns,)
        if columns.step is not None:
            shapes |= {"step": (columns.step, (n_columns, n_features)), "step_bias": (columns.step_bias, (n_columns,))}
        for name, (part, shape) in shapes.items():
            if part.shape != shape:
                raise ValueError(f"{name} of a block has shape {part.shape}, and its other parts ask for {shape}")
            if not np.isfinite(part.data if sparse.issparse(part) else part).all():
                raise ValueError(f"{name} of a block holds an infinity or a NaN")
        if (channels.group is None) != (columns.group is None):
            raise ValueError("channels and columns of a block are either all in groups or none of them")
        if n_channels and not (0 <= channels.feature.min() <= channels.feature.max() < n_features):
            raise ValueError(f"a channel of a block reads a feature beyond its {n_features}")


class UnsafePreactivation(ArithmeticError):
    """A pre-activation outside {0} ∪ [20.1, ∞) ∪ (−∞, −104], or 0 at Δ: the real block would not be exact."""


def rectified(
    x: np.ndarray, names: tuple[str, ...], what: str, real: frozenset[int] = frozenset(), zero_is_safe: bool = True
) -> np.ndarray:
    """relu, after checking that silu and softplus agree with it, halves of real numbers aside. x: (…, names).

    zero_is_safe: silu(0) = 0, but softplus(0) = ln 2, so a step must not be asked for by a 0.
    """
    unsafe = ((x > 0) & (x < SAFE_POSITIVE)) | ((x < 0) & (x > SAFE_NEGATIVE))
    if not zero_is_safe:
        unsafe |= x == 0
    unsafe[..., sorted(real)] = False
    if unsafe.any():
        at = np.argwhere(unsafe)[0]
        raise UnsafePreactivation(
            f"{what} of {names[at[-1]]} is {x[tuple(at)]} at position {at[-2]}; it must be "
            f"{'0, ' * zero_is_safe}at least 20.1 or at most −104"
        )
    return np.maximum(x, 0)


def kept(exponent: np.ndarray, fades: np.ndarray | None = None) -> np.ndarray:
    """exp(−Δ·rate), which must be exactly 1 (up to 2^−26) or 0 (from 104 on), but where a state fades on purpose
    (mask).
    """
    part = (exponent > KEPT) & (exponent < -SAFE_NEGATIVE)
    if fades is not None and fades.any():
        whole = kept(np.where(fades, 0.0, exponent))
        return np.where(fades, np.exp(-exponent), whole)
    if part.any():
        worst = exponent[part][0]
        raise UnsafePreactivation(f"a state would fade by exp(−{worst:g}); it must be kept or erased whole")
    return np.where(exponent <= KEPT, 1.0, 0.0)


def run(block: SelectiveBlock, lanes: np.ndarray) -> np.ndarray:
    """The block's output, added to nothing. lanes: (batch, time, L) float64; returns the same shape."""
    features = run_features(block.features, lanes)
    read = _times(features, block.columns.read)
    x = features[..., block.channels.feature]
    y = block.channels.skip * x
    for t, (_, state) in enumerate(_recurrence(block, features, lanes)):
        y[:, t] += (state * read[:, t, None, :]).sum(-1)
    return _times(y * _gates(block, lanes), block.channels.out.T.tocsr())


@dataclass(frozen=True, eq=False)
class Trace:
    """The stages of a block, each (batch, time, …): features (F), kept = exp(−Δ·rate) and states (C, N), write and read
    (N), gate (C), out (L).
    """

    features: np.ndarray
    write: np.ndarray
    kept: np.ndarray
    states: np.ndarray
    read: np.ndarray
    gate: np.ndarray
    out: np.ndarray


def trace(block: SelectiveBlock, lanes: np.ndarray) -> Trace:
    """What `run` goes through; all states are held at once, so for short inputs."""
    features = run_features(block.features, lanes)
    kept, states = (np.stack(part, axis=1) for part in zip(*_recurrence(block, features, lanes), strict=True))
    write, read = _times(features, block.columns.write), _times(features, block.columns.read)
    shape = (*lanes.shape[:2], *states.shape[2:])
    return Trace(features, write, np.broadcast_to(kept, shape), states, read, _gates(block, lanes), run(block, lanes))


def _recurrence(
    block: SelectiveBlock, features: np.ndarray, lanes: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(exp(−Δ·rate), state after it) of every step, (batch, C or 1, N or 1) and (batch, C, N)."""
    channels, columns = block.channels, block.columns
    x = features[..., channels.feature]
    heads = None if columns.beta is None or not block.d_state else _Heads.of(block, features)
    delta_in = _times(features, channels.delta_features) + _times(lanes, channels.delta_lanes) + channels.delta_bias
    delta = rectified(delta_in, channels.names, "the Δ pre-activation", channels.real_steps, zero_is_safe=False)
    write = _times(features, columns.write)
    state = np.zeros((lanes.shape[0], len(channels.names), block.d_state))
    rate = rates(channels.decay)[:, None]
    if block.foreign is not None:
        rate = np.where(block.foreign, FORGET.rate, rate)
    fades = np.array([decay.fades for decay in channels.decay], dtype=bool)[:, None]
    own = None if columns.step is None else _column_steps(columns, features)
    for t in range(lanes.shape[1]):
        step = delta[:, t, :, None]
        erased = own[:, t, None, :] if own is not None else step * rate
        driven = x[:, t, :, None] if own is not None else step * x[:, t, :, None]
        keep = kept(erased, fades)
        if heads is None:
            state = keep * state + driven * write[:, t, None, :]
        else:
            state = heads.written(keep * state, x[:, t], write[:, t])
        yield keep, state


@dataclass(frozen=True, eq=False)
class _Heads:
    """own: (C × N) mask of the columns of each channel's head; beta: (N,)."""

    own: np.ndarray
    beta: np.ndarray

    @staticmethod
    def of(block: SelectiveBlock, features: np.ndarray) -> _Heads:
        """The heads of a block, whose keys and queries are unit vectors; UnsafePreactivation where one is not."""
        channel_group, column_group, beta = block.heads
        own = channel_group[:, None] == column_group[None, :]
        members = sparse.csr_array((column_group[None, :] == np.unique(column_group)[:, None]).astype(float))
        for what, matrix in (("key", block.columns.write), ("query", block.columns.read)):
            lengths = _times(_times(features, matrix) ** 2, members)
            if not np.isin(lengths, (0.0, 1.0)).all():
                worst = lengths[~np.isin(lengths, (0.0, 1.0))][0]
                raise UnsafePreactivation(f"a {what} has the squared length {worst:g}; it must be 0 or 1 exactly")
        return _Heads(own, beta)

    def written(self, state: np.ndarray, x: np.ndarray, key: np.ndarray) -> np.ndarray:
        """The state (batch, C, N) after x (batch, C) is written under the key (batch, N)."""
        keys = key[:, None, :] * self.own
        return state + self.beta * keys * (x - (state * keys).sum(-1))[..., None]


def _gates(block: SelectiveBlock, lanes: np.ndarray) -> np.ndarray:
    """The gate of every channel: (batch, time, C)."""
    channels = block.channels
    gate_in = _times(lanes, channels.gate)
    curved = sorted(channels.curved_gates)
    gate = rectified(gate_in, channels.names, "the gate pre-activation", channels.real_gates | channels.curved_gates)
    gate[..., curved] = gate_in[..., curved] * expit(gate_in[..., curved])
    return gate


def _column_steps(columns: Columns, features: np.ndarray) -> np.ndarray:
    """Δ of every column: (batch, time, N)."""
    steps = _times(features, columns.step) + columns.step_bias
    return rectified(steps, columns.names, "the Δ pre-activation", zero_is_safe=False)


def run_features(features: Features, lanes: np.ndarray) -> np.ndarray:
    """x̂ of every feature: (batch, time, F)."""
    rows = _times(lanes, features.rows)
    total = np.broadcast_to(features.bias, rows.shape).copy()
    for lag in range(features.taps.shape[1]):
        total[:, lag:] += features.taps[:, lag] * rows[:, : max(0, rows.shape[1] - lag)]
    return rectified(total, features.names, "the pre-activation", features.real)


def _times(x: np.ndarray, matrix: sparse.csr_array) -> np.ndarray:
    """x · matrixᵀ over the last axis."""
    flat = x.reshape(-1, x.shape[-1])
    return np.asarray((matrix @ flat.T).T).reshape(*x.shape[:-1], matrix.shape[0])
