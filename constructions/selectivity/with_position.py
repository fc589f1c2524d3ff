"""KEEP n-th on input with a positional encoding, as Corollary 2 of paper A states it, and a clock on the same input:
one block each, but two for KEEP n-th on Mamba-2. Proposition 1 of the paper is about a clock without the position:
`absolute-time`.

The inputs are the one-hot of the token and the position t. Stock language models over tokens have no positional input,
so what is saved is a model over numbers; `keep-nth` and `absolute-time` count the position themselves and are language
models. A position past 2^24 reaches the block rounded, which changes nothing: the latch and the ramp ask by falling
ramps of t (`exactness/saturation.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from compiler.language.circuit import Circuit
from compiler.language.codebook import bits
from compiler.language.source import numbers
from compiler.language.stream import constant
from compiler.language.types import Int, OneHot
from compiler.language.words import latch, minimum
from constructions.construction import LARGEST_ALPHABET, NumericConstruction, parameter
from constructions.papers import SELECTIVITY
from verify.arguments import at_least, at_most, one_of
from verify.tasks.numbers import AnyNumbers, NumberTask
from verify.tasks.positions import MOST_RANDOM, PositionTask, clock_scores, kept_scores

if TYPE_CHECKING:
    from compiler.artifact.numeric import NumericStack
    from compiler.compiled import Compiled
    from verify.certificates import Certificate

LONGEST = 2**40


@dataclass(frozen=True)
class _WithPosition(NumericConstruction):
    """What the two share: the mixer, and a certificate of the scores at every position (`verify/certificates`)."""

    unsaid: ClassVar[Mapping[str, Any]] = {"arch": "mamba"}

    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba", kw_only=True)

    @property
    def target(self) -> str:  # type: ignore[override]
        return self.arch

    def check_sizes(self) -> None:
        super().check_sizes()
        one_of("arch", self.arch, ("mamba", "mamba2"))

    def certificate(self, stack: NumericStack, compiled: Compiled) -> Certificate:  # type: ignore[override]
        """Every score at every position, from the weights."""
        from verify.certificates.positions import certify_positions

        scores, last = self._contents()
        return certify_positions(stack, scores, last, compiled.source.max_length)

    def _contents(self) -> tuple[np.ndarray, int]:
        """(scores of each token, or of each place, by plain Python; the place from which the answer stays)."""
        raise NotImplementedError


@dataclass(frozen=True)
class KeepNthPosition(_WithPosition):
    """A latch of ⌈log2(V+1)⌉ bits that is open while t ≤ n."""

    name: ClassVar[str] = "keep-nth-position"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Corollary 2"
    mixers: ClassVar[tuple[str, ...]] = ("mamba",)

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

    def asks_where(self) -> str:
        return f"from position {self.n} on, where the positions are 1, 2, 3, … with a token at each"

    def tasks(self) -> list[NumberTask]:
        oracle = PositionTask(
            f"KEEP n-th with positions, n = {self.n}",
            self.vocab,
            self.n,
            lambda row: kept_scores(row, self.n, self.vocab),
        )
        return [AnyNumbers(self.circuit(), MOST_RANDOM), oracle]

    def otherwise(self) -> str:
        """The corollary takes the difference of two bases, whose steps end at n − 1 and n."""
        return "by one step and not by two"

    def _contents(self) -> tuple[np.ndarray, int]:
        return np.array([kept_scores([token], 1, self.vocab)[0] for token in range(self.vocab)], float), self.n


@dataclass(frozen=True)
class AbsoluteTimePosition(_WithPosition):
    """The position as a choice of 1 … H, "H or later" from H on."""

    name: ClassVar[str] = "absolute-time-position"
    theorem: ClassVar[str] = f"{SELECTIVITY}, beside Proposition 1, with the position as an input"
    mixers: ClassVar[tuple[str, ...]] = ("mamba",)

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

    def asks_where(self) -> str:
        return "where the positions are 1, 2, 3, …"

    def tasks(self) -> list[NumberTask]:
        oracle = PositionTask(
            f"absolute time with positions, H = {self.horizon}",
            0,
            self.horizon,
            lambda row: clock_scores(len(row), self.horizon),
        )
        return [AnyNumbers(self.circuit(), MOST_RANDOM), oracle]

    def _contents(self) -> tuple[np.ndarray, int]:
        return np.array(clock_scores(self.horizon, self.horizon), float), self.horizon
