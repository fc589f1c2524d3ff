"""Copying by n-grams with random ±1 features of ours (after Theorem 3.1), right with probability 1 − ε'.

A context (c_1, …, c_n) of words is bound by F products of random signs, φ_f = Π_i R_{i,f}[c_i] (what stands before the
separator counts as +1). With keys one word behind, and the d_v signs of a word as its value,

    f_1: token ↦ (φ_f(key)·v_b, query)     counts of the signs −1, taken modulo two
    g:   the filter h = 1 adds S_{f,b} over all tokens
    f_2: y_b = (1/F)·Σ_f φ_f(query)·S_{f,b}     a sign times a whole number of at most `pairs`

are exact ReLU networks: no division, no squares. Where one context is the query's, y_b = v_b + (1/F)·Σ_f Z_f; Z_f has
mean 0, |Z_f| ≤ P for P stored pairs, and variance at most 2P, for products of different contexts have mean 0 and what
the model itself has written stores each pair at most once more. By Bernstein, for any e > 0,

    P[|y_b − v_b| ≥ e] ≤ 2·exp(−F·e²/2/(2P + P·e/3)),

and with e = 1 over the N·d_v signs of a string F ≥ (28/3)(2N + 1)·ln(2N·d_v/ε') is enough (P ≤ 2N + 2, each end has
room). D = F·d_v and n one-hot words.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from compiler.machines.fnn_ssm.relu_network import Number, ReluNetwork, linear, of_one_input, select, side_by_side
from constructions.token_selection.relu_gadgets.products import HALF
from constructions.token_selection.relu_gadgets.signs import sign_of_count, sign_times
from verify.arguments import at_least


@dataclass(frozen=True)
class RandomFeatures:
    """n: words of a context; letters: words and the separator; digits: d_v; pairs: P; count: F; seed: of the signs."""

    n: int
    letters: int
    digits: int
    pairs: int
    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, what in (("n", "a context has a word"), ("letters", "there is a word"), ("digits", "a word has one")):
            at_least(name, getattr(self, name), 1, what)
        at_least("pairs", self.pairs, 1, "there is something to look up")
        at_least("count", self.count, 1, "a key is bound by a feature")

    @cached_property
    def negative(self) -> np.ndarray:
        """Whether R_{i,f}[c] is −1: (F, n·letters) of 0 and 1, over one-hot contexts."""
        return np.random.default_rng(self.seed).integers(0, 2, (self.count, self.n * self.letters))

    @property
    def channels(self) -> int:
        """D."""
        return self.count * self.digits + self.n * self.letters

    @cached_property
    def first(self) -> ReluNetwork:
        """f_1: (key, query) as n one-hot letters each, 0 where nothing stands, and d_v signs, to D channels."""
        contexts = self.n * self.letters
        width = 2 * contexts + self.digits
        counts: list[tuple[dict[int, Number], Number, int]] = [
            (row | {2 * contexts + b: -HALF}, HALF, self.n + 1) for b in range(self.digits) for row in self._rows
        ]
        return of_one_input(sign_of_count(width, counts), select(width, range(contexts, 2 * contexts)))

    @cached_property
    def second(self) -> ReluNetwork:
        """f_2: the sums and the query to y_1, …, y_{d_v}."""
        sums, contexts = self.count * self.digits, self.n * self.letters
        signs = sign_of_count(contexts, [(row, 0, self.n) for row in self._rows])
        both = side_by_side(select(sums, range(sums)), signs)
        pairs = [i for b in range(self.digits) for f in range(self.count) for i in (sums + f, b * self.count + f)]
        mean = Fraction(1, self.count)
        added = [{b * self.count + f: mean for f in range(self.count)} for b in range(self.digits)]
        return both.then(select(both.outputs, pairs), sign_times(self.pairs, sums), linear(sums, added))

    @cached_property
    def _rows(self) -> list[dict[int, Number]]:
        """How many of a context's signs are −1, as a sum of its one-hot letters."""
        return [{int(j): 1 for j in np.flatnonzero(row)} for row in self.negative]
