"""KEEP n-th on input with a positional encoding, as Corollary 2 of paper A states it: one block.

The input lanes are the one-hot of the token and the position t. A position past 2^24 reaches the
block rounded, which changes nothing: the latch asks by falling ramps of t (`exactness/saturation.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compiler.artifact.numeric import NumericStack, numeric_stack
from compiler.driver import Compiled, compile
from compiler.language.circuit import Circuit
from compiler.language.codebook import bits
from compiler.language.source import numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Int, OneHot
from compiler.language.words import latch

LONGEST = 2**40


@dataclass(frozen=True, eq=False)
class PositionedKeep:
    """A compiled KEEP n-th over the input streams `token` (one-hot) and `position`."""

    n: int
    vocab: int
    token: Stream
    position: Stream
    compiled: Compiled

    @cached_property
    def stack(self) -> NumericStack:
        return numeric_stack(self.compiled)

    def __call__(self, tokens: np.ndarray, positions: np.ndarray | None = None) -> np.ndarray:
        """The answers (batch, time) for token ids (batch, time); positions (time,), rising, by default 1, 2, …"""
        return self.stack.run(self.inputs(tokens, positions)).argmax(axis=-1)

    def inputs(self, tokens: np.ndarray, positions: np.ndarray | None = None) -> dict[Stream, np.ndarray]:
        """The values of the input streams."""
        places = np.arange(1, tokens.shape[1] + 1) if positions is None else np.asarray(positions)
        return {
            self.token: np.eye(self.vocab)[tokens],
            self.position: np.broadcast_to(places[None, :, None], (*tokens.shape, 1)),
        }


def keep_nth_with_position(n: int, vocab: int) -> PositionedKeep:
    """Compile it. A latch of ⌈log2(V+1)⌉ bits that is open while t ≤ n."""
    if n < 1 or vocab < 1:
        raise ValueError(f"n = {n} and vocab = {vocab} must be at least 1")
    token, position = numbers(OneHot(vocab), "token"), numbers(Int(1, LONGEST), "position")
    words = bits(vocab).words.astype(float)
    kept = latch(words.T @ token, when=position <= n).named("kept")
    logits = (2 * words) @ kept - words.sum(axis=1, keepdims=True) @ constant(1)
    return PositionedKeep(
        n, vocab, token, position, compile(Circuit("keep-nth", logits.named("logits"), length=LONGEST))
    )
