"""What a verifier asks of a task: random, exhaustive and adversarial inputs, with the right answers beside them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import numpy as np

from verify.arguments import at_least

IGNORED = -100
"""Label of a position where nobody asks (the ignore_index of torch's cross entropy)."""

_ROWS_PER_CHUNK, _TOKENS_PER_CHUNK = 1024, 2**18


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences of one length with their answers.

    tokens: int64 (batch, length), token ids.
    labels: int64 (batch, length), the token id that is right at that position, or IGNORED.
    case: what an adversarial batch attacks; empty otherwise.
    """

    tokens: np.ndarray
    labels: np.ndarray
    case: str = ""

    def __post_init__(self):
        if self.tokens.ndim != 2 or self.tokens.shape != self.labels.shape:
            raise ValueError(
                f"tokens of shape {self.tokens.shape} and labels of shape {self.labels.shape} "
                "must have one common shape (batch, length)."
            )

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(cls, rows: Iterable[tuple[Sequence[int], Sequence[int]]], case: str = "") -> "Batch":
        """A batch of one or more (tokens, labels) rows, all of one length."""
        tokens, labels = zip(*rows)
        return cls(np.array(tokens, dtype=np.int64), np.array(labels, dtype=np.int64), case)


@dataclass(frozen=True, eq=False)
class HardCase:
    """Hand-made sequences of one length that attack one thing. batch: those with these numbers, with their answers."""

    name: str
    count: int
    length: int
    batch: Callable[[Sequence[int]], Batch]

    @classmethod
    def of(cls, batch: Batch) -> "HardCase":
        """The case of sequences that are there already."""
        some = lambda rows: Batch(batch.tokens[rows], batch.labels[rows], batch.case)
        return cls(batch.case, len(batch), batch.tokens.shape[1], lambda rows: some(np.asarray(rows, dtype=int)))


def by_length(rows: Iterable[tuple[Sequence[int], Sequence[int]]], batch_size: int = 1024) -> Iterator[Batch]:
    """(tokens, labels) rows, shortest first: those of one length together, at most `batch_size` of them."""
    length = lambda row: len(row[0])
    for _, same in groupby(sorted(rows, key=length), key=length):
        while chunk := list(islice(same, batch_size)):
            yield Batch.of(chunk)


class Task(ABC):
    """A distribution of sequences, its finite support, and the cases that break wrong circuits.

    A subclass has a `name` and a `length` (tokens per sequence; adversarial cases may be shorter). most_random: how
    many random sequences are drawn where nobody asks for a number of them.
    """

    name: str
    length: int
    most_random: int = 2**62

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """`count` independent sequences, every bit of randomness taken from rng."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every (tokens, labels) of the domain exactly once, lazily."""

    @abstractmethod
    def exhaustive_count(self) -> int:
        """How many sequences `exhaustive` yields, by formula."""

    @abstractmethod
    def adversarial(self) -> Iterator[Batch]:
        """Named hand-made cases inside the task's conditions, none longer than `length`."""

    def hard_cases(self) -> Iterator[HardCase]:
        """The same cases, for who runs some of their sequences; a task with many finds only the answers of these."""
        return map(HardCase.of, self.adversarial())

    @abstractmethod
    def describe(self) -> str:
        """One line for a report: the domain and its parameters."""

    def drawn(self, rng: np.random.Generator, count: int, wanted: slice) -> Batch:
        """Of `count` that are drawn those that are wanted; a task may spare itself the answers of the others."""
        chunk = self.draw(rng, count)
        return Batch(chunk.tokens[wanted], chunk.labels[wanted])

    def random(self, count: int, seed: int, batch_size: int = 1024, first: int = 0) -> Iterator[Batch]:
        """`count` random sequences from number `first` on, in batches of `batch_size` (the last may be smaller).

        Sequence i depends on the task, the seed and i only: a larger count or another batch size gives the same start.
        """
        at_least("count", count, 1, "a batch holds at least one sequence")
        at_least("seed", seed, 0, "NumPy seeds are not negative")
        at_least("batch_size", batch_size, 1, "a batch holds at least one sequence")
        at_least("first", first, 0, "sequences are numbered from 0 on")
        return _cut(self._chunks(first, first + count, seed), batch_size)

    def exhaustive(self, batch_size: int = 1024) -> Iterator[Batch]:
        """Every sequence of the domain exactly once, in batches of `batch_size` (the last may be smaller)."""
        at_least("batch_size", batch_size, 1, "a batch holds at least one sequence")
        return _pack(self.rows(), batch_size)

    def rows_from(self, first: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """`rows` from number `first` on; a task with many rows goes there without making those before."""
        return islice(self.rows(), first, None)

    def _chunks(self, first: int, last: int, seed: int) -> Iterator[Batch]:
        """Sequences in chunks of a size that only the length decides, each from a generator of its own."""
        size = max(1, min(_ROWS_PER_CHUNK, _TOKENS_PER_CHUNK // self.length))
        for start in range(first // size * size, last, size):
            wanted = slice(max(0, first - start), last - start)
            yield self.drawn(np.random.default_rng([seed, start // size]), size, wanted)


def _pack(rows: Iterator[tuple[Sequence[int], Sequence[int]]], batch_size: int) -> Iterator[Batch]:
    """The rows in batches of `batch_size`."""
    while block := list(islice(rows, batch_size)):
        yield Batch.of(block)


def _cut(chunks: Iterable[Batch], batch_size: int) -> Iterator[Batch]:
    """The same sequences in the same order, in batches of `batch_size`."""
    held: list[Batch] = []
    for chunk in chunks:
        held.append(chunk)
        if sum(map(len, held)) < batch_size:
            continue
        joined = _join(held)
        whole = len(joined) // batch_size * batch_size
        for start in range(0, whole, batch_size):
            stop = start + batch_size
            yield Batch(joined.tokens[start:stop], joined.labels[start:stop])
        held = [Batch(joined.tokens[whole:], joined.labels[whole:])]
    if sum(map(len, held)):
        yield _join(held)


def _join(batches: list[Batch]) -> Batch:
    """The batches one after the other."""
    return Batch(np.concatenate([b.tokens for b in batches]), np.concatenate([b.labels for b in batches]))
