"""The covering number of paper D's class, with explicit constants (appendix J): Lemmas J.5–J.7 and Theorem J.3.

S(M, U, D, L, W, S, B): M blocks, each a filter over a window of U positions on D channels and a ReLU network of L
affine maps, width W, S nonzero weights; no weight beyond B ≥ 1; inputs of at most r0 ≥ 1. Norms are largest entries.

Network (J.5):  |f(x)| ≤ (2BW)^L·r0,  Lip(f) ≤ (BW)^L,  weights off by r: |f − f~| ≤ L(W + 1)(2BW)^(L−1)·r0·r.
Filter (J.6):   |g(X)| ≤ 2(U + 1)DB²·r0 = Lip(g)·r0,    weights off by r: ≤ (U + 1)DB·r0·(4 + 4πB)·r.
Chain (J.7):    a block multiplies distances by λ, sizes by μ, and its own weights add π_m·r: Λ = Σ_m λ^(M−m)·π_m.
Then log N(δ) ≤ nz·log(2P(2B + 1)·max(1, Λ/δ)) with nz weights that are not 0 among P (J.4).

(The formulas are lost in the text of the paper that we read: all of these are ours, after its words.)

Theorem J.3, log N(δ) ≤ C·M²L(S + D²)·X with X = ln(D(U + 1)(L + 1)W(B + 1)/δ) ≥ ln 4, holds for C = 57. With g =
(2BW)^L·2(U + 1)DB² each block's growth, π_m ≤ (L + 17/4)·g^m, so Λ ≤ M(L + 17/4)·g^M; 2BW ≤ e^X and 2(U + 1)DB ≤ e^X
give ln g ≤ (L + 2)X; P ≤ 8MLW². All together nz·(6.5 + 2(M − 1) + M(L + 2))·X ≤ nz·9.5·ML·X, and nz ≤ 6M(S + D²). (A
constant of 4 is enough for many channels, and too little for one: nz has 5D weights besides S + D².)

Logarithms throughout: Λ itself is far beyond every float.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, log1p, pi

from verify.arguments import at_least

CONSTANT = 57.0


@dataclass(frozen=True)
class SsmClass:
    """S(M, U, D, L, W, S, B): the class, and its letters, as we restore them."""

    blocks: int
    window: int
    channels: int
    depth: int
    width: int
    nonzeros: int
    largest: float

    def __post_init__(self) -> None:
        at_least("blocks", self.blocks, 1, "a class has a block")
        at_least("window", self.window, 0, "the present token is seen")
        at_least("channels", self.channels, 1, "a block has a channel")
        at_least("depth", self.depth, 1, "a network has an affine map")
        at_least("width", self.width, self.channels, "a network takes the channels")
        at_least("nonzeros", self.nonzeros, 0, "there are no fewer than none")
        at_least("largest", self.largest, 1, "the bounds are for weights of up to 1 and more")

    @property
    def weights(self) -> int:
        """P = M(LW(W + 1) + D² + 5D): all weights, zero or not."""
        return self.blocks * (self.depth * self.width * (self.width + 1) + self.channels**2 + 5 * self.channels)

    @property
    def nonzero_weights(self) -> int:
        """nz = M(S + D² + 5D)."""
        return self.blocks * (self.nonzeros + self.channels**2 + 5 * self.channels)

    def log_covering(self, delta: float, reach: float = 1.0) -> float:
        """ln N(δ): nz·ln(2P(2B + 1)·max(1, Λ/δ)); reach = r0."""
        spread = max(0.0, self.log_sensitivity(reach) - _log(delta, "delta"))
        return self.nonzero_weights * (log(2 * self.weights * (2 * self.largest + 1)) + spread)

    def log_sensitivity(self, reach: float = 1.0) -> float:
        """ln Λ: weights off by r move the output by at most Λ·r."""
        at_least("reach", reach, 1, "the bounds are for inputs of up to 1 and more")
        filter_ = filter_growth(self.window, self.channels, self.largest)
        lip = network_lipschitz(self.depth, self.width, self.largest)
        grown = network_growth(self.depth, self.width, self.largest)
        size, terms = log(reach), []
        for m in range(self.blocks):
            own_filter = filter_sensitivity(self.window, self.channels, self.largest) + size + lip
            own_network = network_sensitivity(self.depth, self.width, self.largest) + size + filter_
            terms.append((self.blocks - 1 - m) * (lip + filter_) + _log_sum(own_filter, own_network))
            size += filter_ + grown
        return _log_sum(*terms)

    def theorem(self, delta: float) -> float:
        """57·M²·L·(S + D²)·ln(D(U + 1)(L + 1)W(B + 1)/δ): Theorem J.3 as reconstructed, for r0 = 1."""
        inside = [self.channels, self.window + 1, self.depth + 1, self.width, self.largest + 1]
        factor = CONSTANT * self.blocks**2 * self.depth * (self.nonzeros + self.channels**2)
        return factor * (sum(map(log, inside)) - _log(delta, "delta"))


def network_growth(depth: int, width: int, largest: float) -> float:
    """ln (2BW)^L."""
    return depth * log(2 * largest * width)


def network_lipschitz(depth: int, width: int, largest: float) -> float:
    """ln (BW)^L."""
    return depth * log(largest * width)


def network_sensitivity(depth: int, width: int, largest: float) -> float:
    """ln L(W + 1)(2BW)^(L−1), for inputs of at most 1."""
    return log(depth) + log(width + 1) + (depth - 1) * log(2 * largest * width)


def filter_growth(window: int, channels: int, largest: float) -> float:
    """ln 2(U + 1)DB²: growth and Lipschitz constant alike, for a filter is linear."""
    return log(2 * (window + 1) * channels) + 2 * log(largest)


def filter_sensitivity(window: int, channels: int, largest: float) -> float:
    """ln (U + 1)DB(4 + 4πB), for inputs of at most 1."""
    return log((window + 1) * channels * largest) + log(4 + 4 * pi * largest)


def _log_sum(*terms: float) -> float:
    most = max(terms)
    return most + log1p(sum(exp(term - most) for term in terms) - 1)


def _log(value: float, name: str) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{name} = {value} is no distance to cover with; it must lie above 0 and below 1.")
    return log(value)
