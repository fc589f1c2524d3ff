"""Tasks whose answer is a chain of tokens that the model writes itself, up to the token that ends it.

One forced pass over prompt and chain verifies generation: where at every position of the chain the right token
scores strictly highest, greedy decoding writes the chain, by induction over its tokens (docs/dp.md says what that
rests on). Chains are ragged; a batch is padded behind the end, where nobody asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from compiler.language.input_language import InputLanguage
from verify.arguments import at_least
from verify.tasks.task import IGNORED, Batch, Task

_TOKENS_OF_AUTO = 2**17  # of random chains, unless more are asked for
_FEWEST_OF_AUTO = 8
_ROWS_SORTED = 512  # rows among which chains of like length are put together


class Solver(ABC):
    """A problem in plain Python over words, which shares no code with any circuit.

    name: of the problem; a prompt and a chain are tuples of token names, the chain's last token ends it.
    """

    name: str

    @abstractmethod
    def chain(self, prompt: Sequence[str]) -> list[str]:
        """What is to be written after this prompt, by the textbook."""

    @abstractmethod
    def prompts(self) -> Iterator[tuple[str, ...]]:
        """Every prompt of the problem at its declared sizes, once."""

    @abstractmethod
    def count(self) -> int:
        """How many prompts there are, by formula."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random prompt."""

    @abstractmethod
    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """(what it attacks, prompt): the longest, the empty, all alike, …"""

    @abstractmethod
    def describe(self) -> str:
        """One line for a report: the problem and its sizes."""


class ChainTask(Task):
    """A solver's chains over the tokens of a language; ValueError where a chain leaves the language.

    The language covers prompts and what the model itself writes after them. It ends with a state in which the last
    token may be repeated, so that rows of different lengths stand in one batch.
    """

    def __init__(self, solver: Solver, language: InputLanguage):
        self.solver, self.language, self.name = solver, language, solver.name
        self.length = language.max_length
        self.most_random = max(_FEWEST_OF_AUTO, _TOKENS_OF_AUTO // self.length)
        self._ids = {name: i for i, name in enumerate(language.alphabet.tokens)}

    def ids(self, prompt: Sequence[str]) -> tuple[list[int], list[int]]:
        """(prompt, chain) as token ids, the chain by the solver."""
        asked = [self._ids[name] for name in prompt]
        chain = [self._ids[name] for name in self.solver.chain(prompt)]
        if not self.language.accepts(asked + chain):
            raise ValueError(
                f"{self.name}: the chain of {' '.join(prompt)!r} leaves the language that bounds the circuit "
                f"({self.language.description}; at most {self.language.max_length} tokens)"
            )
        return asked, chain

    def describe(self) -> str:
        return f"{self.solver.describe()}, the chain token by token"

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        return self._batch([self.ids(self.solver.draw(rng)) for _ in range(count)])

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Forced rows (tokens, labels), of their own lengths."""
        for prompt in self.solver.prompts():
            yield _forced(*self.ids(prompt))

    def exhaustive_count(self) -> int:
        return self.solver.count()

    def adversarial(self) -> Iterator[Batch]:
        for case, prompt in self.solver.corners():
            yield self._batch([self.ids(prompt)], case)

    def exhaustive(self, batch_size: int = 1024) -> Iterator[Batch]:
        return self._batches(map(self.ids, self.solver.prompts()), batch_size)

    def random(self, count: int, seed: int, batch_size: int = 1024, first: int = 0) -> Iterator[Batch]:
        """Chain i depends on the task, the seed and i only."""
        at_least("count", count, 1, "a batch holds at least one sequence")
        return self._batches(self.cases(count, seed, first), batch_size)

    def cases(self, count: int, seed: int, first: int = 0) -> Iterator[tuple[list[int], list[int]]]:
        """Random (prompt, chain) pairs as ids."""
        for i in range(first, first + count):
            yield self.ids(self.solver.draw(np.random.default_rng([seed, i])))

    def _batches(self, cases: Iterable[tuple[list[int], list[int]]], batch_size: int) -> Iterator[Batch]:
        at_least("batch_size", batch_size, 1, "a batch holds at least one sequence")
        cases = iter(cases)
        while window := list(islice(cases, max(batch_size, _ROWS_SORTED))):
            window.sort(key=lambda case: len(case[0]) + len(case[1]))
            for start in range(0, len(window), batch_size):
                yield self._batch(window[start : start + batch_size])

    def _batch(self, cases: Sequence[tuple[list[int], list[int]]], case: str = "") -> Batch:
        """Forced rows, padded with their last token, whose positions nobody asks about."""
        longest = max(len(prompt) + len(chain) for prompt, chain in cases) - 1
        tokens = np.empty((len(cases), longest), dtype=np.int64)
        labels = np.full((len(cases), longest), IGNORED, dtype=np.int64)
        for row, (prompt, chain) in enumerate(cases):
            forced, asked = _forced(prompt, chain)
            tokens[row], tokens[row, : len(forced)], labels[row, : len(asked)] = chain[-1], forced, asked
        return Batch(tokens, labels, case)


def _forced(prompt: list[int], chain: list[int]) -> tuple[list[int], list[int]]:
    """(prompt and chain without its last token, the next token at each position of the chain)."""
    return prompt + chain[:-1], [IGNORED] * (len(prompt) - 1) + chain
