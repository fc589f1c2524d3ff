"""The task that a checkpoint states, asked anew: what its claim means stands in the checker, as a plain program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from compiler.language.input_language import InputLanguage
from verify.checker.formats import Rejected
from verify.checker.tasks.names import Stated
from verify.checker.tasks.task import Task as Rule
from verify.checker.tasks.task import check_fits, read_task
from verify.tasks.task import IGNORED, Batch, by_length
from verify.tasks.walks import Walks


def stated_rule(claim: Mapping[str, Any], letters: Sequence[str]) -> Stated[Rule] | None:
    """What a claim asks over these letters; None where the checker knows no task of this form."""
    try:
        return read_task(dict(claim), letters)
    except Rejected:
        return None


def fitting_rule(claim: Mapping[str, Any], language: InputLanguage, end: str | None) -> Stated[Rule]:
    """What a claim asks of a circuit; Rejected, in the checker's words, where it is no task of it: not to be read, of
    letters that the language has not, or of another end of a text.
    """
    letters = language.alphabet.tokens
    stated = read_task(dict(claim), letters)
    check_fits(stated, {"end": end}, letters, language.used)
    return stated


class StatedAnswers(Walks):
    """Walks of an input language with the answers of the task that is stated."""

    name = "the stated task"

    def __init__(self, language: InputLanguage, stated: Stated[Rule]):
        super().__init__(language)
        self.stated = stated

    def describe(self) -> str:
        return f"{super().describe()}; asked, as construction.json states it: {self.stated.says}"

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        return self._labelled(super().draw(rng, count))

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        for string, _ in super().rows():
            yield string, self._answers(string)

    def adversarial(self) -> Iterator[Batch]:
        """The short strings, and each letter alone as often as may be: in a long run a count leaves its range."""
        yield from map(self._labelled, super().adversarial())
        runs = ((letters, self._answers(letters)) for letters in self.language.runs(self.length))
        for batch in by_length(runs):
            yield Batch(batch.tokens, batch.labels, f"one letter {batch.tokens.shape[1]} times")

    def _labelled(self, batch: Batch) -> Batch:
        labels = [self._answers(row) for row in batch.tokens.tolist()]
        return Batch(batch.tokens, np.array(labels, dtype=np.int64).reshape(batch.tokens.shape), batch.case)

    def _answers(self, letters: Sequence[int]) -> list[int]:
        return [IGNORED if answer is None else answer for answer in self.stated.task.answers(list(letters))]
