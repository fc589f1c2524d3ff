"""A data set from a file: the user's own sequences and labels, such as a benchmark's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from verify.tasks.task import Batch, Task


class Recorded(Task):
    """The rows of an .npz file with `inputs` and `labels`, (sequences, length) token ids; label −100: nobody asks."""

    name = "data"

    def __init__(self, path: Path, tokens: int):
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as file:
                self.inputs, self.labels = (np.asarray(file[key]) for key in ("inputs", "labels"))
        except OSError as reason:
            raise ValueError(f"--data {path} cannot be read: {(reason.strerror or str(reason)).lower()}") from None
        except (KeyError, ValueError, EOFError, AttributeError) as reason:
            raise ValueError(f"--data {path} is no .npz file with inputs and labels ({reason})") from None
        if self.inputs.ndim != 2 or self.inputs.shape != self.labels.shape or not self.inputs.size:
            raise ValueError(
                f"--data {path}: inputs of shape {self.inputs.shape} and labels of shape {self.labels.shape} must have "
                "one common shape (sequences, length)"
            )
        asked = self.labels[self.labels >= 0]
        for name, ids in (("inputs", self.inputs), ("labels", asked)):
            if ids.size and not (np.issubdtype(ids.dtype, np.integer) and ids.min() >= 0 and ids.max() < tokens):
                raise ValueError(
                    f"--data {path}: {name} must be token ids from 0 to {tokens - 1}, those of the checkpoint"
                )
        self.length = self.inputs.shape[1]

    def _batch(self, start: int, stop: int) -> Batch:
        labels = np.where(self.labels[start:stop] < 0, -100, self.labels[start:stop])
        return Batch(self.inputs[start:stop].astype(np.int64), labels.astype(np.int64))

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """The first rows: nothing is drawn."""
        return self._batch(0, count)

    def random(self, count: int, seed: int, batch_size: int = 1024) -> Iterator[Batch]:
        for start in range(0, min(count, len(self.inputs)), batch_size):
            yield self._batch(start, min(start + batch_size, count))

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        whole = self._batch(0, len(self.inputs))
        yield from zip(whole.tokens.tolist(), whole.labels.tolist(), strict=True)

    def exhaustive_count(self) -> int:
        return len(self.inputs)

    def adversarial(self) -> Iterator[Batch]:
        return iter(())

    def describe(self) -> str:
        return f"{self.path.name}: {len(self.inputs)} sequences of {self.length} tokens"
