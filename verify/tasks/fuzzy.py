"""Fuzzy in-context recall of the MAD suite: words of several tokens under words of several tokens.

Token ids: keys 0 … K−1, values, the padding, and last the prefix. Padding stands in front, then keys (of `key_size`
distinct tokens) and values (of one to `value_size` distinct ones) one after the other; behind the prefix one key comes
again, and each token of its value is asked, the earlier ones being given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from verify.arguments import at_least
from verify.tasks.task import IGNORED, Batch, Task

Word = tuple[int, ...]


@dataclass(frozen=True)
class FuzzyRecall(Task):
    """As many words as fit; a key has one value throughout."""

    keys: int
    values: int
    key_size: int
    value_size: int
    length: int

    name = "fuzzy-recall"

    def __post_init__(self):
        at_least("keys", self.keys, self.key_size, "the tokens of a key are distinct")
        at_least("values", self.values, self.value_size, "the tokens of a value are distinct")
        needed = 2 * (self.key_size + self.value_size) + 1
        at_least("length", self.length, needed, "a word, its value, the prefix and both again take so much")

    def _word(self, rng: np.random.Generator, first: int, count: int, size: int) -> Word:
        return tuple((first + rng.permutation(count)[:size]).tolist())

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        return Batch.of(self._one(rng) for _ in range(count))

    def _one(self, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        value_of: dict[Word, Word] = {}
        words: list[tuple[Word, Word]] = []
        room = self.length - 1 - self.key_size - self.value_size
        while room >= self.key_size + self.value_size:
            known = sorted(value_of)
            again = known and rng.random() < 0.3
            key = known[int(rng.integers(len(known)))] if again else self._word(rng, 0, self.keys, self.key_size)
            size = int(rng.integers(1, self.value_size + 1))
            value = value_of.setdefault(key, self._word(rng, self.keys, self.values, size))
            words.append((key, value))
            room -= len(key) + len(value)
        probe = words[int(rng.integers(len(words)))]
        return self.assemble(words, probe)

    def assemble(self, words: Sequence[tuple[Word, Word]], probe: tuple[Word, Word]) -> tuple[list[int], list[int]]:
        """Tokens and labels, with padding in front up to the length."""
        key, value = probe
        text = [t for pair in words for word in pair for t in word]
        pad = self.keys + self.values
        tokens = [*text, pad + 1, *key, *value[:-1]]
        front = self.length - len(tokens)
        labels = [IGNORED] * (self.length - len(value)) + list(value)
        return [pad] * front + tokens, labels

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every pair of words with their values, each asked: small domains only (two words, no more)."""
        keys = list(permutations(range(self.keys), self.key_size))
        values = [
            tuple(self.keys + v for v in word)
            for size in range(1, self.value_size + 1)
            for word in permutations(range(self.values), size)
        ]
        for a, b in product(keys, repeat=2):
            for value, other in product(values, repeat=2):
                if a != b or value == other:
                    words = [(a, value), (b, other)]
                    yield from (self.assemble(words, probe) for probe in words[: 1 + (a != b)])

    def exhaustive_count(self) -> int:
        keys = len(list(permutations(range(self.keys), self.key_size)))
        values = sum(len(list(permutations(range(self.values), s))) for s in range(1, self.value_size + 1))
        return 2 * keys * (keys - 1) * values**2 + keys * values

    def adversarial(self) -> Iterator[Batch]:
        """Keys that share tokens with their neighbours, in turn and backwards."""
        ahead, back = tuple(range(self.key_size)), tuple(reversed(range(self.key_size)))
        one, two = (self.keys,), tuple(self.keys + i for i in range(self.value_size))
        pairs = [(ahead, one), (back, two)] if ahead != back else [(ahead, two)]
        yield Batch.of([self.assemble(pairs, probe) for probe in pairs], "a key and the same backwards")

    def describe(self) -> str:
        return (
            f"MAD fuzzy recall: keys of {self.key_size} of {self.keys} tokens, values of up to {self.value_size} of "
            f"{self.values}, {self.length} tokens"
        )
