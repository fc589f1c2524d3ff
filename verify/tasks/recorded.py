"""A data set from a file: the user's own sequences and labels, such as a benchmark's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from compiler.language.arguments import counted
from compiler.language.input_language import InputLanguage
from verify.arrays import read_arrays
from verify.tasks.task import IGNORED, Batch, Task


def promised(language: InputLanguage, ids: Sequence[int]) -> bool:
    """Whether a sequence of the language begins so, and is no longer than its sequences; taken to be so where too many
    paths spell it.
    """
    try:
        return len(ids) <= language.max_length and bool(language.paths(ids))
    except ValueError:
        return True


class Recorded(Task):
    """The rows of an .npz file with `inputs` and `labels`, (sequences, length) token ids; label −100: nobody asks."""

    name = "data"

    def __init__(self, path: Path, tokens: int, promised: Callable[[Sequence[int]], object] = lambda ids: True):
        """promised: whether the promise speaks of sequences that begin so."""
        self.path = path
        self.inputs, self.labels = read_arrays(path, ("inputs", "labels"), f"--data {path}")
        if self.inputs.ndim == 2 and self.inputs.shape == self.labels.shape and not self.inputs.size:
            raise ValueError(
                f"--data {path}: inputs and labels of shape {self.inputs.shape} are empty, and at least one "
                "sequence of one token is needed"
            )
        if self.inputs.ndim != 2 or self.inputs.shape != self.labels.shape:
            raise ValueError(
                f"--data {path}: inputs of shape {self.inputs.shape} and labels of shape {self.labels.shape} must have "
                "one common shape (sequences, length)"
            )
        for name, ids in (("inputs", self.inputs), ("labels", self.labels)):
            if not np.issubdtype(ids.dtype, np.integer):
                raise ValueError(f"--data {path}: {name} hold {ids.dtype}, and they must be integers")
            wrong = ids[((ids < 0) | (ids >= tokens)) & ~((name == "labels") & (ids == IGNORED))]
            if wrong.size:
                raise ValueError(
                    f"--data {path}: {name} hold {wrong[0]}, and they must be token ids from 0 to {tokens - 1}, those "
                    "of the checkpoint" + (f", or {IGNORED} where nobody asks" if name == "labels" else "")
                )
        self.length = self.inputs.shape[1]
        asked = self.length - (self.labels[:, ::-1] != IGNORED).argmax(axis=1)  # up to the last question
        rows = zip(self.inputs.tolist(), asked.tolist(), strict=True)
        self.outside = sum(not promised(ids[:last]) for ids, last in rows)

    def _batch(self, start: int, stop: int) -> Batch:
        labels = np.where(self.labels[start:stop] < 0, -100, self.labels[start:stop])
        return Batch(self.inputs[start:stop].astype(np.int64), labels.astype(np.int64))

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """The first rows: nothing is drawn."""
        return self._batch(0, count)

    def random(self, count: int, seed: int, batch_size: int = 1024, first: int = 0) -> Iterator[Batch]:
        last = min(first + count, len(self.inputs))
        for start in range(first, last, batch_size):
            yield self._batch(start, min(start + batch_size, last))

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        whole = self._batch(0, len(self.inputs))
        yield from zip(whole.tokens.tolist(), whole.labels.tolist(), strict=True)

    def exhaustive_count(self) -> int:
        return len(self.inputs)

    def adversarial(self) -> Iterator[Batch]:
        return iter(())

    def describe(self) -> str:
        outside = f", {self.outside} of them outside of the promise" if self.outside else ""
        return f"{self.path.name}: {counted(len(self.inputs), 'sequence')} of {counted(self.length, 'token')}{outside}"
