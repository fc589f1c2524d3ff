"""What the author of a circuit says that it should answer (answers.json), as a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from compiler.artifact.answers import Answers
from compiler.language.arguments import counted
from verify.checker.tasks.names import Stated
from verify.checker.tasks.task import Task as Rule
from verify.tasks.task import IGNORED, Batch, Task, by_length


class AuthorsAnswers(Task):
    """The sequences that the author's function was asked about, shortest first; nothing is drawn."""

    name = "the author's answers"

    def __init__(
        self,
        answers: Answers,
        letters: Sequence[str],
        stated: Stated[Rule] | None = None,
        promised: Callable[[Sequence[int]], object] = lambda ids: True,
    ):
        """stated: the task that construction.json states, where it does, which may be another one. promised: whether
        the promise speaks of sequences that begin so: where the file was edited, it may ask of others.
        """
        self.answers, self.stated, self._promised = answers, stated, promised
        ids = {name: i for i, name in enumerate(letters)}
        self._rows = [
            ([ids[name] for name in asked.tokens], [IGNORED if a is None else ids[a] for a in asked.answers])
            for asked in answers.sequences
        ]
        self._rows.sort(key=lambda row: len(row[0]))
        self.outside = sum(not promised(row) for row, _ in self._rows)
        self.length = len(self._rows[-1][0])
        self.most_random = len(self._rows)

    def describe(self) -> str:
        said = f"the answers of {self.answers.function} to {counted(self.answers.questions, 'question')} (answers.json)"
        if self.outside:
            said += f", {self.outside:,} of its {counted(len(self._rows), 'sequence')} outside of the promise"
        if not self.others:
            return said
        other = "another task than the one of construction.json"
        return f"{said}: {other}, which says something else at {self.others:,} positions"

    @cached_property
    def others(self) -> int:
        """The positions at which the stated task asks something else, or has another answer."""
        if self.stated is None:
            return 0
        rule = self.stated.task
        pairs = [zip(right, rule.answers(list(letters)), strict=True) for letters, right in self._rows]
        return sum(told != (IGNORED if answer is None else answer) for row in pairs for told, answer in row)

    @cached_property
    def beyond(self) -> int:
        """The answers of the author that no proof of the stated task is of: it asks nothing there or has another one,
        or the promise does not speak of the sequence.
        """
        found = 0
        for letters, right in self._rows:
            rule = self.stated.task if self.stated is not None and self._promised(letters) else None
            told = [None] * len(letters) if rule is None else rule.answers(list(letters))
            found += sum(one not in (IGNORED, other) for one, other in zip(right, told, strict=True))
        return found

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """The first longest sequences: nothing is drawn."""
        return Batch.of([row for row in self._rows if len(row[0]) == self.length][:count])

    def random(self, count: int, seed: int, batch_size: int = 1024, first: int = 0) -> Iterator[Batch]:
        return by_length(self._rows[first : first + count], batch_size)

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        return iter(self._rows)

    def exhaustive(self, batch_size: int = 1024) -> Iterator[Batch]:
        return by_length(self._rows, batch_size)

    def exhaustive_count(self) -> int:
        return len(self._rows)

    def adversarial(self) -> Iterator[Batch]:
        return iter(())
