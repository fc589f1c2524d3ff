"""Dynamic token selection by a soft maximum (after Lemma 3.3): network, constant filter with a skip, network.

Tokens x_j = (z_j, y_j, v_j): key z and query y in [−reach, reach]^d, values |v| ≤ 1; the query is that of the last
token. The weight of a token is κ(z_j − y) = Π_i exp(−χ(1 − cos(z_j − y)_i)), by Lemma F.6 the sum over features f of
α_f φ_f(y) φ_f(z_j):

    f_1: token ↦ (φ_f(z_j)·v_j, φ_f(z_j), y_j)         the filter adds the first two over all tokens and lets y pass
    f_2: (S, Z, y) ↦ Σ_f α_f φ_f(y) S_f / Σ_f α_f φ_f(y) Z_f, clipped to [−1, 1]

With n tokens, features off by ε_φ, products by μ (in f_1) and τ (in f_2, of numbers taken down by n), and one weight no
less than ρ, η being the kernel's error,

    |num' − num| ≤ n(η + 2^d·(μ + τ) + ν) = E,   |den' − den| ≤ n(η + 2^d·τ) = E',
    |num'/den' − num/den| ≤ (E + E')/(ρ − E'),

and F.4 adds its own error; ν = 0. That is the error against the soft maximum; Lemma F.1 says how far this is from v_j*.
D = (2A + 1)^d·(d_v + 1) + d channels.

Keys and queries as unit vectors k, q of gap δ in <k, q>: z = ck, y = cq with c = √(3δ/4) (`unit_scale`), for then
G = Σ(1 − cos z_i)/c² is within (2/3)c² of |k − q|²/2 = 1 − <k, q>, a gap of δ/2 at least. As angles on a circle (d = 1,
c = 1), 1 − cos is that score itself. Keys of any norm up to 1 (`norms`): e^<k, q> also has the factor e^(|k|²/2), so
f_1 multiplies v_j and 1 by exp(−χc²(1 − |k|²)/2), squares and Lemma F.3's exp; they are off by ν, and E' is then E.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import numpy as np

from compiler.machines.fnn_ssm.relu_network import ReluNetwork, linear, of_one_input, select, side_by_side
from constructions.token_selection.relu_gadgets import kernel
from constructions.token_selection.relu_gadgets.approximation import Approximation, teeth_for, tooth
from constructions.token_selection.relu_gadgets.cosine import rounding
from constructions.token_selection.relu_gadgets.exponential import exponential_within
from constructions.token_selection.relu_gadgets.products import clip, positive, product, square_of_absolute
from constructions.token_selection.relu_gadgets.reciprocal import ratio_within


def sharpness(count: int, gap: float, error: float) -> float:
    """χ = ln(4n/ε)/δ: the soft maximum of scores with a gap of δ is then within ε/2 of the value (Lemma F.1)."""
    return log(4 * count / error) / gap


def unit_scale(gap: float) -> float:
    """c = √(3δ/4)."""
    return sqrt(3 * gap / 4)


@dataclass(frozen=True)
class SoftSelection:
    """Lemma 3.3 with all its constants: |output − soft maximum| ≤ `error`, while `tokens` is not exceeded.

    d: coordinates of a key; values: d_v; chi: χ of the kernel; reach: largest |z_i| and |y_i|; least: ρ, some token of
    the window has at least this weight; asked: the error that is asked for; norms: keys are no unit vectors; scale: c.
    """

    d: int
    values: int
    tokens: int
    chi: float
    reach: float
    least: float
    asked: float
    norms: bool = False
    scale: float = 1.0

    @cached_property
    def _share(self) -> float:
        """A quarter of what each token may contribute to E + E'."""
        return (0.3 if self.norms else 0.45) * self.least * self.asked / self.tokens / 4

    @cached_property
    def top(self) -> int:
        """A: frequencies that are kept, the fewest whose tail is small enough."""
        most = kernel.top_frequency(self.chi, self._share / 2 / self.d)
        return next(a for a in range(1, most + 1) if 2 * self.d * kernel.tail(self.chi, a) <= self._share or a == most)

    @property
    def features(self) -> int:
        """(2A + 1)^d."""
        return (2 * self.top + 1) ** self.d

    @property
    def channels(self) -> int:
        """D = (2A + 1)^d·(d_v + 1) + d."""
        return self.features * (self.values + 1) + self.d

    @cached_property
    def waves(self) -> Approximation:
        """z to all φ_f(z)."""
        return kernel.features(self.d, self.top, self.reach, self._share / 2 ** (self.d + 2))

    @property
    def _first_teeth(self) -> int:
        return teeth_for(self._share / 2**self.d)

    @property
    def _second_teeth(self) -> int:
        return teeth_for(self._share / 2 ** (self.d + 1))

    @cached_property
    def _factor(self) -> Approximation:
        """z ↦ exp(−χc²(1 − |z/c|²)/2): the sum of squares errs upwards, so what goes below 0 is taken as 0."""
        half = self.chi * self.scale**2 / 2
        m = teeth_for(self._share / 4 / (self.d * half * (self.reach / self.scale) ** 2))
        made = exponential_within(self._share / 4)
        small = linear(self.d, [{j: 1 / self.reach} for j in range(self.d)])
        squares = side_by_side(*[square_of_absolute(m).network] * self.d)
        left = linear(self.d, [dict.fromkeys(range(self.d), -half * (self.reach / self.scale) ** 2)], [half])
        network = small.then(squares, left, positive(), made.network)
        return Approximation(network, made.error + self.d * half * (self.reach / self.scale) ** 2 * tooth(m))

    @cached_property
    def _carried(self) -> ReluNetwork:
        """(z, y, v) to (v_1, …, v_{d_v}), or with norms to (v_1·e, …, v_{d_v}·e, e)."""
        d, width = self.d, 2 * self.d + self.values
        values = select(width, range(2 * d, width))
        if not self.norms:
            return values
        both = of_one_input(select(width, range(d)).then(self._factor.network), values)
        pair = product(self._first_teeth).network.then(clip())
        times = [select(self.values + 1, [0, 1 + b]).then(pair) for b in range(self.values)]
        return both.then(of_one_input(*times, select(self.values + 1, [0])))

    @cached_property
    def first(self) -> ReluNetwork:
        """f_1: (z, y, v) to (φ·v_1, …, φ·v_{d_v}, φ, y); with norms v·e and e for v and 1."""
        d, count, width = self.d, self.features, 2 * self.d + self.values
        waves = select(width, range(d)).then(self.waves.network)
        made = of_one_input(waves, select(width, range(d, 2 * d)), self._carried)
        carried = self._carried.outputs
        pairs = [i for b in range(carried) for f in range(count) for i in (f, count + d + b)]
        rest = [*(range(count) if not self.norms else ()), *range(count, count + d)]
        times = [product(self._first_teeth).network] * (carried * count)
        spread = select(made.outputs, [*pairs, *rest])
        return made.then(spread, side_by_side(*times, select(len(rest), range(len(rest)))))

    @cached_property
    def second(self) -> ReluNetwork:
        """f_2: (S_1, …, S_{d_v}, Z, y) to the d_v values."""
        count = self.features * (self.values + 1)
        return side_by_side(select(count, range(count)), self.waves.network).then(self.meeting)

    @cached_property
    def meeting(self) -> ReluNetwork:
        """What f_2 does after the waves of the query: (S_1, …, S_{d_v}, Z, φ(y)) to the d_v values."""
        d, count, sums = self.d, self.features, self.values + 1
        pairs: list[dict[int, float]] = []
        for b in range(sums):
            for f in range(count):
                pairs += [{count * sums + f: 1.0}, {b * count + f: 1 / self._most}]
        times = side_by_side(*[product(self._second_teeth).network] * (count * sums))
        alpha = kernel.weights(self.chi, d, self.top) * self._most
        added = [{b * count + f: alpha[f] for f in range(count)} for b in range(sums)]
        quotients = [select(sums, [b, self.values]).then(self._ratio.network) for b in range(self.values)]
        return linear(count * (sums + 1), pairs).then(
            times,
            linear(count * sums, added),
            of_one_input(*quotients),
            clip(1, self.values),
        )

    @property
    def _most(self) -> float:
        """Room for n features that are multiplied with values, each a little above 1."""
        return self.tokens * (1 + tooth(self._first_teeth))

    @cached_property
    def _off(self) -> tuple[float, float]:
        """(E, E')."""
        eta = kernel.kernel_error(self.chi, self.d, self.top, self.waves.error)
        mu, tau = tooth(self._first_teeth), tooth(self._second_teeth) * self._most / self.tokens
        nu = self._factor.error + mu if self.norms else 0
        above = self.tokens * (eta + 2**self.d * (mu + tau) + nu)
        return above, above if self.norms else self.tokens * (eta + 2**self.d * tau)

    @cached_property
    def _ratio(self) -> Approximation:
        above, below = self._off
        return ratio_within(self.asked / 2, self.tokens + above, self.least - below, self.tokens + below)

    @property
    def error(self) -> float:
        """The proved bound on |output − soft maximum|."""
        above, below = self._off
        return (above + below) / (self.least - below) + self._ratio.error

    @property
    def rounding(self) -> float:
        """What float64 adds to `error`: its cosines are off by more, num and den by d·2^(d+1) of that per token."""
        wave = rounding(self._share / 2 ** (self.d + 2) / (2 * self.d if self.d > 1 else 1))
        return 2 * self.tokens * 2 ** (self.d + 1) * self.d * wave / self.least

    def __call__(self, keys: np.ndarray, query: np.ndarray, values: np.ndarray) -> np.ndarray:
        """keys: (…, tokens, d), query: (…, d) of the last token, values: (…, tokens, d_v); returns (…, d_v)."""
        queries = np.broadcast_to(query[..., None, :], keys.shape)
        made = self.first(np.concatenate([keys, queries, values], -1))
        return self.second(self.filtered(made))

    def filtered(self, made: np.ndarray) -> np.ndarray:
        """(…, tokens, D) to (…, D) at the last token: the filter h = 1 on all channels but y, the skip on y."""
        return np.concatenate([made[..., : -self.d].sum(-2), made[..., -1, -self.d :]], -1)
