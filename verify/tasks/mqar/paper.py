"""MQAR as paper A lays it out: k1 v1 ..

kn vn, then queries interwoven with noise (App. C.1, D.3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice, permutations, product
from math import comb, perm

import numpy as np

from verify.tasks.mqar.family import NEUTRAL
from verify.tasks.mqar.paper_cases import Handmade, paper_cases
from verify.tasks.mqar.paper_parts import NEUTRAL_SHARE, NOISE, PaperParts
from verify.tasks.task import Batch, HardCase


@dataclass(frozen=True)
class PaperLayout(PaperParts):
    """Random, all and hard sequences of `PaperParts`, labelled by the oracle."""

    name = "mqar-paper"

    def labels(self, tokens: Sequence[int], pairs: int) -> list[int]:
        """The oracle's answers after the first `pairs` pairs; with these fillers every key there is a query."""
        return self.oracle_labels(tokens, self.write, start=2 * pairs)

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        return self.drawn(rng, count, slice(None))

    def drawn(self, rng: np.random.Generator, count: int, wanted: slice) -> Batch:
        """Context, noise, then queries over the noise; answers of those that are wanted only."""
        keys = self._context_keys(rng, count)
        values = self._random_values(rng, keys.shape)
        context = np.stack([keys, values], axis=2).reshape(count, 2 * self.pairs)
        noise = self._random_values(rng, (count, self.tail))
        tail = np.where(rng.random(noise.shape) < NEUTRAL_SHARE[self.filler], NEUTRAL, noise)
        places = rng.random(tail.shape).argsort(axis=1)[:, : self.queries]
        queries, asked = self._queries(rng, keys)
        kept = np.take_along_axis(tail, places, axis=1)
        np.put_along_axis(tail, places, np.where(asked, queries, kept), axis=1)
        tokens = np.concatenate([context, tail], axis=1)
        labels = [self.labels(row, self.pairs) for row in tokens[wanted].tolist()]
        return Batch(tokens[wanted], np.array(labels, dtype=np.int64))

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every key order, value assignment, choice, order and placement of 1..queries queries, and every noise."""
        return self.rows_from(0)

    def rows_from(self, first: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """The same from number `first` on: contexts whose tails all come before it are passed over."""
        for keys in product(self.keys, repeat=self.pairs) if self.rebind else permutations(self.keys, self.pairs):
            tails = self._tail_count(len(set(keys)))
            if first >= tails * self.vocab**self.pairs:
                first -= tails * self.vocab**self.pairs
                continue
            for values in product(self.values, repeat=self.pairs):
                if first >= tails:
                    first -= tails
                    continue
                context = [token for pair in zip(keys, values) for token in pair]
                for tail in islice(self._tails(sorted(set(keys))), first, None):
                    tokens = context + tail
                    yield tokens, self.labels(tokens, self.pairs)
                first = 0

    def exhaustive_count(self) -> int:
        """Contexts by number of distinct keys, times the tails that many keys allow."""
        values = self.vocab**self.pairs
        if not self.rebind:
            return perm(self.kappa, self.pairs) * values * self._tail_count(self.pairs)
        # pairs positions share n distinct keys in Stirling(pairs, n) * kappa (kappa-1) .. (kappa-n+1) ways.
        distinct = range(1, min(self.kappa, self.pairs) + 1)
        return values * sum(_stirling(self.pairs, n) * perm(self.kappa, n) * self._tail_count(n) for n in distinct)

    def adversarial(self) -> Iterator[Batch]:
        """The cases of `paper_cases`, with labels."""
        return (case.batch(range(case.count)) for case in self.hard_cases())

    def hard_cases(self) -> Iterator[HardCase]:
        """The same, with answers of those sequences only that are asked for."""
        for case, sequences in paper_cases(self):
            yield HardCase(case, len(sequences), len(sequences[0].tokens), partial(self._labelled, case, sequences))

    def _labelled(self, case: str, sequences: Sequence[Handmade], rows: Sequence[int]) -> Batch:
        chosen = [sequences[i] for i in rows]
        return Batch.of(((s.tokens, self.labels(s.tokens, s.pairs)) for s in chosen), case)

    def describe(self) -> str:
        """One line for a report."""
        keys = "keys drawn with repetition" if self.rebind else "distinct keys"
        often = "any number of times" if self.repeat_queries else "at most once"
        return (
            f"MQAR, order of tokens as in the paper: {self.length} tokens, {self.pairs} pairs of {self.kappa} keys "
            f"and {self.vocab} values, "
            f"{keys}, {self.queries} queries, each key {often}, noise: {NOISE[self.filler]}, "
            f"write policy {self.write}"
        )

    def _context_keys(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, pairs) key tokens of the context."""
        if self.rebind:
            return rng.integers(1, self.kappa + 1, size=(count, self.pairs))
        return 1 + rng.random((count, self.kappa)).argsort(axis=1)[:, : self.pairs]

    def _random_values(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Independent uniform value tokens."""
        return rng.integers(self.values.start, self.values.stop, size=shape)

    def _queries(self, rng: np.random.Generator, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(count, queries) key tokens to ask for, and which of them are asked.

        Without repetition, the first occurrences of keys come in random order before the others, and only they are
        asked.
        """
        if self.repeat_queries:
            picked = rng.integers(self.pairs, size=(len(keys), self.queries))
            return np.take_along_axis(keys, picked, axis=1), np.ones(picked.shape, dtype=bool)
        score = rng.random(keys.shape) + _seen_before(keys)
        picked = score.argsort(axis=1)[:, : self.queries]
        return np.take_along_axis(keys, picked, axis=1), np.take_along_axis(score, picked, axis=1) < 1

    def _tails(self, live: list[int]) -> Iterator[list[int]]:
        """Every second part that asks for keys of `live`."""
        for asked in range(1, self._most_asked(len(live)) + 1):
            for places in combinations(range(self.tail), asked):
                for order in product(live, repeat=asked) if self.repeat_queries else permutations(live, asked):
                    for noise in product(self.noise, repeat=self.tail - asked):
                        yield _interweave(places, order, noise)

    def _tail_count(self, live: int) -> int:
        """How many tails `_tails` yields for `live` distinct keys."""
        return sum(
            comb(self.tail, asked)
            * (live**asked if self.repeat_queries else perm(live, asked))
            * len(self.noise) ** (self.tail - asked)
            for asked in range(1, self._most_asked(live) + 1)
        )

    def _most_asked(self, live: int) -> int:
        """The largest number of queries for `live` distinct keys."""
        return self.queries if self.repeat_queries else min(self.queries, live)


def _interweave(places: Sequence[int], queries: Sequence[int], noise: Sequence[int]) -> list[int]:
    """The noise in order, with queries[i] put in so that it lands at places[i]; places ascend."""
    tail = list(noise)
    for place, query in zip(places, queries):
        tail.insert(place, query)
    return tail


def _seen_before(keys: np.ndarray) -> np.ndarray:
    """(count, pairs) bool: the same key stands further left in its row."""
    order = keys.argsort(axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    repeated = np.zeros(keys.shape, dtype=bool)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    seen = np.empty_like(repeated)
    np.put_along_axis(seen, order, repeated, axis=1)
    return seen


def _stirling(items: int, blocks: int) -> int:
    """Ways to split `items` things into `blocks` non-empty unlabelled blocks (Stirling, second kind)."""
    row = [1] + [0] * blocks
    for _ in range(items):
        row = [0] + [row[b - 1] + b * row[b] for b in range(1, blocks + 1)]
    return row[blocks]
