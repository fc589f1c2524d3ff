"""Running a model against a task's answers and against the interpreter's scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from verify.tasks.task import IGNORED, Batch, Task

Scores = Callable[[np.ndarray], np.ndarray]
"""Token ids (batch, length) to scores (batch, length, tokens)."""

EXHAUSTIVE_LIMIT = 20_000
_SCORES_PER_BATCH = 1 << 22  # beyond, fresh pages take as long as the arithmetic
_SCORES_OF_AUTO = 1 << 31


@dataclass(frozen=True)
class Verification:
    """What was run and how it came out.

    sequences, queries: how many; correct: queries whose strictly highest score is the answer;
    exact_sequences: sequences with every query correct; bit_exact: whether all scores equalled
    the interpreter's, at every position; margin: the least lead of an answer over the best
    other token (negative where one was wrong); failure: (case, tokens, position) of the first
    wrong answer or differing score, None if there is none; within: whether all scores were as near as promised;
    share: the largest error of an output over what it may be, None where the promise is for bits.
    """

    sequences: int = 0
    queries: int = 0
    correct: int = 0
    exact_sequences: int = 0
    bit_exact: bool = True
    margin: float = float("inf")
    failure: tuple[str, list[int], int] | None = None
    within: bool = True
    share: float | None = None

    @property
    def accuracy(self) -> float:
        return self.correct / self.queries if self.queries else 1.0

    @property
    def passed(self) -> bool:
        return self.within and self.correct == self.queries

    def __add__(self, other: Verification) -> Verification:
        return Verification(
            self.sequences + other.sequences,
            self.queries + other.queries,
            self.correct + other.correct,
            self.exact_sequences + other.exact_sequences,
            self.bit_exact and other.bit_exact,
            min(self.margin, other.margin),
            self.failure or other.failure,
            self.within and other.within,
            max((s for s in (self.share, other.share) if s is not None), default=None),
        )

    def to_json(self) -> dict:
        """Plain values; None for what nothing was run for."""
        return {
            "sequences": self.sequences,
            "queries": self.queries,
            "accuracy": self.accuracy if self.queries else None,
            "exact_sequences": self.exact_sequences,
            "bit_exact": self.bit_exact if self.sequences else None,
            "margin": self.margin if np.isfinite(self.margin) else None,
        } | ({} if self.share is None else {"share_of_bound": self.share})


@dataclass(frozen=True)
class CheckedForm:
    """One form of a model: its scores, what the reference's become in its vocabulary, and who hears how far it is.

    progress: told how many sequences each step finished.
    """

    scores: Scores
    widened: Callable[[np.ndarray], np.ndarray] = lambda scores: scores
    progress: Callable[[int], None] = lambda n: None


def check(
    model: Scores,
    reference: Scores,
    batches: Iterable[Batch],
    progress: Callable[[int], None] = lambda n: None,
    bound: float = 0.0,
) -> Verification:
    """Run every batch; `progress` is told how many sequences each step finished.

    bound: how far a score may be from the interpreter's, 0 where the promise is for bits.
    """
    return check_forms([CheckedForm(model, progress=progress)], reference, batches, bound)[0]


def check_forms(
    forms: Sequence[CheckedForm], reference: Scores, batches: Iterable[Batch], bound: float = 0.0
) -> list[Verification]:
    """`check` for every form of a model on the same sequences, for which the reference is asked once."""
    totals = [Verification() for _ in forms]
    for batch in batches:
        expected = reference(batch.tokens)
        for i, form in enumerate(forms):
            totals[i] = totals[i] + _check_batch(form.scores(batch.tokens), form.widened(expected), batch, bound)
            form.progress(len(batch))
    return totals


def _check_batch(scores: np.ndarray, expected: np.ndarray, batch: Batch, bound: float) -> Verification:
    same = scores == expected
    near = np.abs(scores.astype(np.float64) - expected) <= bound if bound else same
    differs = ~near.all(axis=-1)
    asked = batch.labels != IGNORED
    margins = np.full(batch.tokens.shape, np.inf)
    margins[asked] = _margins(scores[asked], batch.labels[asked])
    wrong = ~(margins > 0)
    failure = None
    if differs.any() or wrong.any():
        row, position = np.argwhere(differs | wrong)[0]
        failure = (batch.case or "random", batch.tokens[row].tolist(), int(position))
    return Verification(
        len(batch),
        int(asked.sum()),
        int((~wrong[asked]).sum()),
        int((~wrong.any(axis=1)).sum()),
        bool(same.all()),
        float(margins.min(initial=np.inf)),
        failure,
        not differs.any(),
    )


def _margins(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """How far each answer leads the best other token: (queries,); NaN scores count as wrong."""
    rows = np.arange(len(labels))
    answer = scores[rows, labels].astype(np.float64)
    others = scores.copy()
    others[rows, labels] = -np.inf
    return answer - others.max(axis=-1, initial=-np.inf)


def chosen_batches(
    task: Task, mode: str, samples: int, seed: int, tokens: int, adversarial: bool = True
) -> tuple[int, Iterator[Batch]]:
    """(how many sequences, their batches): adversarial cases first, then every sequence or random ones.

    mode: "exhaustive", "random", "none", or "auto": exhaustive up to 20,000 sequences, else random ones, fewer
    than `samples` where they would have more than 2^31 scores. `tokens` is the vocabulary, which
    bounds the batch size. A promise about random inputs leaves the adversarial cases out.
    """
    if mode == "none":
        return 0, iter(())
    size = max(1, _SCORES_PER_BATCH // (task.length * tokens))
    cases = list(task.adversarial()) if adversarial else []
    count = sum(len(batch) for batch in cases)
    if mode == "exhaustive" or (mode == "auto" and task.exhaustive_count() <= EXHAUSTIVE_LIMIT):
        return count + task.exhaustive_count(), chain(split(cases, size), task.exhaustive(batch_size=size))
    if mode == "auto":
        samples = min(samples, task.most_random, max(1, _SCORES_OF_AUTO // (task.length * tokens)))
    return count + samples, chain(split(cases, size), task.random(samples, seed, batch_size=size))


def split(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same sequences in batches of at most so many."""
    for batch in batches:
        for start in range(0, len(batch), size):
            rows = slice(start, start + size)
            yield Batch(batch.tokens[rows], batch.labels[rows], batch.case)
