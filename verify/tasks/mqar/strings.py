"""Every token string: the whole domain of a circuit that promises the right answer on any input."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product

import numpy as np

from verify.arguments import at_least, one_of
from verify.tasks.mqar.family import NEUTRAL, MqarTask
from verify.tasks.mqar.oracle import POLICIES
from verify.tasks.task import Batch


def all_strings(alphabet_size: int, length: int) -> Iterator[tuple[int, ...]]:
    """All alphabet_size**length strings of the tokens 0..alphabet_size-1, in lexicographic order, lazily."""
    at_least("alphabet_size", alphabet_size, 1, "a string needs a token")
    at_least("length", length, 1, "a string has at least one token")
    return product(range(alphabet_size), repeat=length)


@dataclass(frozen=True)
class AllStrings(MqarTask):
    """Uniformly random tokens, asked at every key position where the write policy has an answer."""

    write: str = "first"

    name = "mqar-strings"

    def __post_init__(self):
        super().__post_init__()
        one_of("write", self.write, tuple(POLICIES))

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Strings of independent uniform tokens."""
        tokens = rng.integers(self.alphabet_size, size=(count, self.length))
        return Batch.of((row, self.oracle_labels(row, self.write)) for row in tokens.tolist())

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every string with its labels."""
        for tokens in all_strings(self.alphabet_size, self.length):
            yield tokens, self.oracle_labels(tokens, self.write)

    def exhaustive_count(self) -> int:
        """alphabet_size ** length."""
        return self.alphabet_size**self.length

    def adversarial(self) -> Iterator[Batch]:
        """Strings made of one short pattern over and over."""
        k, other, v, w = self.keys[0], self.keys[-1], self.values[0], self.values[-1]
        patterns = {
            "one key only": [k],
            "one value only": [v],
            "filler only": [NEUTRAL],
            "one pair over and over": [k, v],
            "key rebound between two values": [k, v, k, w],
            "two keys rebound in turn": [k, v, other, w, other, v, k, w],
            "key before its own pair": [k, k, v, NEUTRAL],
            "adjacent keys after a pair": [k, v, other, k, other],
            "value before every key": [v, k, NEUTRAL, w, other],
        }
        for case, pattern in patterns.items():
            tokens = list(islice(cycle(pattern), self.length))
            yield Batch.of([(tokens, self.oracle_labels(tokens, self.write))], case)

    def describe(self) -> str:
        """One line for a report."""
        return (
            f"MQAR, every string of {self.length} tokens over {self.kappa} keys, {self.vocab} values and a filler, "
            f"write policy {self.write}"
        )
