"""MQAR as the public benchmark lays it out (Arora et al. 2023, "Zoology"), written from its description.

Its vocabulary of size 512 is kappa = 255, vocab = 256 here: filler 0, keys 1..255, values 256..511.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import perm

import numpy as np

from verify.arguments import at_least, at_most, one_of
from verify.tasks.mqar.benchmark_cases import benchmark_cases
from verify.tasks.mqar.family import NEUTRAL, MqarTask
from verify.tasks.task import IGNORED, Batch

FILLERS = ("neutral", "vocabulary")


@dataclass(frozen=True)
class BenchmarkLayout(MqarTask):
    """[k1 v1 .. kn vn | every key once more, at even offsets], asked at those n query slots only.

    pairs: n; keys are distinct, values are distinct.
    power: slot i = 0, 1, .. is taken with probability proportional to power * (i + 1)**(power - 1), without
        replacement, the first pair choosing first: a small power asks early and late queries are rare.
    filler: what stands elsewhere in the second part: the neutral token, or uniform tokens of the whole alphabet, keys
        and values included ("vocabulary", the benchmark's default), which rebinds keys at random. The label stays the
        value of the context, which is the answer of the write policy "first".
    """

    pairs: int
    power: float = 0.01
    filler: str = "neutral"

    name = "mqar-benchmark"

    def __post_init__(self):
        super().__post_init__()
        one_of("filler", self.filler, FILLERS)
        at_least("pairs", self.pairs, 1, "a query needs a pair")
        at_most("pairs", self.pairs, self.kappa, f"keys are distinct and kappa = {self.kappa}")
        at_most("pairs", self.pairs, self.vocab, f"values are distinct and vocab = {self.vocab}")
        needed = 4 * self.pairs
        at_least(
            "length", self.length, needed, f"pairs = {self.pairs} take {2 * self.pairs} positions and as many for slots"
        )
        if not self.power > 0:
            raise ValueError(
                f"power = {self.power} is not positive, so it is no power law; 0.01 is the benchmark's power."
            )

    @property
    def context(self) -> int:
        """Length of the first part."""
        return 2 * self.pairs

    @property
    def slots(self) -> int:
        """How many positions of the second part may hold a query."""
        return (self.length - self.context) // 2

    @property
    def noise(self) -> tuple[int, ...]:
        """The token ids that may stand between queries."""
        return tuple(range(self.alphabet_size)) if self.filler == "vocabulary" else (NEUTRAL,)

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

    def assemble(
        self, keys: Sequence[int], values: Sequence[int], slots: Sequence[int], noise: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """(tokens, labels): the pairs, then keys[i] asked in slots[i], then `noise` over the free positions in
        order.
        """
        tokens = [token for pair in zip(keys, values) for token in pair]
        asked = {2 * slot: pair for slot, pair in zip(slots, zip(keys, values))}
        free = iter(noise)
        labels = [IGNORED] * len(tokens)
        for offset in range(len(noise) + len(asked)):
            key, value = asked[offset] if offset in asked else (next(free), IGNORED)
            tokens.append(key)
            labels.append(value)
        return tokens, labels

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
