"""KEEP n-th and absolute time on input with a positional encoding, as Corollary 2 of paper A states it: one block.

The inputs are the one-hot of the token and the position t. Stock language models over tokens have no positional input,
so what is saved is a model over numbers; `keep-nth` and `absolute-time` count the position themselves and are language
models. A position past 2^24 reaches the block rounded, which changes nothing: the latch and the ramp ask by falling
ramps of t (`exactness/saturation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compiler.language.circuit import Circuit
from compiler.language.codebook import bits
from compiler.language.source import numbers
from compiler.language.stream import constant
from compiler.language.types import Int, OneHot
from compiler.language.words import latch, minimum
from constructions.construction import LARGEST_ALPHABET, NumericConstruction, parameter
from constructions.papers import SELECTIVITY
from verify.arguments import at_least, at_most
from verify.bounds import keep_nth_bound
from verify.tasks.numbers import AnyNumbers, NumberTask
from verify.tasks.positions import MOST_RANDOM, PositionTask, clock_scores, kept_scores

LONGEST = 2**40


@dataclass(frozen=True)
class KeepNthPosition(NumericConstruction):
    """A latch of ⌈log2(V+1)⌉ bits that is open while t ≤ n."""

    name: ClassVar[str] = "keep-nth-position"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Corollary 2"

    n: int = parameter("which token to keep (1: the first)", default=5)
    vocab: int = parameter("number of tokens", default=128)

    def check_sizes(self) -> None:
        super().check_sizes()
        at_least("n", self.n, 1, "the first position is 1")
        at_least("vocab", self.vocab, 1, "there must be a token to keep")
        at_most("vocab", self.vocab, LARGEST_ALPHABET, "no more are tried")

    def circuit(self) -> Circuit:
        """Scores of the V tokens: 2<bits of v, kept> − |bits of v|."""
        self.check_sizes()
        token, position = numbers(OneHot(self.vocab), "token"), numbers(Int(1, LONGEST), "position")
        words = bits(self.vocab).words.astype(float)
        kept = latch(words.T @ token, when=position <= self.n).named("kept")
        scores = (2 * words) @ kept - words.sum(axis=1, keepdims=True) @ constant(1)
        return Circuit(self.name, scores.named("scores"), length=LONGEST)

    def tasks(self) -> list[NumberTask]:
        oracle = PositionTask(
            f"KEEP n-th with positions, n = {self.n}",
            self.vocab,
            self.n,
            lambda row: kept_scores(row, self.n, self.vocab),
        )
        return [AnyNumbers(self.circuit(), MOST_RANDOM), oracle]

    def bound(self) -> dict[str, int]:
        bound = keep_nth_bound(self.vocab, position=True)
        return {"d_inner": bound.d_inner, "d_state": bound.d_state, "layers": bound.layers}


@dataclass(frozen=True)
class AbsoluteTimePosition(NumericConstruction):
    """The position as a choice of 1 … H, "H or later" from H on."""

    name: ClassVar[str] = "absolute-time-position"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Proposition 1"

    horizon: int = parameter("positions told apart; from here on the answer is the last one", default=64)

    def check_sizes(self) -> None:
        super().check_sizes()
        at_least("horizon", self.horizon, 1, "a clock shows a time")
        at_most("horizon", self.horizon, LARGEST_ALPHABET, "no more are tried")

    def circuit(self) -> Circuit:
        """Scores of the H times: 2ct − c² at c, largest at c = t."""
        self.check_sizes()
        time = minimum(numbers(Int(1, LONGEST), "position"), self.horizon)
        times = np.arange(1.0, self.horizon + 1)[:, None]
        return Circuit(self.name, ((2 * times) @ time - times**2 @ constant(1)).named("scores"), length=LONGEST)

    def tasks(self) -> list[NumberTask]:
        oracle = PositionTask(
            f"absolute time with positions, H = {self.horizon}",
            0,
            self.horizon,
            lambda row: clock_scores(len(row), self.horizon),
        )
        return [AnyNumbers(self.circuit(), MOST_RANDOM), oracle]

    def bound(self) -> dict[str, int]:
        """A ramp of the position."""
        return {"d_inner": 1, "d_state": 1, "layers": 1}
