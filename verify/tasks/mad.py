"""Tasks of the MAD suite (Poli et al. 2024, "Mechanistic Design and Scaling of Hybrid Architectures").

Written from their description: in-context recall, with and without noise, copying and selective copying.

Token ids are the suite's, so that its data can be run as they are. Recall: keys 0 … K−1, values, noise tokens, and last
the prefix that announces the probe. Copying: tokens 0 … V−1, the blank, and last the token that asks for the copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np

from verify.arguments import at_least
from verify.tasks.task import IGNORED, Batch, Task


@dataclass(frozen=True)
class InContextRecall(Task):
    """(key value) pairs and pairs of noise, then the prefix and a key: which value has it?

    A key has one value throughout. every: the suite's multi-query form: no prefix, and each key is asked that was shown
    before. share: how often a pair is noise; at least one is not.
    """

    keys: int
    values: int
    noise: int
    length: int
    share: float = 0.0
    every: bool = False

    name = "in-context-recall"

    def __post_init__(self):
        at_least("keys", self.keys, 1, "a pair needs a key")
        at_least("values", self.values, 1, "a pair needs a value")
        at_least("length", self.length, 4, "a pair and a question take so much")

    @property
    def pairs(self) -> int:
        """Pairs before the question."""
        return self.length // 2 - 1

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        return Batch.of(self._one(rng) for _ in range(count))

    def _one(self, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        share = self.share if self.noise else 0.0
        noisy, sure = rng.random(self.pairs) < share, rng.integers(self.pairs)
        value_of = self.keys + rng.integers(self.values, size=self.keys)
        first = self.keys + self.values
        pairs: list[tuple[int, int]] = []
        for i in range(self.pairs):
            key = int(rng.integers(self.keys))
            other = tuple(int(t) for t in first + rng.integers(max(1, self.noise), size=2))
            pairs.append((other[0], other[1]) if noisy[i] and i != sure else (key, int(value_of[key])))
        shown = sorted({a for a, _ in pairs if a < self.keys})
        return self.assemble(pairs, shown[int(rng.integers(len(shown)))])

    def assemble(self, pairs: Sequence[tuple[int, int]], probe: int) -> tuple[list[int], list[int]]:
        """Tokens and labels: by a dictionary of what was shown."""
        value_of: dict[int, int] = {}
        tokens: list[int] = []
        labels: list[int] = []
        for a, b in pairs:
            known = value_of.get(a, IGNORED) if self.every else IGNORED
            tokens += [a, b]
            labels += [known, IGNORED]
            if a < self.keys:
                value_of[a] = b
        if not self.every:
            tokens.append(self.keys + self.values + self.noise)
            labels.append(IGNORED)
        return [*tokens, probe], [*labels, value_of[probe]]

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every choice of noise and keys, one value for each key that is shown, every probe."""
        first = self.keys + self.values
        noise = list(product(range(first, first + self.noise), repeat=2))
        for slots in product([*range(self.keys), *(-1 - i for i in range(len(noise)))], repeat=self.pairs):
            shown = sorted({s for s in slots if s >= 0})
            for values in product(range(self.keys, first), repeat=len(shown)) if shown else ():
                value_of = dict(zip(shown, values, strict=True))
                pairs = [(s, value_of[s]) if s >= 0 else noise[-1 - s] for s in slots]
                for probe in shown:
                    yield self.assemble(pairs, probe)

    def exhaustive_count(self) -> int:
        """By the number s of pairs that are no noise and that of distinct keys among them."""
        total = 0
        for s in range(1, self.pairs + 1):
            places = comb(self.pairs, s) * self.noise ** (2 * (self.pairs - s))
            for distinct in range(1, min(s, self.keys) + 1):
                onto = sum((-1) ** i * comb(distinct, i) * (distinct - i) ** s for i in range(distinct + 1))
                total += places * comb(self.keys, distinct) * onto * self.values**distinct * distinct
        return total

    def adversarial(self) -> Iterator[Batch]:
        """One key over and over, every key in turn, the highest ids."""
        top = self.keys + self.values - 1
        yield Batch.of([self.assemble([(0, top)] * self.pairs, 0)], "one key over and over")
        turns = [(i % self.keys, self.keys + (i % self.keys) % self.values) for i in range(self.pairs)]
        yield Batch.of([self.assemble(turns, turns[0][0])], "every key in turn")
        yield Batch.of([self.assemble([(self.keys - 1, self.keys)] * self.pairs, self.keys - 1)], "the last key")

    def describe(self) -> str:
        asked = "every key that was shown before" if self.every else "one key at the end"
        return (
            f"MAD in-context recall: {self.length} tokens, {self.keys} keys, {self.values} values, {self.noise} noise "
            f"tokens in {self.share:g} of the pairs, asking {asked}"
        )


@dataclass(frozen=True)
class MadCopying(Task):
    """n tokens and blanks, the copy token, n blanks: at the i-th of these the i-th token is right.

    selective: blanks stand among the tokens rather than behind them (the last token is followed by none).
    """

    n: int
    vocab: int
    length: int
    selective: bool = False

    name = "mad-copying"

    def __post_init__(self):
        at_least("n", self.n, 1, "there must be a token to copy")
        at_least("vocab", self.vocab, 1, "there must be a token to copy")
        at_least("length", self.length, 2 * self.n + 1, "the tokens, the copy token and as many blanks take so much")

    @property
    def blanks(self) -> int:
        return self.length - 2 * self.n - 1

    def assemble(self, tokens: Sequence[int], places: Sequence[int]) -> tuple[list[int], list[int]]:
        """places: where the tokens stand among the first n + blanks positions, ascending."""
        text = [self.vocab] * (self.n + self.blanks)
        for place, token in zip(places, tokens, strict=True):
            text[place] = token
        labels = [IGNORED] * (len(text) + 1) + list(tokens)
        return [*text, self.vocab + 1, *[self.vocab] * self.n], labels

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        rows = []
        for _ in range(count):
            before = np.sort(rng.integers(self.n, size=self.blanks)) if self.selective else np.array([], dtype=int)
            places = [i + int((before <= i).sum()) for i in range(self.n)]
            rows.append(self.assemble(rng.integers(self.vocab, size=self.n).tolist(), places))
        return Batch.of(rows)

    def _places(self) -> Iterator[tuple[int, ...]]:
        last = self.n + self.blanks - 1
        if not self.selective:
            yield tuple(range(self.n))
            return
        for others in combinations(range(last), self.n - 1):
            yield (*others, last)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for places in self._places():
            for tokens in product(range(self.vocab), repeat=self.n):
                yield self.assemble(tokens, places)

    def exhaustive_count(self) -> int:
        return self.vocab**self.n * (comb(self.n + self.blanks - 1, self.n - 1) if self.selective else 1)

    def adversarial(self) -> Iterator[Batch]:
        """The same token everywhere, and tokens in turn, as early or as late as the form has them."""
        places = tuple(range(self.blanks, self.n + self.blanks)) if self.selective else tuple(range(self.n))
        turns = [i % self.vocab for i in range(self.n)]
        for case, tokens in (("one token", [self.vocab - 1] * self.n), ("tokens in turn", turns)):
            yield Batch.of([self.assemble(tokens, places)], case)

    def describe(self) -> str:
        kind = "selective copying" if self.selective else "copying"
        return f"MAD {kind}: {self.n} of {self.vocab} tokens in {self.length}"
