"""Forgetting MQAR (the benchmark's variant in which keys are bound again), written from its description.

The context has the pairs and then some of their keys again with other values; the label is the last value. Filler is
neutral. With filler from the whole vocabulary, the benchmark's default, the same two tokens (key, value) are an update
in the context and mean nothing behind it: no policy of writes that sees only pairs is right, neither the first nor the
last; only the position, 2·(pairs + updates), tells them apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import perm

import numpy as np

from verify.arguments import at_least, at_most, one_of
from verify.tasks.mqar.benchmark import BenchmarkLayout, _subsets
from verify.tasks.task import IGNORED, Batch


@dataclass(frozen=True)
class ForgettingLayout(BenchmarkLayout):
    """[k1 v1 .. kn vn | updates of some keys | every key once more, at even offsets]; the last value counts."""

    updates: int = 1

    name = "mqar-forgetting"

    def __post_init__(self):
        super().__post_init__()
        at_least("updates", self.updates, 0, "there is no less than none")
        at_most("updates", self.updates, self.pairs, f"an update has a key of the pairs = {self.pairs}")
        one_of("filler", self.filler, ("neutral",))
        if self.updates:
            at_least("vocab", self.vocab, 2, "an update has another value")
        needed = 4 * self.pairs + 2 * self.updates
        at_least("length", self.length, needed, f"{self.pairs} pairs, {self.updates} updates and the queries take it")

    @property
    def context(self) -> int:
        return 2 * (self.pairs + self.updates)

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        rows = []
        keys, values = 1 + _subsets(rng, count, self.kappa, self.pairs), _subsets(rng, count, self.vocab, self.pairs)
        chosen, slots = _subsets(rng, count, self.pairs, self.updates), self._slots(rng, count)
        shifts = rng.integers(1, max(2, self.vocab), size=(count, self.updates))
        for i in range(count):
            news = (values[i][chosen[i]] + shifts[i]) % self.vocab
            told = (keys[i].tolist(), (self.values.start + values[i]).tolist(), slots[i].tolist())
            rows.append(self.forgetting(*told, chosen[i].tolist(), (self.values.start + news).tolist()))
        return Batch.of(rows)

    def forgetting(
        self,
        keys: Sequence[int],
        values: Sequence[int],
        slots: Sequence[int],
        chosen: Sequence[int],
        news: Sequence[int],
    ) -> tuple[list[int], list[int]]:
        """Tokens and labels: pair chosen[i] is bound again, to news[i]; keys[i] is asked in slots[i]."""
        last = dict(zip(keys, values, strict=True))
        tokens = [token for pair in zip(keys, values, strict=True) for token in pair]
        for i, value in zip(chosen, news, strict=True):
            tokens += [keys[i], value]
            last[keys[i]] = value
        labels = [IGNORED] * self.length
        tokens += [0] * (self.length - len(tokens))
        for key, slot in zip(keys, slots, strict=True):
            tokens[self.context + 2 * slot], labels[self.context + 2 * slot] = key, last[key]
        return tokens, labels

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every order of keys, values, slots and updates, and every other value."""
        for keys, values in product(permutations(self.keys, self.pairs), permutations(self.values, self.pairs)):
            for slots in permutations(range(self.slots), self.pairs):
                for chosen in permutations(range(self.pairs), self.updates):
                    others = [[v for v in self.values if v != values[i]] for i in chosen]
                    for news in product(*others):
                        yield self.forgetting(keys, values, slots, chosen, news)

    def exhaustive_count(self) -> int:
        orders = perm(self.kappa, self.pairs) * perm(self.vocab, self.pairs) * perm(self.slots, self.pairs)
        return orders * perm(self.pairs, self.updates) * (self.vocab - 1) ** self.updates

    def adversarial(self) -> Iterator[Batch]:
        """The first and the last keys bound again, asked at once and as late as slots allow."""
        keys, values = list(self.keys[: self.pairs]), list(self.values[: self.pairs])
        news = [self.values[(v - self.values.start + 1) % self.vocab] for v in values]
        early, late = range(self.pairs), range(self.slots - self.pairs, self.slots)
        for case, slots in (("asked at once", early), ("asked late", late)):
            for chosen in (range(self.updates), range(self.pairs - 1, self.pairs - 1 - self.updates, -1)):
                told = self.forgetting(keys, values, slots, chosen, [news[i] for i in chosen])
                yield Batch.of([told], f"{case}, bound again: {list(chosen)[:4]}")

    def describe(self) -> str:
        return (
            f"forgetting MQAR: {self.length} tokens, {self.pairs} pairs of {self.kappa} keys and {self.vocab} values, "
            f"{self.updates} bound again, power {self.power}"
        )
