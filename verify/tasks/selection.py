"""Tasks of dynamic token selection: recall behind a key, the one match of induction, the best match by a score.

Written from the statements of paper D (Lemma 3.3, Theorems 3.2 and D.1) as we read them, for their formulas are lost.
They share no code with any circuit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from math import comb, cos, factorial, tau
from typing import Literal

import numpy as np

from verify.arguments import at_least
from verify.tasks.task import IGNORED, Batch, Task


@dataclass(frozen=True)
class Recall(Task):
    """k_1 v_1 … k_l v_l q, l = 1 … pairs, asked at the end: the value behind the key q.

    Token ids: keys 0 … keys − 1, then values. distinct: no key twice; otherwise equal keys carry equal values.
    """

    keys: int
    values: int
    pairs: int
    distinct: bool = False

    name = "recall"

    @property
    def length(self) -> int:  # type: ignore[override]
        return 2 * self.pairs + 1

    def answer(self, tokens: Sequence[int]) -> int:
        """The value behind the first place of the key that is asked."""
        shown = list(zip(tokens[:-1:2], tokens[1::2], strict=True))
        return next(value for key, value in shown if key == tokens[-1])

    def _row(self, keys: Sequence[int], value_of: Sequence[int], asked: int) -> tuple[list[int], list[int]]:
        """The sequence, padded in front of nothing: shorter ones are rows of their own length."""
        tokens = [token for key in keys for token in (key, self.keys + value_of[key])] + [asked]
        return tokens, [IGNORED] * (len(tokens) - 1) + [self.answer(tokens)]

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Of the full length."""
        rows = []
        for _ in range(count):
            keys = (
                rng.permutation(self.keys)[: self.pairs] if self.distinct else rng.integers(self.keys, size=self.pairs)
            )
            value_of = rng.integers(self.values, size=self.keys)
            rows.append(self._row(keys.tolist(), value_of.tolist(), int(rng.choice(keys))))
        return Batch.of(rows)

    def _prompts(self) -> Iterator[tuple[int, ...]]:
        for size in range(1, self.pairs + 1):
            yield from permutations(range(self.keys), size) if self.distinct else product(range(self.keys), repeat=size)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for keys in self._prompts():
            shown = sorted(set(keys))
            for values in product(range(self.values), repeat=len(shown)):
                value_of = [0] * self.keys
                for key, value in zip(shown, values, strict=True):
                    value_of[key] = value
                for asked in shown:
                    yield self._row(keys, value_of, asked)

    def exhaustive(self, batch_size: int = 1024) -> Iterator[Batch]:
        """Rows of one length in each batch."""
        at_least("batch_size", batch_size, 1, "a batch holds at least one sequence")
        held: list[tuple[Sequence[int], Sequence[int]]] = []
        for row in self.rows():
            if held and (len(held) == batch_size or len(held[0][0]) != len(row[0])):
                yield Batch.of(held)
                held = []
            held.append(row)
        yield Batch.of(held)

    def exhaustive_count(self) -> int:
        """Σ_l Σ_j (key sequences of l pairs with j different keys) · values^j · j."""
        total = 0
        for size in range(1, self.pairs + 1):
            for used in range(1, min(size, self.keys) + 1):
                if self.distinct:
                    ways = factorial(self.keys) // factorial(self.keys - size) if used == size else 0
                else:
                    ways = comb(self.keys, used) * _onto(size, used)
                total += ways * self.values**used * used
        return total

    def adversarial(self) -> Iterator[Batch]:
        last, most = self.keys - 1, self.values - 1
        full = list(range(self.keys))[: self.pairs]
        yield Batch.of([self._row(full, [0] * self.keys, full[-1])], "every value with digits of 0")
        yield Batch.of([self._row(full, [most] * self.keys, full[0])], "every value the last, the first pair asked")
        turns = [i % self.values for i in range(self.keys)]
        yield Batch.of([self._row(full[::-1], turns, full[len(full) // 2])], "values in turn, keys backwards")
        yield Batch.of([self._row([last], [most] * self.keys, last)], "one pair")
        if not self.distinct:
            yield Batch.of([self._row([0] * self.pairs, turns, 0)], "one pair over and over")
            again = [i % self.keys for i in range(self.pairs)]
            yield Batch.of([self._row(again, turns, again[-1])], "every pair, again and again")

    def describe(self) -> str:
        keys = "distinct keys" if self.distinct else "equal keys with equal values"
        return f"associative recall, {self.pairs} pairs, {self.keys} keys, {self.values} values, {keys}"


def _onto(size: int, used: int) -> int:
    """How many sequences of this length have exactly these `used` symbols."""
    return sum((-1) ** j * comb(used, j) * (used - j) ** size for j in range(used + 1))


@dataclass(frozen=True)
class UniqueInduction(Task):
    """Any tokens 0 … vocab − 1, asked wherever the earlier places of the present token have one and the same follower.

    A place right before the present one has the present token as its follower.
    """

    vocab: int
    length: int

    name = "unique-induction"

    @staticmethod
    def labels(tokens: Sequence[int]) -> list[int]:
        """By looking through all earlier places."""
        out = []
        for t, token in enumerate(tokens):
            followers = {tokens[j + 1] for j in range(t) if tokens[j] == token}
            out.append(followers.pop() if len(followers) == 1 else IGNORED)
        return out

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Uniform tokens; in half of the rows all but the last are different, or the last has one earlier place."""
        tokens = rng.integers(self.vocab, size=(count, self.length))
        for row in tokens[::2]:
            if self.length <= self.vocab + 1:
                row[:-1] = rng.permutation(self.vocab)[: self.length - 1]
            elif self.vocab > 1:
                row[:] = rng.integers(self.vocab - 1, size=self.length)
                row[[rng.integers(self.length - 1), -1]] = self.vocab - 1
        return Batch.of((row, self.labels(row)) for row in tokens.tolist())

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for tokens in product(range(self.vocab), repeat=self.length):
            yield tokens, self.labels(tokens)

    def exhaustive_count(self) -> int:
        return self.vocab**self.length

    def adversarial(self) -> Iterator[Batch]:
        last = self.vocab - 1
        patterns = {
            "one token only": [0],
            "the last token only": [last],
            "every token in order, round and round": list(range(self.vocab)),
            "two tokens in turn": [0, last],
        }
        for case, pattern in patterns.items():
            tokens = [pattern[i % len(pattern)] for i in range(self.length)]
            yield Batch.of([(tokens, self.labels(tokens))], case)
        others = [1 + i % max(1, last) if last else 0 for i in range(self.length)]
        far = [0, *others[1:-1], 0][: self.length]
        yield Batch.of([(far, self.labels(far))], "a match at the very start")
        near = [*others[: max(0, self.length - 2)], 0, 0][: self.length]
        yield Batch.of([(near, self.labels(near))], "a match right before the end")

    def describe(self) -> str:
        return f"induction heads with one follower, {self.length} tokens out of {self.vocab}"


Keys = Literal["angle", "plane", "signs"]


@dataclass(frozen=True)
class Selection(Task):
    """Pairs of a key and a value in one token each, then a query: the value of the key with the largest score.

    Keys and queries are the same unit vectors: `size` angles (d' = 1), the integer points of x² + y² = size (d' = 2),
    or the ±1 vectors of `size` entries (any d'). Lemma 3.3, as we read it (its formulas are lost), asks for a gap. Here
    several keys may be nearest, if they carry one value. Token ids: key·values + value, then the queries.
    """

    keys: Keys
    size: int
    values: int
    length: int

    name = "token-selection"

    @cached_property
    def points(self) -> list[tuple[float, ...]]:
        """The unit vectors, as tuples of floats."""
        if self.keys == "angle":
            return [(cos(tau * i / self.size), cos(tau * i / self.size - tau / 4)) for i in range(self.size)]
        found: list[tuple[int, ...]]
        if self.keys == "plane":
            reach = range(-self.size, self.size + 1)
            found = [(x, y) for x in reach for y in reach if x * x + y * y == self.size]
        else:
            found = list(product((-1, 1), repeat=self.size))
        norm = sum(x * x for x in found[0]) ** 0.5
        return [tuple(x / norm for x in point) for point in found]

    def answer(self, tokens: Sequence[int]) -> int:
        """The value of the nearest key by inner products in floats; IGNORED where the nearest do not agree."""
        count = len(self.points)
        query = self.points[tokens[-1] - count * self.values]
        scored = [
            (sum(a * b for a, b in zip(self.points[t // self.values], query, strict=True)), t % self.values)
            for t in tokens[:-1]
        ]
        best = max(score for score, _ in scored)
        chosen = {value for score, value in scored if score > best - 1e-9}
        return chosen.pop() if len(chosen) == 1 else IGNORED

    def _labelled(self, rows: Sequence[Sequence[int]], case: str = "") -> Batch:
        labels = []
        for row in rows:
            value = self.answer(row)
            asked = value if value == IGNORED else len(self.points) * (self.values + 1) + value
            labels.append([IGNORED] * (len(row) - 1) + [asked])
        return Batch(np.array(rows, dtype=np.int64), np.array(labels, dtype=np.int64), case)

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """One value for each key in a row; half of the rows hold few keys, so that the best match is not the query."""
        points, rows = len(self.points), []
        for i in range(count):
            value_of = rng.integers(self.values, size=points)
            among = rng.permutation(points)[: max(1, points // 3)] if i % 2 else np.arange(points)
            keys = rng.choice(among, size=self.length - 1)
            rows.append([*(keys * self.values + value_of[keys]), points * self.values + rng.integers(points)])
        return self._labelled(rows)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        points = len(self.points)
        for pairs in product(range(points * self.values), repeat=self.length - 1):
            for query in range(points):
                batch = self._labelled([[*pairs, points * self.values + query]])
                yield batch.tokens[0].tolist(), batch.labels[0].tolist()

    def exhaustive_count(self) -> int:
        points = len(self.points)
        return (points * self.values) ** (self.length - 1) * points

    def adversarial(self) -> Iterator[Batch]:
        points, last = len(self.points), self.values - 1
        queries = range(points)
        for case, key in (("one key for every query", 0), ("the last key for every query", points - 1)):
            yield self._labelled(
                [[key * self.values + last] * (self.length - 1) + [points * self.values + q] for q in queries], case
            )
        turns = [i % points * self.values + i % points % self.values for i in range(self.length - 1)]
        yield self._labelled([[*turns, points * self.values + q] for q in queries], "keys in turn, for every query")
        for case, place in (("the key itself at the first place only", 0), ("at the last place only", -1)):
            rows = []
            for q in queries:
                row = [(q + 1) % points * self.values] * (self.length - 1)
                row[place] = q * self.values + last
                rows.append([*row, points * self.values + q])
            yield self._labelled(rows, f"{case}, its neighbour elsewhere")

    def describe(self) -> str:
        keys = f"{len(self.points)} keys ({self.keys}, {self.size})"
        return f"token selection, {keys}, {self.values} values, {self.length} tokens"
