"""Compression and memorization of the MAD suite (Poli et al. 2024), written from their description.

Compression. n tokens, then the token that stands for all of them: what the model keeps there must tell each of the n.
The suite decodes it by a network that is given a place; here a place is a token that follows and asks. Ids: tokens 0 …
V−1, the aggregation token V, places V+1 … V+n.

Memorization. A key and the insert token, again and again: at the insert token the value is right that a fixed map gives
the key. The map is no part of the sequence. Ids: keys 0 … K−1, values, and last the insert token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from verify.arguments import at_least
from verify.tasks.task import IGNORED, Batch, Task


@dataclass(frozen=True)
class Compression(Task):
    """length: n tokens, the aggregation token, and as many questions as are left, each for any place."""

    n: int
    vocab: int
    length: int

    name = "mad-compression"

    def __post_init__(self):
        at_least("n", self.n, 1, "there must be a token to keep")
        at_least("vocab", self.vocab, 1, "there must be a token to keep")
        at_least("length", self.length, self.n + 2, "the tokens, the aggregation token and a question take so much")

    @property
    def questions(self) -> int:
        """Places that are asked for, one after the other."""
        return self.length - self.n - 1

    def assemble(self, tokens: Sequence[int], places: Sequence[int]) -> tuple[list[int], list[int]]:
        """places: 0 … n − 1 each; the label of a question is the token that stood there."""
        asked = [self.vocab + 1 + place for place in places]
        labels = [IGNORED] * (self.n + 1) + [tokens[place] for place in places]
        return [*tokens, self.vocab, *asked], labels

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        tokens = rng.integers(self.vocab, size=(count, self.n)).tolist()
        places = rng.integers(self.n, size=(count, self.questions)).tolist()
        return Batch.of(self.assemble(*row) for row in zip(tokens, places, strict=True))

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for tokens in product(range(self.vocab), repeat=self.n):
            for places in product(range(self.n), repeat=self.questions):
                yield self.assemble(tokens, places)

    def exhaustive_count(self) -> int:
        return self.vocab**self.n * self.n**self.questions

    def adversarial(self) -> Iterator[Batch]:
        """One token everywhere but at one place, the first and the last place asked."""
        for case, at in (("another token first", 0), ("another token last", self.n - 1)):
            tokens = [self.vocab - 1 if i == at else 0 for i in range(self.n)]
            yield Batch.of([self.assemble(tokens, [p] * self.questions) for p in (0, self.n - 1)], case)

    def describe(self) -> str:
        return f"MAD compression: {self.n} of {self.vocab} tokens into one, {self.questions} places asked"


def random_map(keys: int, values: int, seed: int) -> tuple[int, ...]:
    """The value (0 … values − 1) of each key."""
    return tuple(np.random.default_rng(seed).integers(values, size=keys).tolist())


@dataclass(frozen=True)
class Memorization(Task):
    """facts: the value 0 … values − 1 of each key; pairs of a key and the insert token."""

    facts: tuple[int, ...]
    values: int
    length: int

    name = "mad-memorization"

    def __post_init__(self):
        at_least("facts", len(self.facts), 1, "there must be a fact to know")
        at_least("values", self.values, 1 + max(self.facts), "the facts name values up to there")
        at_least("length", self.length, 2, "a key and the insert token take so much")

    def assemble(self, asked: Sequence[int]) -> tuple[list[int], list[int]]:
        keys = len(self.facts)
        tokens = [t for key in asked for t in (key, keys + self.values)]
        return tokens, [label for key in asked for label in (IGNORED, keys + self.facts[key])]

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        asked = rng.integers(len(self.facts), size=(count, self.length // 2)).tolist()
        return Batch.of(self.assemble(row) for row in asked)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for asked in product(range(len(self.facts)), repeat=self.length // 2):
            yield self.assemble(asked)

    def exhaustive_count(self) -> int:
        return len(self.facts) ** (self.length // 2)

    def adversarial(self) -> Iterator[Batch]:
        """Every key in turn, and each key right after another that has another value."""
        pairs, keys = self.length // 2, len(self.facts)
        yield Batch.of([self.assemble([i % keys for i in range(pairs)])], "every key in turn")
        order = sorted(range(keys), key=lambda key: self.facts[key])
        turns = [order[i // 2 % keys] if i % 2 else order[-1 - i // 2 % keys] for i in range(pairs)]
        yield Batch.of([self.assemble(turns)], "low and high values in turn")

    def describe(self) -> str:
        return f"MAD memorization: {len(self.facts)} facts of {self.values} values, {self.length} tokens"
