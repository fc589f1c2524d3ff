"""The word after the earlier place of the last n words (Lemma H.3), by the tensor feature map over d' = nk signs.

Words are vectors of k signs whose products are at most k/2 (Lemma H.1), so keys and queries are vectors of d' = nk
signs over √d'. The weight of a token whose key differs from the query in h signs is ρ^h, which is
exp(−χ(1 − <key, query>)) with χ = (d'/2)·ln 1/ρ. It is a product over coordinates, and on signs each factor has two
features instead of 2A + 1,

    ρ^[s ≠ t] = (1 + ρ)/2 + (1 − ρ)/2·s·t,

since cos(a·s) is constant and sin(a·s) odd in s: the waves of Lemma F.6 collapse into these. So the tensor feature map
is the 2^d' products of signs s_S = Π_{i∈S} s_i, S ⊆ {1, …, d'}, with weights that add up to 1,
α_S = ((1 + ρ)/2)^(d'−|S|)·((1 − ρ)/2)^|S|. There is no error in it:

    f_1: token ↦ (key_S·v_b, key_S, query)     v_b = ±1 is a sign of the value, so these are products of signs
    g:   the filter h = 1 adds the first two over all tokens and lets the query pass
    f_2: Σ_S α_S·query_S·(sum of key_S·v_b) / Σ_S α_S·query_S·(sum of key_S), clipped to [−1, 1]

Products of a sign and a whole number are exact too (`signs`), and a match makes the denominator 1 or more. So against
the soft maximum only F.4's division errs. Words differ in k/4 signs or more: with one match among T tokens the soft
maximum is within 2(T − 1)ρ^⌈k/4⌉ of the value (Lemma F.1). Half of ε each; ε < 1 is enough to read the signs off, that
is 1/√k for the vectors over √k. (The lemma's own number is lost in the text that we read.)

2^d' is exponential: with k = 28 and more, as `sign_length` has it for Lemma H.1, no machine builds it. For k ≤ 4 all
2^k vectors of signs are words, since two of them have a product of k − 2 ≤ k/2 at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import ceil, log2

import numpy as np

from compiler.machines.fnn_ssm.relu_network import ReluNetwork, linear, of_one_input, select, side_by_side
from constructions.token_selection.relu_gadgets.approximation import Approximation
from constructions.token_selection.relu_gadgets.products import clip
from constructions.token_selection.relu_gadgets.reciprocal import ratio_within
from constructions.token_selection.relu_gadgets.signs import sign_products, sign_times
from verify.arguments import at_least

MOST_COORDINATES = 10  # 2^10 features for each sign of a value


@dataclass(frozen=True)
class ContextMatch:
    """Lemma H.3 with all its constants: |output − sign of the value| ≤ `error` where one key matches.

    n: words of a context; k: signs of a word; tokens: T, as many as the window holds; asked: ε.
    """

    n: int
    k: int
    tokens: int
    asked: float

    def __post_init__(self) -> None:
        at_least("n", self.n, 1, "a context has a word")
        at_least("k", self.k, 1, "a word has a sign")
        at_least("tokens", self.tokens, 2, "there is something to choose")
        if not 0 < self.asked < 1:
            raise ValueError(f"asked = {self.asked}: signs are read off within an error above 0 and below 1.")
        if self.d > MOST_COORDINATES:
            raise ValueError(
                f"n·k = {self.d} makes 2^{self.d} features, and {MOST_COORDINATES} coordinates are the most that are "
                "built; take fewer words or signs."
            )

    @property
    def d(self) -> int:
        """d' = nk."""
        return self.n * self.k

    @property
    def features(self) -> int:
        """2^d'."""
        return 1 << self.d

    @property
    def channels(self) -> int:
        """D = 2^d'·(k + 1) + d'."""
        return self.features * (self.k + 1) + self.d

    @property
    def fewest(self) -> int:
        """⌈k/4⌉: signs in which two words differ, at least."""
        return ceil(self.k / 4)

    @property
    def share(self) -> Fraction:
        """ρ, the power of two with 2(T − 1)ρ^⌈k/4⌉ ≤ ε/2."""
        return Fraction(1, 2 ** ceil(log2(4 * (self.tokens - 1) / self.asked) / self.fewest))

    @property
    def soft_error(self) -> float:
        """Lemma F.1: how far the soft maximum is from the value of the one match."""
        return float(2 * (self.tokens - 1) * self.share**self.fewest)

    @cached_property
    def subsets(self) -> list[tuple[int, ...]]:
        return [s for m in range(self.d + 1) for s in combinations(range(self.d), m)]

    @cached_property
    def weights(self) -> list[Fraction]:
        """α_S, exactly."""
        same, other = (1 + self.share) / 2, (1 - self.share) / 2
        return [same ** (self.d - len(s)) * other ** len(s) for s in self.subsets]

    @cached_property
    def ratio(self) -> Approximation:
        """F.4 on |y| ≤ T, x in [1, T]."""
        return ratio_within(self.asked / 2, self.tokens, 1, self.tokens)

    @property
    def error(self) -> float:
        """The proved bound."""
        return self.soft_error + self.ratio.error

    @cached_property
    def first(self) -> ReluNetwork:
        """f_1: (key, query, value) of d', d' and k signs to D channels."""
        d, width = self.d, 2 * self.d + self.k
        with_value = [(*s, 2 * d + b) for b in range(self.k) for s in self.subsets]
        return of_one_input(sign_products(width, [*with_value, *self.subsets]), select(width, range(d, 2 * d)))

    @cached_property
    def second(self) -> ReluNetwork:
        """f_2: the sums and the query to the k signs."""
        count, groups = self.features, self.k + 1
        both = side_by_side(select(count * groups, range(count * groups)), sign_products(self.d, self.subsets))
        pairs = [i for g in range(groups) for f in range(count) for i in (count * groups + f, g * count + f)]
        added = [{g * count + f: self.weights[f] for f in range(count)} for g in range(groups)]
        quotients = [select(groups, [b, self.k]).then(self.ratio.network) for b in range(self.k)]
        return both.then(
            select(both.outputs, pairs),
            sign_times(self.tokens, count * groups),
            linear(count * groups, added),
            of_one_input(*quotients),
            clip(1, self.k),
        )

    def filtered(self, made: np.ndarray) -> np.ndarray:
        """(…, tokens, D) to (…, D) at the last token: the filter h = 1, and the skip for the query."""
        return np.concatenate([made[..., : -self.d].sum(-2), made[..., -1, -self.d :]], -1)
