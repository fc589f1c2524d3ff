"""MQAR as the public benchmark lays it out (Arora et al. 2023, "Zoology"), written from its description.

Its vocabulary of size 512 is kappa = 255, vocab = 256 here: filler 0, keys 1..255, values 256..511.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import perm

import numpy as np

from verify.tasks.mqar.benchmark_cases import benchmark_cases
from verify.tasks.mqar.benchmark_parts import BenchmarkParts
from verify.tasks.task import IGNORED, Batch


@dataclass(frozen=True)
class BenchmarkLayout(BenchmarkParts):
    """Random, all and hard sequences of `BenchmarkParts`, labelled as they are put together."""

    name = "mqar-benchmark"

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Pairs, filler, then queries over the filler; the labels are right by construction."""
        keys = 1 + _subsets(rng, count, self.kappa, self.pairs)
        values = self.values.start + _subsets(rng, count, self.vocab, self.pairs)
        places = self.context + 2 * self._slots(rng, count)
        tokens = rng.integers(len(self.noise), size=(count, self.length))
        tokens[:, 0 : self.context : 2] = keys
        tokens[:, 1 : self.context : 2] = values
        labels = np.full((count, self.length), IGNORED, dtype=np.int64)
        np.put_along_axis(tokens, places, keys, axis=1)
        np.put_along_axis(labels, places, values, axis=1)
        return Batch(tokens, labels)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every key order, value order, choice of slots and filler."""
        for keys in permutations(self.keys, self.pairs):
            for values in permutations(self.values, self.pairs):
                for slots in permutations(range(self.slots), self.pairs):
                    for noise in product(self.noise, repeat=self.length - 3 * self.pairs):
                        yield self.assemble(keys, values, slots, noise)

    def exhaustive_count(self) -> int:
        """Orders of keys, of values and of slots, times fillers."""
        orders = perm(self.kappa, self.pairs) * perm(self.vocab, self.pairs) * perm(self.slots, self.pairs)
        return orders * len(self.noise) ** (self.length - 3 * self.pairs)

    def adversarial(self) -> Iterator[Batch]:
        """The cases of `benchmark_cases`."""
        for case, rows in benchmark_cases(self):
            yield Batch.of(rows, case)

    def describe(self) -> str:
        """One line for a report."""
        return (
            f"MQAR, benchmark layout: {self.length} tokens, {self.pairs} pairs of {self.kappa} keys "
            f"and {self.vocab} values, "
            f"power {self.power}, filler {self.filler}"
        )

    def _slots(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, pairs) distinct slots, drawn one after the other with the power law's weights.

        Adding Gumbel noise to log weights and sorting draws without replacement, in order of drawing. The factor
        `power` shifts every log weight alike and is left out.
        """
        log_weights = (self.power - 1) * np.log(np.arange(1, self.slots + 1))
        score = log_weights + rng.gumbel(size=(count, self.slots))
        return (-score).argsort(axis=1)[:, : self.pairs]


def _subsets(rng: np.random.Generator, count: int, total: int, size: int) -> np.ndarray:
    """(count, size) rows of distinct uniform numbers below `total`, in random order."""
    return rng.random((count, total)).argsort(axis=1)[:, :size]
