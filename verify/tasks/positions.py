"""KEEP n-th and absolute time on inputs with a position, over numbers: scores by plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from verify.tasks.numbers import ROWS, NumberBatch, NumberTask

MOST_RANDOM = 2 * ROWS  # the interpreter runs every position with Fractions
Scores = Callable[[Sequence[int]], list[list[int] | None]]


def kept_scores(tokens: Sequence[int], n: int, vocab: int) -> list[list[int] | None]:
    """From position n on: for each token v, (bits of v + 1 that the n-th has as well) minus (those that it has not).

    None before n. The n-th token scores as many as it has bits, and every other one less.
    """
    answers: list[list[int] | None] = []
    for t in range(1, len(tokens) + 1):
        if t < n:
            answers.append(None)
            continue
        kept = tokens[n - 1] + 1
        answers.append([(v & kept).bit_count() - (v & ~kept).bit_count() for v in range(1, vocab + 1)])
    return answers


def clock_scores(length: int, horizon: int) -> list[list[int] | None]:
    """2ct − c² for c = 1 … H at t = 1 …, t cut off at H: the nearest c has most."""
    return [[2 * c * min(t, horizon) - c * c for c in range(1, horizon + 1)] for t in range(1, length + 1)]


class PositionTask(NumberTask):
    """Random tokens (none where vocab is 0) at the positions 1, 2, …, past `asked_from`."""

    name = "positions"
    most_random = MOST_RANDOM

    def __init__(self, what: str, vocab: int, asked_from: int, scores: Scores):
        self.what, self.vocab, self.scores = what, vocab, scores
        self.length = min(asked_from, 4096) + 16

    def describe(self) -> str:
        return f"{self.what}: {self.length} positions, against plain Python"

    def sizes(self) -> tuple[float, ...]:
        return (1.0,)

    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        rows = rng.integers(max(1, self.vocab), size=(ROWS, self.length))
        wanted = [self.scores(row) for row in rows.tolist()]
        width = len(next(answer for answer in wanted[0] if answer is not None))
        expected = np.array([[[np.nan] * width if a is None else a for a in row] for row in wanted], dtype=float)
        inputs = {"position": np.tile(np.arange(1.0, self.length + 1)[None, :, None], (ROWS, 1, 1))}
        if self.vocab:
            inputs["token"] = np.eye(self.vocab)[rows]
        return NumberBatch(inputs, size, expected)
