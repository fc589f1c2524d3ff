"""The class S(M, U, D, L, W, S, B) of paper D as exact data: convolution-SSM layers, each before a ReLU network.

It is the class as we restore it: the formulas of the layer and its filter are lost in the text that we read, so that
whether the paper has the skip D cannot be read.

    Z = Dec · (f_M ∘ g_M ∘ … ∘ f_1 ∘ g_1 ∘ Emb)(X)
    g(X)_t = Σ_{j=0}^{U} h_j ⊙ (W^V X_{t−j}) + D ⊙ (W^V X_t)        tokens outside of the sequence are 0
    f(y)   = A_L R(… R(A_1 y + b_1) …) + b_L                         at each position

What a convolution is there for are its *taps*: for some rows of lanes the present value, a value some positions back,
or the running sum. `Network.run` computes those, by additions, products with dyadic numbers and max(·, 0) alone, on
float64 arrays or on object arrays of integers and Fractions. `bank` is the same layer as filters of cosines and sines.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.operations.exact import shifted
from compiler.lattice.domain import least_unit
from compiler.machines.fnn_ssm.filters import (
    NOTHING,
    ONE,
    SUM,
    Filter,
    Wave,
    all_delays,
    delay,
    delay_of_one,
    delay_weights,
)
from compiler.machines.fnn_ssm.relu_network import ReluNetwork, exact, linear


@dataclass(frozen=True)
class Tap:
    """One number that a convolution hands to its network: lane x_t (delay 0), x_{t−k} (delay k), or Σ_{s≤t} x_s."""

    lane: int
    delay: int = 0
    sums: bool = False
    name: str = ""


@dataclass(frozen=True, eq=False)
class Bank:
    """A convolution as filters. Channel c filters lane `lane[c]` (a row of W^V) by `filters[c]`, plus skip.

    mix: (tap, channel, weight): what the channels add up to, folded into the first matrix of the network behind.
    """

    window: int
    lane: tuple[int, ...]
    filters: tuple[Filter, ...]
    skip: tuple[int, ...]
    mix: tuple[tuple[int, int, Wave], ...]

    @property
    def channels(self) -> int:
        return len(self.lane)


@dataclass(frozen=True)
class Convolution:
    """The taps of one layer, over a window of U + 1 places."""

    lanes: int
    window: int
    taps: tuple[Tap, ...]

    def run(self, x: np.ndarray) -> np.ndarray:
        """(batch, time, lanes) to (batch, time, taps)."""
        sums = np.cumsum(x, axis=1) if any(tap.sums for tap in self.taps) else x
        out = np.empty((*x.shape[:2], len(self.taps)), dtype=x.dtype)
        for i, tap in enumerate(self.taps):
            source = sums if tap.sums else x
            out[..., i] = shifted(source[..., [tap.lane]], tap.delay)[..., 0]
        return out

    @cached_property
    def bank(self) -> Bank:
        """The least of the ways here: one channel for a skip, a sum, or a delay over two places; else by Fourier."""
        places = self.window + 1
        lane: list[int] = []
        filters: list[Filter] = []
        skip: list[int] = []
        mix: list[tuple[int, int, Wave]] = []

        def channel(source: int, filter: Filter, direct: int = 0) -> int:
            lane.append(source)
            filters.append(filter)
            skip.append(direct)
            return len(lane) - 1

        delays: dict[int, list[int]] = defaultdict(list)
        for i, tap in enumerate(self.taps):
            if tap.delay and places > 2:
                delays[tap.lane].append(i)
                continue
            filter = SUM if tap.sums else delay_of_one() if tap.delay else NOTHING
            mix.append((i, channel(tap.lane, filter, int(not tap.sums and not tap.delay)), Wave(ONE)))
        for source, wanted in delays.items():
            if len(wanted) * (places // 2 + 1) <= places:
                for i in wanted:
                    mix += [(i, channel(source, f), Wave(ONE)) for f in delay(self.taps[i].delay, places)]
            else:
                shared = [channel(source, f) for f in all_delays(places)]
                for i in wanted:
                    weights = delay_weights(self.taps[i].delay, places)
                    mix += [(i, c, w) for c, w in zip(shared, weights, strict=True)]
        return Bank(self.window, tuple(lane), tuple(filters), tuple(skip), tuple(mix))


@dataclass(frozen=True, eq=False)
class Network:
    """embedding: (vocabulary × lanes), a token's row is E e + b; layers: (g, f) pairs; decoder: (outputs × lanes)."""

    embedding: sparse.csr_array
    layers: tuple[tuple[Convolution, ReluNetwork], ...]
    decoder: sparse.csr_array

    def run(self, tokens: np.ndarray, dtype: type = object) -> np.ndarray:
        """(batch, time) ids to (batch, time, outputs)."""
        return self.trace(tokens, dtype)[-1]

    def trace(self, tokens: np.ndarray, dtype: type = object) -> list[np.ndarray]:
        """The embedded tokens, what each convolution and each network gives, and the scores."""
        rows = self.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)
        parts = [_exact(rows) if dtype is object else rows]
        for convolution, network in self.layers:
            parts.append(convolution.run(parts[-1]))
            parts.append(network(parts[-1]))
        parts.append(ops.apply(self.decoder, parts[-1]))
        return parts

    def reach(self, max_length: int) -> float:
        """A bound on every number and partial sum over sequences of this length, in multiples of the finest unit."""
        bounds = np.abs(self.embedding).max(axis=0).toarray().ravel() if self.embedding.nnz else np.zeros(self.lanes)
        unit, most = min(1.0, least_unit(self.embedding.data)), 0.0
        for convolution, network in self.layers:
            bounds = np.array([bounds[t.lane] * (max_length if t.sums else 1) for t in convolution.taps])
            for layer in network.layers:
                weights = np.array([float(w) for row in layer.rows for w in row.values()])
                bias = np.array([float(b) for b in layer.bias])
                sums = [sum(abs(float(w)) * bounds[j] for j, w in row.items()) for row in layer.rows]
                bounds = np.array(sums) + np.abs(bias)
                unit = min(unit * min(1.0, least_unit(weights)), least_unit(bias))
                most = max(most, bounds.max(initial=0))
        scores = (np.abs(self.decoder) @ bounds).max(initial=0)
        return max(most, scores) / (unit * min(1.0, least_unit(self.decoder.data)))

    @property
    def lanes(self) -> int:
        return self.embedding.shape[1]


def _exact(rows: np.ndarray) -> np.ndarray:
    return np.frompyfunc(exact, 1, 1)(rows)


def over_channels(convolution: Convolution, network: ReluNetwork) -> ReluNetwork:
    """The network as the class counts it, as we restore that: its first matrix also adds up what the channels of the
    bank are parts of.
    """
    bank = convolution.bank
    rows: list[dict[int, float]] = [{} for _ in convolution.taps]
    for tap, channel, wave in bank.mix:
        rows[tap][channel] = float(wave)
    return linear(bank.channels, rows).then(network)
